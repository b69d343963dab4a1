//! Who held what from when to when, and what was held twice.

use std::collections::{BTreeMap, HashMap, HashSet};

/// What a server may be off by when it counts a lease, us.
pub const ROUNDING: u64 = 5_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Plain,
    Watchdog,
    Block,
    Queue,
}

#[derive(Clone, Debug)]
pub struct Hold {
    pub key: String,
    pub owner: String,
    pub kind: Kind,
    pub on_old: bool,
    /// Its connection, where its close ends the hold.
    pub bound: Option<u64>,
    /// When its holder knew that it may begin.
    pub from: u64,
    /// When its lease could be over, or its release was sent.
    pub to: u64,
    pub token: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Held at the fault, and granted to somebody else at the new master.
    Forgotten,
    /// Both granted after the fault.
    BothSides,
    /// One of them was a waiter.
    Waiter,
}

#[derive(Default)]
pub struct Verdict {
    pub doubles: BTreeMap<(Class, Kind), u64>,
    /// Pairs with a watchdog hold whose lease could be over, but not its connection.
    pub open: u64,
    pub examples: Vec<String>,
}

/// `closed`: when the holder saw that its connection was closed.
pub fn judge(holds: &[Hold], closed: &HashMap<u64, u64>, fault: u64) -> Verdict {
    let mut keys: HashMap<&str, Vec<&Hold>> = HashMap::new();
    for hold in holds {
        keys.entry(&hold.key).or_default().push(hold);
    }
    let mut verdict = Verdict::default();
    for holds in keys.values_mut() {
        holds.sort_by_key(|hold| hold.from);
        let mut seen = HashSet::new();
        for (at, second) in holds.iter().enumerate() {
            for first in &holds[..at] {
                // Two owners count once, however often they nest.
                if first.owner != second.owner && !seen.contains(&(&first.owner, &second.owner)) {
                    let found = pair(first, second, closed, fault, &mut verdict);
                    if found {
                        seen.insert((&first.owner, &second.owner));
                        seen.insert((&second.owner, &first.owner));
                    }
                }
            }
        }
    }
    verdict.examples.sort();
    verdict
}

/// `first` began before `second`; whether they held it at once.
fn pair(
    first: &Hold,
    second: &Hold,
    closed: &HashMap<u64, u64>,
    fault: u64,
    verdict: &mut Verdict,
) -> bool {
    let bound = first.bound;
    let close = bound.and_then(|conn| closed.get(&conn).copied());
    let close = close.unwrap_or(u64::MAX);
    if second.from >= first.to.min(close) {
        // Its server renews it for as long as the connection is open.
        let watched = first.kind == Kind::Watchdog;
        verdict.open += u64::from(watched && second.from < close);
        return false;
    }
    let waiter = |hold: &Hold| matches!(hold.kind, Kind::Block | Kind::Queue);
    let (class, kind) = match (waiter(first), waiter(second)) {
        (true, _) => (Class::Waiter, first.kind),
        (_, true) => (Class::Waiter, second.kind),
        _ if first.from <= fault => (Class::Forgotten, first.kind),
        _ => (Class::BothSides, first.kind),
    };
    *verdict.doubles.entry((class, kind)).or_default() += 1;
    let side = |hold: &Hold| if hold.on_old { "old" } else { "new" };
    let ms = |at: u64| (at as i64 - fault as i64) as f64 / 1000.0;
    let text = |hold: &Hold| {
        format!(
            "{} ({:?}, {} master, token {}) from {:.1} to {:.1} ms",
            hold.owner,
            hold.kind,
            side(hold),
            hold.token,
            ms(hold.from),
            ms(hold.to)
        )
    };
    verdict.examples.push(format!(
        "{class:?} {}: {}; {}",
        first.key,
        text(first),
        text(second)
    ));
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hold(owner: &str, from: u64, to: u64) -> Hold {
        Hold {
            key: "k".to_owned(),
            owner: owner.to_owned(),
            kind: Kind::Plain,
            on_old: true,
            bound: None,
            from,
            to,
            token: 1,
        }
    }

    fn count(holds: &[Hold], closed: &[(u64, u64)]) -> (Vec<Class>, u64) {
        let closed = closed.iter().copied().collect();
        let verdict = judge(holds, &closed, 100);
        let classes = verdict.doubles.keys().map(|(class, _)| *class).collect();
        (classes, verdict.open)
    }

    #[test]
    fn what_overlaps_is_double_and_what_follows_is_not() {
        let after = [hold("a", 10, 50), hold("b", 50, 90)];
        assert_eq!(count(&after, &[]), (vec![], 0));
        let same = [hold("a", 10, 50), hold("a", 20, 90)];
        assert_eq!(count(&same, &[]), (vec![], 0));
        let before = [hold("a", 10, 150), hold("b", 120, 300)];
        assert_eq!(count(&before, &[]), (vec![Class::Forgotten], 0));
        let both = [hold("b", 120, 300), hold("a", 110, 150)];
        assert_eq!(count(&both, &[]), (vec![Class::BothSides], 0));
        let nested = [both[0].clone(), both[1].clone(), hold("b", 130, 400)];
        let verdict = judge(&nested, &HashMap::new(), 100);
        assert_eq!(verdict.examples.len(), 1);
        let mut waiter = both.clone();
        waiter[0].kind = Kind::Queue;
        assert_eq!(count(&waiter, &[]), (vec![Class::Waiter], 0));
    }

    #[test]
    fn a_watchdog_hold_ends_with_its_connection_and_is_open_until_then() {
        let mut holds = [hold("a", 10, 50), hold("b", 70, 90)];
        (holds[0].bound, holds[0].kind) = (Some(7), Kind::Watchdog);
        assert_eq!(count(&holds, &[]), (vec![], 1));
        assert_eq!(count(&holds, &[(7, 60)]), (vec![], 0));
        holds[0].to = 500;
        assert_eq!(count(&holds, &[(7, 60)]), (vec![], 0));
        assert_eq!(count(&holds, &[(7, 80)]), (vec![Class::Forgotten], 0));
    }
}

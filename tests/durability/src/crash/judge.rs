//! What was acknowledged, against what is there after the restart.

use std::collections::{BTreeMap, BTreeSet};

use super::look::Looked;
use crate::item::{Item, State, SLACK};

#[derive(Default)]
pub struct Verdict {
    pub findings: Vec<String>,
    /// Steps that were acknowledged, and that are lost of them.
    pub acked: u64,
    pub lost: u64,
    /// If anything is lost: how far back the newest lies that is there, us.
    pub lost_us: u64,
    pub held: u64,
    pub holds_lost: u64,
    /// By lock: what clients hold still, for all they know.
    pub believed: BTreeMap<(u8, String), u64>,
}

/// What is loaded must be what was true at one moment: nothing is missing that was
/// acknowledged before something that is there was asked for.
struct Moment<'a> {
    kept: Option<(u64, &'a Item)>,
    missing: Option<(u64, &'a Item)>,
}

/// What was acknowledged up to `floor` must be there.
pub fn judge(items: &[Item], looked: &Looked, floor: u64, killed: u64) -> Verdict {
    let mut verdict = Verdict::default();
    let begun = items
        .iter()
        .filter_map(|item| Some(item.steps.first()?.sent));
    let begun = begun.min().unwrap_or(killed);
    let mut moment = Moment {
        kept: None,
        missing: None,
    };
    for item in items {
        let held = looked.locks.get(&(item.db, item.key.clone()));
        let who = (item.owner.clone(), item.mode.shown().to_owned());
        let found = held.and_then(|held| held.get(&who)).copied();
        let acked = item.acked();
        verdict.acked += acked as u64;
        let can_be = |number: &usize| item.can_be(*number, found, looked.at);
        let fits: Vec<usize> = (0..=item.steps.len()).filter(can_be).collect();
        let (Some(first), Some(last)) = (fits.first().copied(), fits.last().copied()) else {
            verdict.findings.push(tell("never was so", item, found));
            continue;
        };
        if last < acked {
            let at = item.steps[last].replied.unwrap_or(killed);
            verdict.lost += (acked - last) as u64;
            if at <= floor {
                let what = "acknowledged, and lost";
                verdict.findings.push(tell(what, item, found));
            }
            if moment.missing.is_none_or(|(least, _)| at < least) {
                moment.missing = Some((at, item));
            }
        }
        if first > 0 {
            let at = item.steps[first - 1].sent;
            if moment.kept.is_none_or(|(most, _)| at > most) {
                moment.kept = Some((at, item));
            }
        }
        believe(&mut verdict, item, found.is_some(), looked.at);
    }
    if moment.missing.is_some() {
        let newest = moment.kept.map(|(at, _)| killed.saturating_sub(at));
        verdict.lost_us = newest.unwrap_or(killed.saturating_sub(begun));
    }
    if let (Some((kept, one)), Some((missing, other))) = (moment.kept, moment.missing) {
        if missing < kept {
            let text = format!(
                "no moment: what was asked for {} us after a reply is there, what was said by it is not:\n  {}\n  {}",
                kept - missing,
                tell("there", one, None),
                tell("not there", other, None)
            );
            verdict.findings.push(text);
        }
    }
    verdict.findings.extend(unknown(items, looked));
    verdict
}

/// Whether its client holds it, for all it knows, and whether that is lost.
fn believe(verdict: &mut Verdict, item: &Item, is_there: bool, now: u64) {
    let state = item.now();
    let sure = item.acked() == item.steps.len() && !item.watched;
    if state.holds == 0 || !sure || state.ends.0 < now + 5 * SLACK {
        return;
    }
    verdict.held += 1;
    verdict.holds_lost += u64::from(!is_there);
    let lock = (item.db, item.key.clone());
    *verdict.believed.entry(lock).or_default() += 1;
}

/// Holders whom nobody knows.
fn unknown(items: &[Item], looked: &Looked) -> Vec<String> {
    let known = |item: &Item| (item.db, item.key.clone(), item.owner.clone());
    let known: BTreeSet<_> = items.iter().map(known).collect();
    let mut all = Vec::new();
    for ((db, key), holders) in &looked.locks {
        for ((owner, mode), state) in holders {
            if !known.contains(&(*db, key.clone(), owner.clone())) {
                all.push(format!("nobody knows: {db} {key} {owner} {mode} {state:?}"));
            }
        }
    }
    all
}

fn tell(what: &str, item: &Item, found: Option<State>) -> String {
    let Item {
        db,
        key,
        owner,
        mode,
        ..
    } = item;
    let steps = item.steps.iter().map(|step| {
        let (sent, replied, after) = (step.sent, step.replied, step.after);
        format!("\n    asked {sent}, replied {replied:?}: {after:?}")
    });
    let steps: String = steps.collect();
    format!("{what}: {db} {key}, owner {owner}, {mode:?}, found {found:?}{steps}")
}

#[cfg(test)]
mod tests {
    use super::super::look::Holders;
    use super::*;
    use crate::item::{Mode, Step};

    const SECOND: u64 = 1_000_000;

    /// Steps a second apart, each acknowledged 0.1 s later: so many holds after each.
    fn item(key: &str, from: u64, holds: &[i64]) -> Item {
        let mut item = Item::new(0, key, "ann", Mode::Plain);
        item.steps = (from..)
            .zip(holds)
            .map(|(at, holds)| step(at, *holds))
            .collect();
        item
    }

    fn step(second: u64, holds: i64) -> Step {
        let sent = 1000 * SECOND + second * SECOND;
        let ends = sent + (1000 + 10 * second) * SECOND;
        Step {
            sent,
            replied: Some(sent + SECOND / 10),
            after: State {
                holds,
                ends: (ends, ends + SECOND / 10),
            },
            token: None,
            lease: None,
        }
    }

    /// What is found: of each item the state after this step.
    fn found(items: &[(&Item, usize)]) -> Looked {
        let holders = |(item, number): &(&Item, usize)| {
            let state = item.state(*number);
            let who = ("ann".to_owned(), "exclusive".to_owned());
            let holders = (state.holds > 0).then_some((who, state));
            ((0, item.key.clone()), Holders::from_iter(holders))
        };
        Looked {
            at: 1100 * SECOND,
            locks: items.iter().map(holders).collect(),
        }
    }

    fn findings(items: Vec<Item>, looked: &Looked, floor: u64) -> Vec<String> {
        let verdict = judge(&items, looked, floor, 1099 * SECOND);
        let first = |text: &String| text.split(':').next().unwrap_or_default().to_owned();
        verdict.findings.iter().map(first).collect()
    }

    #[test]
    fn what_is_as_acknowledged_is_no_finding() {
        let item = item("a", 1, &[1, 2, 1]);
        let looked = found(&[(&item, 3)]);
        assert!(findings(vec![item], &looked, u64::MAX).is_empty());
    }

    #[test]
    fn what_was_acknowledged_is_lost() {
        for last in 0..3 {
            let item = item("a", 1, &[1, 2, 1]);
            let looked = found(&[(&item, last)]);
            assert_eq!(
                findings(vec![item], &looked, u64::MAX),
                ["acknowledged, and lost"]
            );
        }
    }

    #[test]
    fn what_was_under_way_may_be_there_or_not() {
        for last in 2..4 {
            let mut item = item("a", 1, &[1, 2, 1]);
            item.steps[2].replied = None;
            let looked = found(&[(&item, last)]);
            assert!(findings(vec![item], &looked, u64::MAX).is_empty(), "{last}");
        }
    }

    #[test]
    fn what_never_was_is_found() {
        let item = item("a", 1, &[1, 2, 1]);
        let mut looked = found(&[(&item, 2)]);
        for state in looked.locks.values_mut().flat_map(Holders::values_mut) {
            state.holds = 5;
        }
        assert_eq!(findings(vec![item], &looked, 0), ["never was so"]);
    }

    #[test]
    fn what_is_loaded_was_true_at_one_moment() {
        let [one, other] = [item("a", 1, &[1, 1, 1]), item("b", 3, &[1, 1])];
        let looked = found(&[(&one, 2), (&other, 0)]);
        assert!(findings(vec![one, other], &looked, 0).is_empty());
        let [one, other] = [item("a", 1, &[1, 1, 1]), item("b", 3, &[1, 1])];
        let looked = found(&[(&one, 1), (&other, 1)]);
        assert_eq!(findings(vec![one, other], &looked, 0), ["no moment"]);
    }

    #[test]
    fn a_holder_whom_nobody_knows_is_found() {
        let [one, other] = [item("a", 1, &[1]), item("b", 1, &[1])];
        let looked = found(&[(&one, 1), (&other, 1)]);
        assert_eq!(findings(vec![one], &looked, 0), ["nobody knows"]);
    }
}

//! What the logs of all processes say, judged without asking rlock.
//!
//! A hold counts only while it surely lasts: from the moment at which its client knew of it to
//! the one before it was given back, before its process was killed, or at which its lease
//! could have ended first. So whatever is found was so, however late a process ran.

use std::collections::BTreeMap;

use super::log::{Event, Granted, Id};

/// A hold, and how long it surely lasted.
#[derive(Clone, Copy, Debug)]
pub struct Hold {
    pub id: Id,
    pub granted: Granted,
    pub until: i64,
    /// Its process was killed meanwhile.
    pub is_orphan: bool,
}

/// What is known of a hold so far.
struct Open {
    granted: Granted,
    renewed: Option<i64>,
    releasing: Option<i64>,
    was_its: bool,
}

/// The holds that a log tells of. `killed`: the last moment at which its process was alive.
pub fn holds(log: &[(Id, Event)], killed: Option<i64>) -> Vec<Hold> {
    let mut all: BTreeMap<Id, Open> = BTreeMap::new();
    for (id, event) in log {
        if let Event::Granted(granted) = *event {
            let open = Open {
                granted,
                renewed: None,
                releasing: None,
                was_its: false,
            };
            assert!(all.insert(*id, open).is_none(), "{id:?} was granted twice");
            continue;
        }
        let known = all.get_mut(id).expect("it was granted before");
        match *event {
            Event::Renewed(at) => known.renewed = Some(at),
            Event::Releasing(at) => known.releasing = Some(at),
            Event::Granted(_) | Event::Released => known.was_its = true,
            Event::TooLate => known.was_its = false,
        }
    }
    let hold = |(id, open): (Id, Open)| Hold {
        id,
        granted: open.granted,
        until: until(id, &open, killed),
        is_orphan: open.releasing.is_none(),
    };
    all.into_iter().map(hold).collect()
}

fn until(id: Id, open: &Open, killed: Option<i64>) -> i64 {
    let given_back = open.releasing.filter(|_| open.was_its);
    match (given_back, open.granted.lease) {
        (Some(at), _) => at,
        // Its lease goes on without its process, and may end before that one comes to it. It
        // began when the permits were granted, which was after they were asked for.
        (None, Some(lease)) => {
            let begun = open.renewed.unwrap_or(open.granted.sent);
            let ends = begun + lease * 1_000_000;
            ends.min(open.releasing.unwrap_or(i64::MAX))
        }
        (None, None) => {
            let end = open.releasing.or(killed);
            end.unwrap_or_else(|| panic!("{id:?} lives and did not give back"))
        }
    }
}

/// How many permits were surely out at the same moment, at most.
pub fn most_out(holds: &[Hold]) -> i64 {
    let lasting = holds.iter().filter(|hold| hold.granted.seen < hold.until);
    let mut changes: Vec<(i64, i64)> = lasting
        .flat_map(|hold| {
            let permits = hold.granted.permits;
            [(hold.granted.seen, permits), (hold.until, -permits)]
        })
        .collect();
    // What ends at the moment at which another begins comes before it.
    changes.sort_unstable();
    let out = changes.iter().scan(0, |out, (_, change)| {
        *out += change;
        Some(*out)
    });
    out.max().unwrap_or(0)
}

/// Two of whom the second asked when the first was in the queue already, and was granted
/// before it.
pub fn overtaken(holds: &[Hold]) -> Option<(Hold, Hold)> {
    let mut by_token = holds.to_vec();
    by_token.sort_unstable_by_key(|hold| hold.granted.token);
    let same = by_token
        .windows(2)
        .find(|pair| pair[0].granted.token == pair[1].granted.token);
    assert!(same.is_none(), "one token for two: {same:?}");
    // From the last token down: of all that came later, the one that was in the queue first.
    let mut first: Option<Hold> = None;
    for hold in by_token.into_iter().rev() {
        if let Some(first) = first.filter(|first| first.granted.queued < hold.granted.sent) {
            return Some((first, hold));
        }
        let was_before = |first: Hold| first.granted.queued < hold.granted.queued;
        if !first.is_some_and(was_before) {
            first = Some(hold);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn granted(permits: i64, lease: Option<i64>, at: i64) -> Event {
        Event::Granted(Granted {
            permits,
            lease,
            sent: at - 2,
            queued: at - 1,
            seen: at,
            token: at,
        })
    }

    #[test]
    fn permits_are_out_until_they_are_given_back() {
        let log = |back: i64| {
            [
                ((0, 0), granted(2, None, 10)),
                ((0, 0), Event::Releasing(back)),
                ((0, 0), Event::Released),
                ((1, 0), granted(3, None, 20)),
                ((1, 0), Event::Releasing(30)),
                ((1, 0), Event::Released),
            ]
        };
        assert_eq!(most_out(&holds(&log(20), None)), 3);
        assert_eq!(most_out(&holds(&log(21), None)), 5);
    }

    #[test]
    fn those_of_the_dead_are_out_until_their_death_or_to_the_end_of_their_lease() {
        let dead = |lease| holds(&[((0, 0), granted(1, lease, 10))], Some(50))[0].until;
        assert_eq!(dead(None), 50);
        assert_eq!(dead(Some(1)), 8 + MS);
        let renewed = [
            ((0, 0), granted(1, Some(1), 10)),
            ((0, 0), Event::Renewed(40)),
        ];
        assert_eq!(holds(&renewed, Some(50))[0].until, 40 + MS);
    }

    #[test]
    fn whoever_came_too_late_held_them_to_the_end_of_its_lease() {
        let log = [
            ((0, 0), granted(1, Some(1), 10)),
            ((0, 0), Event::Releasing(2 * MS)),
            ((0, 0), Event::TooLate),
        ];
        assert_eq!(holds(&log, None)[0].until, 8 + MS);
    }

    #[test]
    fn whoever_asked_later_and_was_granted_before_is_found() {
        let hold = |sent, queued, token| Hold {
            id: (0, 0),
            granted: Granted {
                permits: 1,
                lease: None,
                sent,
                queued,
                seen: 0,
                token,
            },
            until: 0,
            is_orphan: false,
        };
        let (first, second) = (hold(1, 2, 8), hold(3, 4, 7));
        assert!(overtaken(&[first, second, hold(9, 9, 9)]).is_some());
        assert!(overtaken(&[hold(1, 2, 7), hold(3, 4, 8)]).is_none());
        // Who asked at the same time may be granted in any order.
        assert!(overtaken(&[hold(1, 3, 8), hold(2, 4, 7)]).is_none());
    }
}

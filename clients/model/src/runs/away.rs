//! Each rule taken away.

use super::{Run, broken, lasting, timed, wild};
use crate::rules::{Client, Promise, Without, World};

/// A rule taken away, and what breaks.
pub fn without() -> Vec<Run> {
    use Promise::*;
    use Without::*;
    let twice = World {
        attempts: 2,
        ..timed()
    };
    let of = |servers, clients: &[(u8, usize)]| World {
        servers,
        clients: clients
            .iter()
            .map(|(names, quorum)| Client {
                names: *names,
                quorum: *quorum,
            })
            .collect(),
        ..timed()
    };
    vec![
        broken(
            "0 same servers",
            "the clients name different servers",
            Alone,
            of(4, &[(0b0111, 2), (0b1110, 2)]),
        ),
        broken(
            "0 majority",
            "4 servers, of which half is enough",
            Alone,
            of(4, &[(0b1111, 2), (0b1111, 2)]),
        ),
        broken(
            "0 no failover",
            "a replica that lacks the last writes takes over",
            Alone,
            timed().without(&[NoFailover]),
        ),
        broken(
            "1 fresh owner",
            "a client has one owner for all its attempts",
            Alone,
            twice.clone().without(&[FreshOwner]),
        ),
        broken(
            "1 plain lease",
            "WATCHDOG: a cut connection frees the lock",
            Alone,
            timed().without(&[PlainLease]),
        ),
        broken(
            "1 release at all",
            "no RELEASE to the silent servers: no harm, but the lock stays shut until its lease ends",
            Freed,
            timed().without(&[ReleaseToAll]),
        ),
        broken("2 FENCE", "no FENCE", Rising, wild().without(&[Fence])),
        broken(
            "2 FENCE awaited",
            "given before FENCE was answered",
            Rising,
            wild().without(&[FenceAwaited]),
        ),
        broken(
            "2 reply equal",
            "a server counts whatever it replied",
            Rising,
            wild().without(&[Equal]),
        ),
        broken(
            "2 holder only",
            "a server takes FENCE from who does not hold the lock",
            Rising,
            wild().without(&[FenceByHolder]),
        ),
        broken(
            "2 greatest of all",
            "FENCE sets the counter, and may lower it",
            Rising,
            wild().without(&[NeverLowered]),
        ),
        broken(
            "2 token above counter",
            "a server gives tokens by its clock alone",
            Rising,
            wild().without(&[AboveCounter]),
        ),
        broken(
            "2 late grants, no FENCE",
            "late grants count, without FENCE",
            Rising,
            wild().without(&[NoLateGrantsUnfenced]),
        ),
        broken(
            "2 greatest, reply not equal",
            "the first token instead of the greatest, and no look at the reply",
            Rising,
            wild().without(&[Greatest, Equal]),
        ),
        broken(
            "2 from before",
            "validity counts from the reply",
            Alone,
            World {
                letters: true,
                ..timed()
            }
            .without(&[CountedFromBefore]),
        ),
        broken(
            "2 margin",
            "validity is the whole lease, and a server's clock runs fast",
            Alone,
            timed().without(&[Margin]),
        ),
        broken(
            "2 clock",
            "the client's clock stands still while it is suspended",
            Alone,
            timed().without(&[ClockThroughSuspend]),
        ),
        broken(
            "3 lost for ever, FENCE",
            "a hold comes back after its validity, by ACQUIRE ONCE without FENCE",
            Rising,
            timed().without(&[LostForEver, RejoinFenced]),
        ),
        broken(
            "3 lost for ever, equal",
            "a hold comes back after its validity, whatever FENCE replies",
            Rising,
            timed().without(&[LostForEver, RejoinEqual]),
        ),
        broken(
            "4 hold written",
            "a server restarts and has lost the hold",
            Alone,
            World {
                restarts: true,
                ..timed()
            }
            .without(&[HoldWritten]),
        ),
        broken(
            "4 counter written",
            "a server restarts and has lost the counter; its clock is behind",
            Rising,
            World {
                restarts: true,
                ..wild()
            }
            .without(&[CounterWritten]),
        ),
        broken(
            "4 grant-after",
            "a server that lost everything grants at once",
            Alone,
            World {
                forgets: true,
                ..timed()
            }
            .without(&[GrantAfter]),
        ),
        lasting(
            "4 the longest lease",
            "grant-after is shorter than the lease",
            Alone,
            World {
                forgets: true,
                ..timed()
            }
            .without(&[GrantAfterWhole]),
        ),
        broken(
            "4 clocks agree",
            "a server lost its counter and its clock is behind",
            Rising,
            World {
                forgets: true,
                ..timed()
            }
            .without(&[ClocksAgree]),
        ),
        broken(
            "5 storage",
            "storage takes smaller tokens",
            Storage,
            World {
                writes: true,
                ..timed()
            }
            .without(&[Without::StorageChecks]),
        ),
        broken(
            "5 not shared",
            "a client of s1 alone shares the key",
            Alone,
            of(3, &[(0b111, 2), (0b001, 1)]),
        ),
        broken(
            "no FORCE",
            "somebody uses FORCE or DEL",
            Alone,
            timed().without(&[NoForce]),
        ),
        broken(
            "no step ahead",
            "clocks of servers step ahead",
            Alone,
            timed().without(&[NoStep]),
        ),
        broken(
            "as given",
            "no clock is any good: a slow client is given a smaller token after a greater one",
            RisingAsGiven,
            wild(),
        ),
        // Here the hold has to outlive one renewal.
        lasting(
            "rejoin as written",
            "a late grant is released, and its server acquired again by the same owner",
            Alone,
            timed().without(&[ReleasedIsOut]),
        ),
    ]
}

//! The worlds that are walked: with all rules, and with one of them taken away.

use crate::rules::{Client, Promise, Without, World};

mod away;

pub use away::without;

/// What a walk should find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// All states, and no broken promise.
    Kept,
    /// This promise broken.
    Broken(Promise),
}

#[derive(Clone, Debug)]
pub struct Run {
    pub name: &'static str,
    /// One sentence for the table.
    pub says: &'static str,
    pub world: World,
    pub expect: Expect,
}

/// 2 clients that try once, 3 servers; leases end at any time and no clock is any good.
pub fn wild() -> World {
    World {
        servers: 3,
        clients: vec![
            Client {
                names: 0b111,
                quorum: 2
            };
            2
        ],
        attempts: 1,
        lease: 0,
        letters: false,
        one_clock: false,
        counted: true,
        restarts: false,
        forgets: false,
        late: true,
        writes: false,
        without: Vec::new(),
        promises: vec![Promise::Rising],
    }
}

/// The same with clocks that are good: no lease ends before 2 ticks.
pub fn timed() -> World {
    World {
        lease: 2,
        late: false,
        promises: vec![
            Promise::Rising,
            Promise::RisingAsGiven,
            Promise::Alone,
            Promise::Freed,
        ],
        ..wild()
    }
}

impl World {
    fn without(mut self, rules: &[Without]) -> Self {
        self.without.extend(rules);
        self
    }

    fn promising(mut self, promise: Promise) -> Self {
        self.promises = vec![promise];
        self
    }
}

fn kept(name: &'static str, says: &'static str, world: World) -> Run {
    Run {
        name,
        says,
        world,
        expect: Expect::Kept,
    }
}

fn broken(name: &'static str, says: &'static str, promise: Promise, world: World) -> Run {
    let rising = matches!(promise, Promise::Rising | Promise::RisingAsGiven);
    // A lease of one tick makes fewer states, too.
    let lease = world.lease.min(1);
    let world = World {
        one_clock: !rising,
        lease,
        ..world.promising(promise)
    };
    Run {
        name,
        says,
        world,
        expect: Expect::Broken(promise),
    }
}

fn lasting(name: &'static str, says: &'static str, promise: Promise, world: World) -> Run {
    let lease = world.lease;
    let mut run = broken(name, says, promise, world);
    run.world.lease = lease;
    run
}

/// All rules, within bounds that take seconds.
pub fn kept_short() -> Vec<Run> {
    use Without::*;
    vec![
        kept(
            "A",
            "no clock is any good, 2 clients, late messages",
            wild(),
        ),
        kept(
            "A, restarts",
            "and servers restart with their memory; FENCE makes the counter",
            World {
                counted: false,
                restarts: true,
                ..wild()
            },
        ),
        kept("B", "good clocks, 2 clients", timed()),
        kept(
            "B, from the first request",
            "validity as rule 2 says it",
            timed().without(&[FromFence]),
        ),
        kept(
            "C",
            "good clocks, servers that lose all, grant-after",
            World {
                forgets: true,
                ..timed()
            },
        ),
    ]
}

/// All rules, and two that are not needed, within bounds that take minutes.
pub fn kept_long() -> Vec<Run> {
    use Without::*;
    let twice = |world| World {
        attempts: 2,
        ..world
    };
    vec![
        kept(
            "B, late",
            "good clocks, late messages, restarts, FENCE makes the counter",
            World {
                late: true,
                restarts: true,
                counted: false,
                ..timed()
            },
        ),
        kept(
            "B, letters",
            "good clocks, answers long under way",
            World {
                letters: true,
                late: true,
                ..timed()
            },
        ),
        kept(
            "B, twice",
            "good clocks, one for all servers, 2 clients that try twice",
            World {
                one_clock: true,
                lease: 1,
                ..twice(timed())
            },
        ),
        kept(
            "B, lease of 3",
            "good clocks, a finer measure of time",
            World {
                lease: 3,
                ..timed()
            },
        ),
        kept(
            "C, late",
            "good clocks, servers that lose all, late messages",
            World {
                forgets: true,
                late: true,
                ..timed()
            },
        ),
        kept(
            "3 rejoin, equal, C",
            "the same, and servers lose all, with grant-after",
            World {
                forgets: true,
                ..timed()
            }
            .without(&[RejoinEqual]),
        ),
        kept(
            "0 odd",
            "4 servers, of which 3 are the majority",
            World {
                servers: 4,
                clients: vec![
                    Client {
                        names: 0b1111,
                        quorum: 3
                    };
                    2
                ],
                late: false,
                ..wild()
            },
        ),
        kept(
            "A, twice",
            "no clock is any good, 2 clients that try twice",
            World {
                late: false,
                ..twice(wild())
            },
        ),
    ]
}

/// A rule taken away, and nothing breaks.
pub fn not_needed() -> Vec<Run> {
    use Without::*;
    vec![
        kept(
            "2 late grants",
            "late grants count where FENCE replied the token",
            wild().without(&[NoLateGrants]),
        ),
        kept(
            "2 late grants, timed",
            "the same with good clocks",
            timed().without(&[NoLateGrants]),
        ),
        kept(
            "2 greatest",
            "the first token instead of the greatest",
            wild().without(&[Greatest]),
        ),
        kept(
            "3 lost for ever",
            "a hold comes back after its validity, where FENCE replied the token",
            timed().without(&[LostForEver]),
        ),
        kept(
            "3 rejoin, FENCE",
            "a server that comes back counts when it granted, or sends ONCE again",
            timed().without(&[RejoinFenced]),
        ),
        kept(
            "3 rejoin, equal",
            "a server that comes back counts whatever FENCE replied",
            timed().without(&[RejoinEqual]),
        ),
    ]
}

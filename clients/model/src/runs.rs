//! The worlds that are walked: with all rules, and with one of them taken away.

use crate::rules::{Client, Promise, Without, World};

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
        clients: vec![Client { names: 0b111, quorum: 2 }; 2],
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
        promises: vec![Promise::Rising, Promise::RisingAsGiven, Promise::Alone, Promise::Freed],
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
    Run { name, says, world, expect: Expect::Kept }
}

fn broken(name: &'static str, says: &'static str, promise: Promise, world: World) -> Run {
    let rising = matches!(promise, Promise::Rising | Promise::RisingAsGiven);
    // A lease of one tick makes fewer states, too.
    let lease = world.lease.min(1);
    let world = World { one_clock: !rising, lease, ..world.promising(promise) };
    Run { name, says, world, expect: Expect::Broken(promise) }
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
        kept("A", "no clock is any good, 2 clients, late messages", wild()),
        kept("A, restarts", "and servers restart with their memory; FENCE makes the counter",
            World { counted: false, restarts: true, ..wild() }),
        kept("B", "good clocks, 2 clients", timed()),
        kept("B, from the first request", "validity as rule 2 says it", timed().without(&[FromFence])),
        kept("C", "good clocks, servers that lose all, grant-after",
            World { forgets: true, ..timed() }),
    ]
}

/// All rules, within bounds that take minutes.
pub fn kept_long() -> Vec<Run> {
    let twice = |world| World { attempts: 2, ..world };
    let three = |world: World| World { clients: vec![world.clients[0]; 3], ..world };
    vec![
        kept("B, late", "good clocks, late messages, restarts, FENCE makes the counter",
            World { late: true, restarts: true, counted: false, ..timed() }),
        kept("B, letters", "good clocks, answers long under way", World { letters: true, late: true, ..timed() }),
        kept("B, twice", "good clocks, 2 clients that try twice", twice(timed())),
        kept("B, lease of 3", "good clocks, a finer measure of time", World { lease: 3, ..timed() }),
        kept("C, late", "good clocks, servers that lose all, late messages",
            World { forgets: true, late: true, ..timed() }),
        kept("A, 3 clients", "no clock is any good, 3 clients", World { late: false, ..three(wild()) }),
        kept("A, twice", "no clock is any good, 2 clients that try twice", World { late: false, ..twice(wild()) }),
    ]
}

/// A rule taken away, and what breaks.
pub fn without() -> Vec<Run> {
    use Promise::*;
    use Without::*;
    let twice = World { attempts: 2, ..timed() };
    let of = |servers, clients: &[(u8, usize)]| World {
        servers,
        clients: clients.iter().map(|(names, quorum)| Client { names: *names, quorum: *quorum }).collect(),
        ..timed()
    };
    vec![
        broken("0 same servers", "the clients name different servers", Alone,
            of(4, &[(0b0111, 2), (0b1110, 2)])),
        broken("0 majority", "4 servers, of which half is enough", Alone, of(4, &[(0b1111, 2), (0b1111, 2)])),
        broken("0 no failover", "a replica that lacks the last writes takes over", Alone,
            timed().without(&[NoFailover])),
        broken("1 fresh owner", "a client has one owner for all its attempts", Alone,
            twice.clone().without(&[FreshOwner])),
        broken("1 plain lease", "WATCHDOG: a cut connection frees the lock", Alone,
            timed().without(&[PlainLease])),
        broken("1 release at all", "no RELEASE to the silent servers: no harm, but the lock stays shut until its lease ends",
            Freed, timed().without(&[ReleaseToAll])),
        broken("2 FENCE", "no FENCE", Rising, wild().without(&[Fence])),
        broken("2 FENCE awaited", "given before FENCE was answered", Rising, wild().without(&[FenceAwaited])),
        broken("2 reply equal", "a server counts whatever it replied", Rising, wild().without(&[Equal])),
        broken("2 holder only", "a server takes FENCE from who does not hold the lock", Rising,
            wild().without(&[FenceByHolder])),
        broken("2 greatest of all", "FENCE sets the counter, and may lower it", Rising,
            wild().without(&[NeverLowered])),
        broken("2 token above counter", "a server gives tokens by its clock alone", Rising,
            wild().without(&[AboveCounter])),
        broken("2 late grants, no FENCE", "late grants count, without FENCE", Rising,
            wild().without(&[NoLateGrantsUnfenced])),
        broken("2 greatest, reply not equal", "the first token instead of the greatest, and no look at the reply", Rising,
            wild().without(&[Greatest, Equal])),
        broken("2 from before", "validity counts from the reply", Alone,
            World { letters: true, ..timed() }.without(&[CountedFromBefore])),
        broken("2 margin", "validity is the whole lease, and a server's clock runs fast", Alone,
            timed().without(&[Margin])),
        broken("2 clock", "the client's clock stands still while it is suspended", Alone,
            timed().without(&[ClockThroughSuspend])),
        broken("3 lost for ever, FENCE", "a hold comes back after its validity, by ACQUIRE ONCE without FENCE", Rising,
            timed().without(&[LostForEver, RejoinFenced])),
        broken("3 lost for ever, equal", "a hold comes back after its validity, whatever FENCE replies", Rising,
            timed().without(&[LostForEver, RejoinEqual])),
        broken("4 hold written", "a server restarts and has lost the hold", Alone,
            World { restarts: true, ..timed() }.without(&[HoldWritten])),
        broken("4 counter written", "a server restarts and has lost the counter; its clock is behind", Rising,
            World { restarts: true, ..wild() }.without(&[CounterWritten])),
        broken("4 grant-after", "a server that lost everything grants at once", Alone,
            World { forgets: true, ..timed() }.without(&[GrantAfter])),
        lasting("4 the longest lease", "grant-after is shorter than the lease", Alone,
            World { forgets: true, ..timed() }.without(&[GrantAfterWhole])),
        broken("4 clocks agree", "a server lost its counter and its clock is behind", Rising,
            World { forgets: true, ..timed() }.without(&[ClocksAgree])),
        broken("5 storage", "storage takes smaller tokens", Storage,
            World { writes: true, ..timed() }.without(&[Without::StorageChecks])),
        broken("5 not shared", "a client of s1 alone shares the key", Alone,
            of(3, &[(0b111, 2), (0b001, 1)])),
        broken("no FORCE", "somebody uses FORCE or DEL", Alone, timed().without(&[NoForce])),
        broken("no step ahead", "clocks of servers step ahead", Alone, timed().without(&[NoStep])),
        broken("as given", "no clock is any good: a slow client is given a smaller token after a greater one", RisingAsGiven,
            wild()),
        // Here the hold has to outlive one renewal.
        lasting("as written: rejoin", "a late grant is released, and its server acquired again by the same owner", Alone,
            timed().without(&[ReleasedIsOut])),
    ]
}

/// A rule taken away, and nothing breaks.
pub fn not_needed() -> Vec<Run> {
    use Without::*;
    vec![
        kept("2 late grants", "late grants count where FENCE replied the token", wild().without(&[NoLateGrants])),
        kept("2 late grants, timed", "the same with good clocks", timed().without(&[NoLateGrants])),
        kept("2 greatest", "the first token instead of the greatest", wild().without(&[Greatest])),
        kept("3 lost for ever", "a hold comes back after its validity, where FENCE replied the token",
            timed().without(&[LostForEver])),
        kept("3 rejoin, FENCE", "a server that comes back counts when it granted, or says ONCE again", timed().without(&[RejoinFenced])),
        kept("3 rejoin, equal", "a server that comes back counts whatever FENCE replied", timed().without(&[RejoinEqual])),
        kept("3 rejoin, equal, C", "the same, and servers lose all, with grant-after",
            World { forgets: true, ..timed() }.without(&[RejoinEqual])),
        kept("0 odd", "4 servers, of which 3 are the majority",
            World { servers: 4, clients: vec![Client { names: 0b1111, quorum: 3 }; 2], late: false, ..wild() }),
    ]
}

//! The rules, what may happen, and what is promised.

/// A rule that can be taken away, or something that the promise excludes and that can be let
/// in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Without {
    /// 1: each attempt has a fresh owner; else a client has one for all its attempts.
    FreshOwner,
    /// 1: plain leases; else WATCHDOG, and a cut connection frees the lock.
    PlainLease,
    /// 1: RELEASE is sent to the servers that did not answer, too.
    ReleaseToAll,
    /// 2: the token is the greatest received; else the least.
    Greatest,
    /// 2: grants that come when the token is fixed do not count; else they do, if FENCE
    /// replies the token.
    NoLateGrants,
    /// The same, and they count without FENCE.
    NoLateGrantsUnfenced,
    /// 2: FENCE at all.
    Fence,
    /// 2: the replies to FENCE are waited for.
    FenceAwaited,
    /// 2: a server counts only if it replied the token.
    Equal,
    /// 2: the server takes FENCE from the holder only.
    FenceByHolder,
    /// 2: FENCE never lowers the counter.
    NeverLowered,
    /// A token is greater than the counter; else it goes by the clock alone.
    AboveCounter,
    /// 2, 3: validity counts from before the request was sent; else from its reply.
    CountedFromBefore,
    /// 2: validity is shorter than the lease, by more than clocks can differ.
    Margin,
    /// 2: the client's clock runs while the machine is suspended.
    ClockThroughSuspend,
    /// 3: past its validity a hold is lost for ever.
    LostForEver,
    /// 3: a server that comes back counts when FENCE was answered; else when it granted.
    RejoinFenced,
    /// 3: ... and when FENCE replied the token; else whatever it replied.
    RejoinEqual,
    /// 4: the hold is written before the reply.
    HoldWritten,
    /// 4: the counter is written before the reply.
    CounterWritten,
    /// 4: grant-after; else a server that lost its data grants at once.
    GrantAfter,
    /// 4: grant-after is the longest lease; else a tick less.
    GrantAfterWhole,
    /// 4: clocks agree within grant-after.
    ClocksAgree,
    /// 5: storage refuses smaller tokens.
    StorageChecks,
    /// 0: no failover to a replica that lacks the last writes.
    NoFailover,
    /// Nobody uses FORCE or DEL.
    NoForce,
    /// No clock of a server steps ahead.
    NoStep,
    /// Mended: validity counts from before FENCE was sent; else from before the first request.
    FromFence,
    /// Mended: a server that was sent RELEASE is out for that owner.
    ReleasedIsOut,
}

/// What is promised of every state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// A token that is fixed when another one was given is greater when it is given itself; and
    /// no token is given twice.
    Rising,
    /// Tokens rise in the very order in which they are given.
    RisingAsGiven,
    /// No two programs believe that they hold the lock.
    Alone,
    /// Storage takes no smaller token after a greater one.
    Storage,
    /// What an attempt that is over holds at a server is on its way to be released.
    Freed,
}

/// What a walk should come by, so that the promises are not kept by doing nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    Held,
    /// A second hold, when the first was released or lost.
    Second,
    /// A hold that lives by a server that came later.
    Rejoined,
}

#[derive(Clone, Debug)]
pub struct World {
    pub servers: usize,
    /// Each with the servers that it names and how many of them are its majority.
    pub clients: Vec<Client>,
    /// How often each of them tries, one after the other.
    pub attempts: usize,
    /// Ticks before which no server ends a lease. 0: leases end at any time, validity is not
    /// looked at, and no clock is any good.
    pub lease: u8,
    /// The answers to RENEW are letters that may be long under way; else they come at once or
    /// never. Without them it is the same but where validity counts from the reply.
    pub letters: bool,
    /// Each token is greater than all before it, as by one clock for all servers. It makes fewer
    /// states, where a broken promise has to be found and not to be excluded.
    pub one_clock: bool,
    /// Every grant makes the counter (`rlock.fencing counter`), not FENCE alone.
    pub counted: bool,
    /// Servers restart with their memory.
    pub restarts: bool,
    /// Servers lose all that they had.
    pub forgets: bool,
    /// What an attempt sent comes when it is over, too.
    pub late: bool,
    /// Programs write to the storage, even when their hold is over.
    pub writes: bool,
    pub without: Vec<Without>,
    pub promises: Vec<Promise>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client {
    pub names: u8,
    pub quorum: usize,
}

impl World {
    pub fn keeps(&self, rule: Without) -> bool {
        !self.without.contains(&rule)
    }

    pub fn is_timed(&self) -> bool {
        self.lease > 0
    }

    /// For so many ticks a server counts.
    pub fn validity(&self) -> u8 {
        self.lease + u8::from(!self.keeps(Without::Margin))
    }

    /// No server counts before it has answered FENCE, nor from before that was sent: it does not
    /// matter how long an attempt has been under way.
    pub fn counts_replies(&self) -> bool {
        use Without::*;
        [FromFence, Fence, FenceAwaited, NoLateGrantsUnfenced]
            .iter()
            .all(|rule| self.keeps(*rule))
    }

    pub fn client_of(&self, attempt: usize) -> usize {
        attempt / self.attempts
    }

    pub fn client(&self, attempt: usize) -> Client {
        self.clients[self.client_of(attempt)]
    }

    pub fn tries(&self) -> usize {
        self.clients.len() * self.attempts
    }

    /// Under which name an attempt is known to the servers.
    pub fn owner(&self, attempt: usize) -> u8 {
        let owner = match self.keeps(Without::FreshOwner) {
            true => attempt,
            false => self.client_of(attempt) * self.attempts,
        };
        owner as u8 + 1
    }
}

//! What may happen in one step.

use crate::state::Token;

/// What becomes of the reply that says that the lock was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It never comes.
    Never,
    /// It comes in time: the server may be one of the majority.
    InTime,
    /// It comes when the token is fixed, and the client sends a RELEASE.
    Late,
    /// The same, and the client counts the server.
    Counted,
}

/// Attempts and servers by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Begin(usize),
    /// A server takes an ACQUIRE of this attempt, whenever that was sent.
    Grant {
        by: usize,
        to: usize,
        token: Token,
        arrival: Arrival,
    },
    /// The client takes the servers that it knows of for its majority.
    Fix(usize),
    /// A server takes a RENEW … FENCE, whenever that was sent. Whether the reply comes.
    Fence {
        by: usize,
        of: usize,
        answered: bool,
    },
    /// The two steps of the same where letters are long under way.
    Answer {
        by: usize,
        to: usize,
    },
    Hear {
        from: usize,
        who: usize,
    },
    Give(usize),
    GiveUp(usize),
    Finish(usize),
    /// A server takes a RELEASE, whenever that was sent.
    Release {
        by: usize,
        of: usize,
    },
    /// The program writes to the storage.
    Write(usize),
    Tick,
    /// The clock of this client stands still meanwhile.
    TickBut(usize),
    Expire(usize),
    Restart(usize),
    Forget(usize),
    Failover(usize),
    Force(usize),
    /// The connection of the holder is cut, and its WATCHDOG frees the lock.
    Cut(usize),
}

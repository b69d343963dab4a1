//! All that is due without a request: a class for each kind of work, in the order in which they
//! are done, each with what it needs and when it is due. [`run`](super::run) does them.

use super::watchdog::ROUND_MS;
use super::{Core, MonoUs, WallMs};

/// A class of what is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Due {
    /// The requests of connections that have closed leave. Before they have, nothing can be
    /// decided.
    Leaves,
    /// BLOCK times, and times for which a place is kept, are over.
    TimesOut,
    /// Requests that are queued for locks whose slot has gone are sent away.
    SentAway,
    /// All that is known of some keys is void: nothing is to be found there.
    Void,
    /// What follows for each of very many whose lock has ended.
    Endings,
    /// Keys that are on another node, perhaps, are looked at again.
    Away,
    /// What was noted is heard.
    Notes,
    /// Keys and connections of which something was heard are looked at, and what other decisions
    /// have left is drained.
    Heard,
    /// Watched leases are renewed: before any ends, should the server have stood still.
    Renewals,
    /// Leases end.
    Ends,
    /// It is looked who is silent for too long, and has what somebody waits for.
    Silence,
    /// As `Endings`, where that is written.
    WrittenEndings,
    /// Locks are read on of which not all who hold them are known.
    Unread,
    /// Turns of those who wait by subscription are over.
    Turns,
    /// Who holds what somebody waits for, and wants to know, is told again.
    Hints,
    /// It is found out further who waits in a cycle.
    Inquiry,
    /// Watched keys are looked at, for nobody tells when a key is overwritten: what is found is heard
    /// for the next time. To look needs no gate, which costs a command there.
    Rounds,
}

/// When a class is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    Now,
    At(MonoUs),
    AtWall(WallMs),
    /// Each time that the timer fires, and at the latest after so many ms.
    Within(i64),
}

/// A key whose slot migrates to another node is looked at after so many ms: it may come back.
const AWAY_MS: i64 = 100;

impl Due {
    pub const ORDER: [Self; 17] = [
        Self::Leaves,
        Self::TimesOut,
        Self::SentAway,
        Self::Void,
        Self::Endings,
        Self::Away,
        Self::Notes,
        Self::Heard,
        Self::Renewals,
        Self::Ends,
        Self::Silence,
        Self::WrittenEndings,
        Self::Unread,
        Self::Turns,
        Self::Hints,
        Self::Inquiry,
        Self::Rounds,
    ];

    /// Locks may be changed by it: the gate is to be open.
    pub fn needs_gate(self) -> bool {
        self >= Self::Away && self != Self::Rounds
    }

    /// It is done at the start of a command of ours too. (A command takes into account what was
    /// heard of its own keys when it looks at them; the rest is not its business.)
    pub fn is_of_commands(self) -> bool {
        self == Self::Notes
    }

    /// When it is due, as far as the core knows: of `Notes` only the shell does.
    pub fn next(self, core: &Core) -> Option<When> {
        match self {
            Self::TimesOut => core.next_over().map(When::At),
            Self::Rounds => core.is_watching().then_some(When::Within(ROUND_MS)),
            Self::Away => (!core.away.is_empty()).then_some(When::Within(AWAY_MS)),
            Self::Renewals => core.watchdogs.next_renewal().map(When::AtWall),
            Self::Ends => core.next_expiry().map(When::AtWall),
            Self::Silence => core.next_silence().map(When::At),
            Self::Turns => core.next_turn().map(When::At),
            Self::Hints => core.next_hint().map(When::At),
            Self::Inquiry => core.next_inquiry().map(When::At),
            _ => self.is_now(core).then_some(When::Now),
        }
    }

    /// Whether there is something of it to be gone on with as soon as others have had a turn.
    #[inline]
    fn is_now(self, core: &Core) -> bool {
        match self {
            Self::Leaves => !core.gone.is_empty(),
            Self::SentAway => core.queues.any_sent_away(),
            Self::Void => core.heard.is_any_void(),
            Self::Endings => core.any_ending_unwritten(),
            Self::Heard => core.has_due(),
            Self::WrittenEndings => core.any_ending(),
            Self::Unread => core.any_unread(),
            _ => false,
        }
    }

    /// Whether there is of any. Asked at each call that could go the short way, so it is written out:
    /// `Heard` is due wherever `Leaves` is, and `WrittenEndings` wherever `Endings` is.
    pub fn any_now(core: &Core) -> bool {
        Self::Heard.is_now(core)
            || Self::Unread.is_now(core)
            || Self::WrittenEndings.is_now(core)
            || Self::SentAway.is_now(core)
            || Self::Void.is_now(core)
    }
}

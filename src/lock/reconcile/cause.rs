//! Why a hold ended that is not there any more, and what is told of it.

use crate::lock::{Event, Look, Now, Reason, WallMs};

/// Why a key that is gone went, as far as we were told.
///
/// In order of weight: of several things heard of a key the greatest counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Nobody told, or only of another TTL: its deadline decides whether the
    /// lease ran out.
    Unknown,
    /// Somebody's command removed it.
    Removed,
    /// It was overwritten.
    Overwritten,
    /// Its database was emptied.
    Flushed,
    /// The server evicted it for want of memory.
    Evicted,
    /// The server expired it.
    Expired,
    /// The server is no master any more: whatever is there, what was known of it is void.
    Demoted,
}

impl Cause {
    /// This one, or what the look itself tells if nobody else does.
    pub fn or_seen(self, found: &Look) -> Self {
        match self {
            Self::Unknown if found.ran_out => Self::Expired,
            told => told,
        }
    }

    /// What is told of a lease that ended at this moment, for this cause.
    pub fn event(self, end: Option<WallMs>, now: Now) -> Option<Event> {
        let overdue = end.is_some_and(|at| now.may_be_past(at));
        match self {
            Self::Expired => Some(Event::Expired),
            Self::Evicted => Some(Event::Evicted),
            Self::Unknown if overdue => Some(Event::Expired),
            Self::Unknown | Self::Removed | Self::Overwritten | Self::Flushed | Self::Demoted => {
                None
            }
        }
    }

    /// Why a hold is lost that ended at this moment, for this cause.
    pub fn reason(self, end: Option<WallMs>, now: Now) -> Reason {
        match self.event(end, now) {
            Some(Event::Expired) => Reason::Expired,
            Some(Event::Evicted) => Reason::Evicted,
            _ => match self {
                Self::Overwritten => Reason::Overwritten,
                Self::Flushed => Reason::Flushed,
                _ => Reason::Deleted,
            },
        }
    }
}

/// How holds have ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct Over {
    /// One was written anew.
    pub revived: bool,
    /// Some lease has run out, or was evicted.
    pub ran_out: bool,
}

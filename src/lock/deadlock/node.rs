//! The nodes of the graph of who waits for whom, and how far one was followed.

use std::ops::Bound;

use crate::lock::queue::{Line, Order, Rank};
use crate::lock::table::{Shared, SharedKind};
use crate::lock::{Key, Mode, Owner, WaiterId};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Node {
    /// An owner that waits.
    Owner(Owner),
    /// All who hold a key that several may hold.
    Holders(Key),
    /// A place in a queue, and all ahead of it.
    Ahead(At),
}

/// A place in the queue of a key, as those behind it see it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct At {
    pub key: Key,
    /// They want it in this mode, in which several may hold it, and wait for those who want
    /// it in another one. `None`: they want all of it.
    pub mode: Option<Mode>,
    pub rank: Rank,
}

/// Who keeps a request out of a lock that several hold.
pub enum InTheWay {
    Nobody,
    Writer,
    All,
}

/// What of a node is looked at next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// Who holds the plain lock; of a place in a queue: who stands there.
    #[default]
    Holder,
    /// Those who hold it together, as one node.
    Holders,
    /// The same, one by one.
    Each,
    /// Those ahead.
    Ahead,
    /// Nothing any more.
    End,
}

/// How far a node was followed.
#[derive(Clone, Debug, Default)]
pub struct Cursor {
    /// Which of the owner's requests, and which of its keys.
    pub request: Option<WaiterId>,
    pub key: usize,
    /// Only that one is followed.
    pub alone: bool,
    pub stage: Stage,
    /// The last holder that was come to.
    pub hold: Option<Owner>,
}

impl Cursor {
    /// Before an owner's request.
    pub fn of_request(id: WaiterId) -> Self {
        Self {
            request: Some(id),
            ..Self::default()
        }
    }

    /// Of a request alone.
    pub fn of_one_request(id: WaiterId) -> Self {
        Self {
            alone: true,
            ..Self::of_request(id)
        }
    }

    /// Nothing was looked at yet.
    pub fn is_at_start(&self) -> bool {
        self.stage == Stage::Holder && self.hold.is_none()
    }

    /// Which of the request's keys the last step was about.
    pub fn followed(&self) -> usize {
        // What stands ahead is the last that is looked at of a key.
        let is_next = self.stage == Stage::Holder;
        self.key.saturating_sub(usize::from(is_next))
    }

    pub fn next_key(&mut self) {
        self.key = self.key.saturating_add(1);
        self.stage = Stage::Holder;
        self.hold = None;
    }
}

impl InTheWay {
    pub fn of(mode: Mode, shared: &Shared) -> Self {
        match shared.kind {
            SharedKind::ReadWrite if mode == Mode::Read => Self::Writer,
            // Any of them that come back will do (`hoards`).
            SharedKind::Permits(_) if mode == Mode::Permits => Self::Nobody,
            SharedKind::ReadWrite | SharedKind::Permits(_) => Self::All,
        }
    }
}

impl At {
    /// Those who stand in the queue, as far as they are in the way.
    pub fn of<'l>(&self, line: &'l Line) -> &'l Order {
        match self.mode {
            Some(_) => &line.queue,
            None => &line.entangled,
        }
    }

    /// The place ahead.
    pub fn before(&self, queue: &Order) -> Option<Self> {
        let ahead = (Bound::Unbounded, Bound::Excluded(&self.rank));
        let (rank, _) = queue.range(ahead).next_back()?;
        Some(Self {
            rank: rank.clone(),
            ..self.clone()
        })
    }
}

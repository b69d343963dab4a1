//! Who waits for whom, as a graph that is no larger than the queues and the holds are.
//!
//! An owner waits for those who hold a key, and for those ahead of it in a queue. With an
//! edge for each pair there would be as many as the square of a crowd. So all who hold a key
//! are one node, and all ahead of a place in a queue are one too: it leads to the owner that
//! stands there and to the node of the place before it. Each is come to once.
//!
//! A node is followed in steps ([`Cursor`]), each of which costs a few look-ups, whatever the
//! node leads to: a search can stop after any of them and go on later.

use crate::lock::queue::{Rank, Waiter};
use crate::lock::table::{Entry, Hold, Shared};
use crate::lock::{Core, Key, Now, Owner, WaiterId, WallMs};

use super::node::{At, Cursor, InTheWay, Node, Stage};

/// What a step has come to.
pub enum Step {
    /// The node leads there.
    To(Node),
    /// To nothing; there may be more.
    Nothing,
    /// It leads nowhere else.
    End,
}

pub struct Graph<'a> {
    core: &'a Core,
    /// A lease that ended before holds nobody up.
    now: WallMs,
}

impl<'a> Graph<'a> {
    pub fn new(core: &'a Core, now: Now) -> Self {
        let now = now.wall_ms();
        Self { core, now }
    }

    /// Follows a node one step further.
    pub fn step(&self, node: &Node, cursor: &mut Cursor) -> Step {
        match node {
            Node::Owner(owner) => self.step_of_owner(owner, cursor),
            Node::Holders(key) => self.step_of_holders(key, cursor),
            Node::Ahead(at) => self.step_ahead(at, cursor),
        }
    }

    /// Whether an owner waits for another on a key, by this request.
    pub fn waits_for(&self, id: WaiterId, key: &Key, other: &Owner) -> bool {
        let Some((waiter, entry)) = self.request(id, key) else {
            return false;
        };
        if !waiter.keys.contains(key) {
            return false;
        }
        let is_itself = waiter.want.owner == *other;
        !is_itself && (self.is_kept_out(waiter, entry, other) || self.is_behind(waiter, key, other))
    }

    /// The request, if its owner does not hold the key already, one of those that it wants; and
    /// what is known of that. Who stands ahead is known also where nothing else is.
    fn request(&self, id: WaiterId, key: &Key) -> Option<(&'a Waiter, Option<&'a Entry>)> {
        let waiter = self.core.queues.get(id)?;
        let entry = self.core.locks.get(key);
        let holder = self.plain(entry).map(|hold| &hold.owner);
        (holder != Some(&waiter.want.owner)).then_some((waiter, entry))
    }

    fn is_kept_out(&self, waiter: &Waiter, entry: Option<&Entry>, by: &Owner) -> bool {
        if self.plain(entry).is_some_and(|hold| hold.owner == *by) {
            return true;
        }
        let shared = self.shared(entry);
        let hold = || shared?.hold(by).filter(|hold| self.holds(hold));
        match shared.map(|shared| (InTheWay::of(waiter.want.mode, shared), shared)) {
            Some((InTheWay::All, _)) => hold().is_some(),
            Some((InTheWay::Writer, shared)) => shared.writer() == Some(by),
            Some((InTheWay::Nobody, _)) | None => false,
        }
    }

    fn is_behind(&self, waiter: &Waiter, key: &Key, other: &Owner) -> bool {
        let place = self.place(waiter, key);
        let queues = &self.core.queues;
        let ahead = queues.requests(other, key);
        let mut ahead = ahead.take_while(|(rank, _)| *rank < place);
        let mode = waiter.want.mode;
        let conflicts = |id| {
            let other = queues.get(id).map(|other| other.want.mode);
            !mode.is_for_several() || other != Some(mode)
        };
        ahead.any(|(_, id)| conflicts(id))
    }

    // An owner leads to what its requests wait for, key by key.

    fn step_of_owner(&self, owner: &Owner, cursor: &mut Cursor) -> Step {
        let Some(id) = cursor.request else {
            cursor.request = self.core.queues.next_of(owner, None);
            return cursor.request.map_or(Step::End, |_| Step::Nothing);
        };
        let waiter = self.core.queues.get(id);
        let Some(key) = waiter.and_then(|waiter| waiter.keys.get(cursor.key)) else {
            let next = || self.core.queues.next_of(owner, Some(id));
            let Some(next) = (!cursor.alone).then(next).flatten() else {
                return Step::End;
            };
            *cursor = Cursor::of_request(next);
            return Step::Nothing;
        };
        let Some((waiter, entry)) = self.request(id, key) else {
            cursor.next_key();
            return Step::Nothing;
        };
        let to = match cursor.stage {
            Stage::Holder => {
                cursor.stage = Stage::Holders;
                self.plain(entry).map(|hold| hold.owner.clone())
            }
            Stage::Holders => return self.step_to_holders(waiter, key, entry, cursor),
            Stage::Each => match next_holder(entry, cursor) {
                Some(hold) => Some(hold.owner.clone()).filter(|_| self.holds(hold)),
                None => {
                    cursor.stage = Stage::Ahead;
                    None
                }
            },
            Stage::Ahead | Stage::End => {
                cursor.next_key();
                let at = self.next_ahead(waiter, key);
                return at.map_or(Step::Nothing, |at| Step::To(Node::Ahead(at)));
            }
        };
        self.to_owner(to.filter(|to| to != owner))
    }

    /// All who hold it are one node, but not to one of them: it does not wait for itself.
    fn step_to_holders(
        &self,
        waiter: &Waiter,
        key: &Key,
        entry: Option<&Entry>,
        cursor: &mut Cursor,
    ) -> Step {
        cursor.stage = Stage::Ahead;
        let Some(shared) = self.shared(entry) else {
            return Step::Nothing;
        };
        let owner = &waiter.want.owner;
        match InTheWay::of(waiter.want.mode, shared) {
            InTheWay::Nobody => Step::Nothing,
            InTheWay::Writer => {
                let writer = shared.writer().filter(|writer| *writer != owner);
                self.to_owner(writer.cloned())
            }
            InTheWay::All if shared.hold(owner).is_none() => Step::To(Node::Holders(key.clone())),
            InTheWay::All => {
                cursor.stage = Stage::Each;
                Step::Nothing
            }
        }
    }

    // Holders.

    fn step_of_holders(&self, key: &Key, cursor: &mut Cursor) -> Step {
        match next_holder(self.core.locks.get(key), cursor) {
            Some(hold) if self.holds(hold) => self.to_owner(Some(hold.owner.clone())),
            Some(_) => Step::Nothing,
            None => Step::End,
        }
    }

    // Places in a queue.

    fn step_ahead(&self, at: &At, cursor: &mut Cursor) -> Step {
        let queue = at.of(self.core.queues.line(&at.key));
        match cursor.stage {
            Stage::Holder => {
                cursor.stage = Stage::Ahead;
                let there = queue.at(&at.rank).and_then(|id| self.core.queues.get(id));
                let other = there.filter(|waiter| Some(waiter.want.mode) != at.mode);
                // It waits for all ahead of it itself.
                let wants_all = |waiter| at.mode.is_some() && self.wants_all_of(waiter, &at.key);
                if other.is_some_and(wants_all) {
                    cursor.stage = Stage::End;
                }
                self.to_owner(other.map(|waiter| waiter.want.owner.clone()))
            }
            Stage::Ahead => {
                cursor.stage = Stage::End;
                at.before(queue)
                    .map_or(Step::End, |at| Step::To(Node::Ahead(at)))
            }
            Stage::Holders | Stage::Each | Stage::End => Step::End,
        }
    }

    /// The place right ahead of a request in the queue of a key, of those it waits behind.
    /// Most stand in no other queue: such a one waits for nobody for whom the one behind it
    /// does not wait too, so only a reader, or one that wants permits, looks at it.
    fn next_ahead(&self, waiter: &Waiter, key: &Key) -> Option<At> {
        let line = self.core.queues.line(key);
        let own = waiter.want.mode;
        let mode = own.is_for_several().then_some(own);
        // As a rule, and then there can be very many.
        if mode.is_some_and(|mode| line.is_all_of(mode)) {
            return None;
        }
        let at = At {
            key: key.clone(),
            mode,
            rank: self.place(waiter, key).clone(),
        };
        at.before(at.of(line))
    }

    /// Where a request stands in the queue of a key: behind its owner's first request for the
    /// key nobody is in its way, for once that is granted the rest need not queue.
    fn place<'w>(&self, waiter: &'w Waiter, key: &Key) -> &'w Rank
    where
        'a: 'w,
    {
        // Else its owner has but one.
        let twice = !self.core.queues.line(key).entangled.is_empty();
        let first = || self.core.queues.first_of(&waiter.want.owner, key);
        twice.then(first).flatten().unwrap_or(&waiter.rank)
    }

    /// Whether it really waits here, for the whole lock.
    fn wants_all_of(&self, waiter: &Waiter, key: &Key) -> bool {
        let owner = &waiter.want.owner;
        let holder = self.plain(self.core.locks.get(key));
        let is_first = || self.core.queues.first_of(owner, key) == Some(&waiter.rank);
        !waiter.want.mode.is_for_several()
            && holder.is_none_or(|hold| hold.owner != *owner)
            && is_first()
    }

    // Who holds.

    /// One who waits nowhere waits for nobody.
    fn to_owner(&self, owner: Option<Owner>) -> Step {
        let waits = |owner: &Owner| self.core.queues.owner(owner).is_some();
        let owner = owner.filter(waits);
        owner.map_or(Step::Nothing, |owner| Step::To(Node::Owner(owner)))
    }

    /// A hold that ends then holds anybody up. A watched one may have only stood still.
    fn lives(&self, hold: &Hold, end: Option<WallMs>) -> bool {
        let renewed = || hold.watch.as_ref().is_some_and(|w| w.next.is_some());
        end.is_none_or(|at| at >= self.now) || renewed()
    }

    /// The plain hold, if it is not over.
    fn plain<'e>(&self, entry: Option<&'e Entry>) -> Option<&'e Hold> {
        let hold = entry?.plain()?;
        self.lives(hold, entry?.deadline).then_some(hold)
    }

    /// The holders of a lock that several may hold, if that is not over.
    fn shared<'e>(&self, entry: Option<&'e Entry>) -> Option<&'e Shared> {
        entry?.shared().filter(|shared| {
            let mut holds = shared.holds();
            holds.any(|hold| self.lives(hold, shared.expires))
        })
    }

    fn holds(&self, hold: &Hold) -> bool {
        hold.writes || self.lives(hold, hold.lease.end())
    }
}

fn next_holder<'e>(entry: Option<&'e Entry>, cursor: &mut Cursor) -> Option<&'e Hold> {
    let last = cursor.hold.take();
    let shared = entry?.shared()?;
    let hold = shared.holds_behind(last.as_deref()).next()?;
    cursor.hold = Some(hold.owner.clone());
    Some(hold)
}

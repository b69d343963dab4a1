//! Whether owners are part of a cycle, where that takes longer to find out than one request
//! may: some steps at a time, between other clients' requests.
//!
//! One pass is for all who are suspected then. It goes depth first from each of them and
//! comes to each node once. Where it comes to a node that it is on the way from, the way goes
//! round. Others go on meanwhile, but a cycle stays until somebody leaves it, so a pass finds
//! each that was there when it began. One that comes about later has a suspect of its own, for
//! the next pass.

use std::collections::{BTreeMap, BTreeSet};

use super::node::{Cursor, Node};
use super::steps::Steps;

use crate::lock::{Link, MonoUs, Now, Owner, WaiterId};

/// What cannot be found again when it is looked at makes a pass end, if there is so much of it.
const MOST_BROKEN: u32 = 16;

/// After a pass others have the processor for so many us for each of its steps, of which most
/// take a third of that.
const REST_US: usize = 1;

#[derive(Clone, Debug)]
pub struct Inquiry {
    /// Of searches on the spot.
    pub steps: Steps,
    suspects: BTreeSet<Owner>,
    pub(super) pass: Option<Box<Pass>>,
    /// The next pass does not begin before this.
    next: MonoUs,
}

impl Default for Inquiry {
    fn default() -> Self {
        Self {
            steps: Steps::default(),
            suspects: BTreeSet::new(),
            pass: None,
            next: MonoUs(i64::MIN),
        }
    }
}

impl Inquiry {
    /// An owner may be part of a cycle.
    pub fn suspect(&mut self, owner: &Owner) {
        self.suspects.insert(owner.clone());
    }

    /// When it goes on, if anything is to be found out.
    pub fn due(&self) -> Option<MonoUs> {
        let any = self.pass.is_some() || !self.suspects.is_empty();
        any.then_some(self.next)
    }

    /// Nothing is under way.
    #[cfg(test)]
    pub fn is_at_rest(&self) -> bool {
        self.pass.is_none() && self.suspects.is_empty()
    }

    /// The pass that is under way, or the next.
    pub(super) fn take(&mut self) -> Option<Box<Pass>> {
        let suspects = &mut self.suspects;
        let mut next = || (!suspects.is_empty()).then(|| Pass::of(std::mem::take(suspects)));
        self.pass.take().or_else(|| next().map(Box::new))
    }

    /// Whether an owner's requests can have closed a cycle that this pass has come to: it may
    /// have come about since the pass began.
    pub(super) fn is_suspect(&self, pass: &Pass, owner: &Owner) -> bool {
        let all = [&pass.suspects, &self.suspects];
        all.iter().any(|suspects| suspects.contains(owner))
    }

    /// The pass is over.
    pub(super) fn has_ended(&mut self, pass: &Pass, now: Now) {
        let rest = pass.steps.saturating_mul(REST_US);
        self.next = now.mono.plus_us(i64::try_from(rest).unwrap_or(i64::MAX));
    }

    /// What it was to find out is to be found out again.
    pub(super) fn give_up(&mut self, pass: &mut Pass) {
        self.suspects.extend(pass.suspects.iter().cloned());
        pass.give_up();
    }
}

/// A node on the way that a pass goes.
#[derive(Clone, Debug)]
pub(super) struct Stop {
    pub node: Node,
    pub cursor: Cursor,
    /// Before its last step.
    pub before: Cursor,
}

/// A way that goes round, of which each link is looked at.
#[derive(Clone, Debug)]
pub(super) struct Round {
    /// From here on it is the pass's way,
    pub from: usize,
    /// which was looked at as far as this.
    pub at: usize,
    pub links: Vec<(Link, WaiterId)>,
    /// Those of its requests that can have closed it.
    pub closing: BTreeSet<WaiterId>,
}

#[derive(Clone, Debug)]
pub(super) struct Pass {
    suspects: BTreeSet<Owner>,
    /// Of these, those from whom it has yet to begin.
    todo: Vec<Owner>,
    /// The nodes that were come to; whether they are on the way.
    pub seen: BTreeMap<Node, bool>,
    pub way: Vec<Stop>,
    /// So much of the way is to be gone again.
    back_to: Option<usize>,
    pub round: Option<Round>,
    broken: u32,
    steps: usize,
}

impl Pass {
    fn of(suspects: BTreeSet<Owner>) -> Self {
        let todo = suspects.iter().cloned().collect();
        Self {
            suspects,
            todo,
            seen: BTreeMap::new(),
            way: Vec::new(),
            back_to: None,
            round: None,
            broken: 0,
            steps: 0,
        }
    }

    pub fn counts(&mut self) {
        self.steps = self.steps.saturating_add(1);
    }

    pub fn goes_to(&mut self, node: Node) {
        self.seen.insert(node.clone(), true);
        self.way.push(Stop {
            node,
            cursor: Cursor::default(),
            before: Cursor::default(),
        });
    }

    /// Begins from the next suspect. If there is none, some of what was seen is forgotten;
    /// whether anything is left to do.
    pub fn begins_another(&mut self) -> bool {
        match self.todo.pop().map(Node::Owner) {
            Some(node) if !self.seen.contains_key(&node) => self.goes_to(node),
            Some(_) => {}
            None => return self.seen.pop_first().is_some(),
        }
        true
    }

    /// The node that it stands at leads nowhere else.
    pub fn is_done(&mut self) {
        if let Some(stop) = self.way.pop() {
            self.seen.insert(stop.node, false);
        }
    }

    // A way that goes round.

    pub fn goes_round(&mut self, to: &Node) {
        let from = self.way.iter().rposition(|stop| stop.node == *to);
        let from = from.unwrap_or(self.way.len());
        self.round = Some(Round {
            from,
            at: from,
            links: Vec::new(),
            closing: BTreeSet::new(),
        });
    }

    /// It is gone again from where it began, for it will not be as it was.
    pub fn take_round(&mut self) -> Option<Round> {
        let round = self.round.take()?;
        self.back_to = Some(round.from);
        Some(round)
    }

    /// It was none. Whether the pass may go on.
    pub fn drop_round(&mut self) -> bool {
        self.take_round();
        self.broken = self.broken.saturating_add(1);
        self.broken <= MOST_BROKEN
    }

    /// Steps back on the way, if it is to be gone again. Whether it did.
    pub fn steps_back(&mut self) -> bool {
        let Some(to) = self.back_to else {
            return false;
        };
        if self.way.len() <= to {
            self.back_to = None;
            if let Some(last) = self.way.last_mut() {
                last.cursor = last.before.clone();
            }
        } else if let Some(stop) = self.way.pop() {
            self.seen.remove(&stop.node);
            if let (true, Node::Owner(owner)) = (self.way.is_empty(), stop.node) {
                self.todo.push(owner);
            }
        }
        true
    }

    fn give_up(&mut self) {
        self.todo.clear();
        self.round = None;
        self.back_to = None;
        self.way.clear();
    }
}

impl Stop {
    pub fn owner(&self) -> Option<&Owner> {
        match &self.node {
            Node::Owner(owner) => Some(owner),
            Node::Holders(_) | Node::Ahead(_) => None,
        }
    }
}

//! A search over owners, breadth first, along who waits for whom: for a cycle, on the spot.
//! It is for those that are found soon; what would take longer is left to the inquiry.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::graph::{Graph, Step};
use super::node::{Cursor, Node};
use super::steps::TooFar;

use crate::lock::{Core, Key, Link, Now, Owner, WaiterId};

/// A way round, if there is one.
pub type Found = Result<Option<Vec<Link>>, TooFar>;

/// A search for the shortest way to an owner.
pub struct Search<'a> {
    core: &'a Core,
    graph: Graph<'a>,
    goal: &'a Owner,
    /// How each owner but the goal was come to; `None`: it began there.
    by: BTreeMap<Owner, Option<Link>>,
    todo: VecDeque<Owner>,
    /// The nodes between owners that were come to.
    between: BTreeSet<Node>,
    /// So many steps more.
    left: usize,
}

impl<'a> Search<'a> {
    /// Of so many steps at most.
    pub fn new(core: &'a Core, goal: &'a Owner, steps: usize, now: Now) -> Self {
        Self {
            core,
            graph: Graph::new(core, now),
            goal,
            by: BTreeMap::new(),
            todo: VecDeque::new(),
            between: BTreeSet::new(),
            left: steps,
        }
    }

    /// The way from an owner to the goal, if there is one. A search that found none can
    /// go on from another owner; what it has seen leads nowhere. `only`: it begins with
    /// this request of the owner's.
    pub fn run(&mut self, from: &Owner, only: Option<WaiterId>) -> Found {
        // The search ends where it comes to the goal, and so never goes on from there.
        let is_new = from == self.goal || !self.by.contains_key(from);
        if is_new && from != self.goal {
            self.by.insert(from.clone(), None);
        }
        if is_new {
            let cursor = only.map_or_else(Cursor::default, Cursor::of_one_request);
            if let Some(way) = self.go_on(from, cursor)? {
                return Ok(Some(way));
            }
        }
        while let Some(owner) = self.todo.pop_front() {
            if let Some(way) = self.go_on(&owner, Cursor::default())? {
                return Ok(Some(way));
            }
        }
        Ok(None)
    }

    /// Follows an owner's requests; the way to the goal, if one of them leads there.
    fn go_on(&mut self, owner: &Owner, mut cursor: Cursor) -> Found {
        let node = Node::Owner(owner.clone());
        loop {
            match self.step(&node, &mut cursor)? {
                Step::End => return Ok(None),
                Step::Nothing => {}
                Step::To(next) => {
                    let waiter = cursor.request.and_then(|id| self.core.queues.get(id));
                    let Some(key) = waiter.and_then(|waiter| waiter.keys.get(cursor.followed()))
                    else {
                        continue;
                    };
                    if let Some(last) = self.pass(owner, key, next)? {
                        return Ok(Some(self.way(last)));
                    }
                }
            }
        }
    }

    /// From an owner to the next ones, past what lies between; the link to the goal, if it is
    /// one of them.
    fn pass(&mut self, owner: &Owner, key: &Key, to: Node) -> Result<Option<Link>, TooFar> {
        let mut open = vec![(to, Cursor::default())];
        while let Some((node, mut cursor)) = open.pop() {
            if let Node::Owner(other) = &node {
                if let Some(link) = self.edge(owner, key, other) {
                    return Ok(Some(link));
                }
                continue;
            }
            if cursor.is_at_start() && !self.between.insert(node.clone()) {
                continue;
            }
            match self.step(&node, &mut cursor)? {
                Step::End => {}
                Step::Nothing => open.push((node, cursor)),
                Step::To(next) => open.extend([(node, cursor), (next, Cursor::default())]),
            }
        }
        Ok(None)
    }

    fn step(&mut self, node: &Node, cursor: &mut Cursor) -> Result<Step, TooFar> {
        self.left = self.left.checked_sub(1).ok_or(TooFar)?;
        self.core.inquiry.steps.take()?;
        Ok(self.graph.step(node, cursor))
    }

    /// Comes from an owner to another; the link, if that is the goal.
    fn edge(&mut self, owner: &Owner, key: &Key, other: &Owner) -> Option<Link> {
        let link = || Link {
            waits: owner.clone(),
            on: key.clone(),
            for_: other.clone(),
        };
        if other == owner {
            return None;
        }
        if other == self.goal {
            return Some(link());
        }
        if !self.by.contains_key(other) {
            self.by.insert(other.clone(), Some(link()));
            self.todo.push_back(other.clone());
        }
        None
    }

    fn way(&self, last: Link) -> Vec<Link> {
        let mut way = vec![last];
        while let Some(link) = way
            .last()
            .and_then(|link| self.by.get(&link.waits)?.as_ref())
        {
            way.push(link.clone());
        }
        way.reverse();
        way
    }
}

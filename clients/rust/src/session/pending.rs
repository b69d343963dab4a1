//! What still has to reach the server.

use std::sync::Arc;

use redis::Cmd;

use crate::error::Error;
use crate::request::{Request, Wait};

use super::Answer;
use super::actor::{Actor, What};
use super::entry::Phase;
use super::line::Kind;
use super::link::Link;
use super::node::NOWHERE;

/// What still has to reach the server of a request or a hold that is over for the program: CANCEL
/// and RELEASE, which are idempotent and are retried until it has taken them.
pub(super) struct PendingCommand {
    pub request: Arc<Request>,
    pub node: usize,
    /// It may wait still.
    pub waits: bool,
    pub sent: bool,
    /// Replies that are to come yet.
    pub open: u8,
    /// By one of those that have come.
    pub refused: bool,
    /// Who waits for the release: the server had lost the functions, or a sticky lock is closed.
    pub to: Vec<Answer<()>>,
}

impl PendingCommand {
    /// What ends its wait, if there is anything to end.
    fn cancel(&self, link: &Link) -> Option<Cmd> {
        if !self.waits {
            return None;
        }
        if link.speech.has_module() {
            return Some(self.request.cancel(&link.speech, None));
        }
        // The place is that of the line, in which others may be.
        let kind = Kind::of(&self.request);
        let waits = self.request.wait != Wait::Once && kind.has_places();
        if !waits || link.lines.many_in(&kind) > 0 {
            return None;
        }
        let name = link.lines.place(&kind);
        let place = name.or_else(|| self.request.stands_as.get())?;
        Some(self.request.cancel(&link.speech, Some(place)))
    }
}

impl Actor {
    /// Sends what has not been sent yet.
    pub fn send_all_pending(&mut self) {
        let unsent = self.pending.iter().filter(|(_, pending)| !pending.sent);
        let unsent: Vec<u64> = unsent.map(|(&id, _)| id).collect();
        unsent.into_iter().for_each(|id| self.send_pending(id));
    }

    fn send_pending(&mut self, id: u64) {
        let Some(pending) = self.pending.get_mut(&id).filter(|pending| !pending.sent) else {
            return;
        };
        let Some(node) = self.nodes.get_mut(pending.node) else {
            return;
        };
        let Some(link) = &node.link else {
            node.wanted = true;
            return;
        };
        (pending.sent, pending.open, pending.refused) = (true, 1, false);
        let send = |command| link.send(pending.node, What::PendingCommand { id }, command);
        let mut sent = Vec::new();
        if let Some(cancel) = pending.cancel(link) {
            pending.open = 2;
            sent.push(send(cancel));
        }
        sent.push(send(pending.request.release_all(&link.speech)));
        sent.into_iter().for_each(|one| self.follow(one));
    }

    /// Of the node that has it, as far as is known; or nowhere: to be found out.
    pub fn end_at_server(&mut self, id: u64, request: Arc<Request>, node: usize, waits: bool) {
        self.add_pending(id, request, node, waits);
        // Of many that are lost at once each comes here: it alone.
        self.send_pending(id);
    }

    /// With the next heartbeat.
    pub fn add_pending(&mut self, id: u64, request: Arc<Request>, node: usize, waits: bool) {
        self.pending.entry(id).or_insert(PendingCommand {
            request,
            node,
            waits,
            sent: false,
            open: 0,
            refused: false,
            to: Vec::new(),
        });
        if node == NOWHERE {
            self.read_slots();
        }
    }

    /// All of it is retried with a later heartbeat, as long as the server refuses any of it; or
    /// elsewhere.
    pub fn pending_answered(&mut self, id: u64, error: Option<Error>) {
        let Some(pending) = self.pending.get_mut(&id) else {
            return;
        };
        pending.open = pending.open.saturating_sub(1);
        if let Some(error) = error {
            pending.refused = true;
            if error.is_elsewhere() {
                pending.node = NOWHERE;
            } else {
                for to in pending.to.drain(..) {
                    let error = error.clone();
                    self.after.push(Box::new(move || drop(to.send(Err(error)))));
                }
            }
        }
        if pending.open > 0 {
            return;
        }
        if pending.refused {
            pending.sent = false;
            if pending.node == NOWHERE {
                self.read_slots();
            }
        } else {
            let pending = self.pending.remove(&id);
            for to in pending.into_iter().flat_map(|pending| pending.to) {
                self.answer(to, Ok(()));
            }
            self.ask_held_back();
        }
    }

    /// What the server was spoken to by is gone, or there is something better: everything goes on by
    /// a new connection. Releases that are under way are made again, and waited for.
    pub fn speak_anew(&mut self, number: usize, why: &str) {
        let its = self
            .entries
            .iter_mut()
            .filter(|(_, entry)| entry.node == number);
        let mut again = Vec::new();
        for (&id, entry) in its {
            if let Phase::Released(released) = &mut entry.phase
                && released.end.is_none()
            {
                again.push((id, Arc::clone(&entry.request), released.to.take()));
            }
        }
        self.disconnected(number, why);
        for (id, request, to) in again {
            self.add_pending(id, request, number, false);
            if let Some(pending) = self.pending.get_mut(&id) {
                pending.to.extend(to);
            }
        }
        if let Some(node) = self.nodes.get_mut(number) {
            node.is_anew = true;
        }
    }

    /// The server cannot be reached: a release is over for the program all the same.
    pub fn nobody_waits_at(&mut self, number: usize) {
        let its = self.pending.values_mut();
        let its = its.filter(|pending| pending.node == number);
        let waiting: Vec<_> = its
            .flat_map(|pending| std::mem::take(&mut pending.to))
            .collect();
        for to in waiting {
            self.answer(to, Ok(()));
        }
    }
}

//! What still has to reach the server.

use std::sync::Arc;

use redis::Cmd;

use crate::error::Error;
use crate::request::{Request, Wait};

use super::actor::{Actor, What};
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
        let place = (waits && link.lines.many_in(&kind) == 0).then(|| link.lines.place(&kind))?;
        Some(self.request.cancel(&link.speech, Some(&place)))
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
            self.pending.remove(&id);
            self.ask_held_back();
        }
    }
}

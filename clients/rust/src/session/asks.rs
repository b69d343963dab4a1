//! What the program asks the session for.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::clock;
use crate::error::{Error, Reason};
use crate::request::Request;

use super::Answer;
use super::actor::{Actor, What};
use super::direct::Sent;
use super::entry::{Asked, Entry, Phase, Released};
use super::node::NOWHERE;

impl Actor {
    pub fn acquire(&mut self, id: u64, request: Arc<Request>, asked: Asked) -> Option<Sent> {
        if self.closed {
            self.answer_asked(id, asked.to, Err(Error::closed()));
            return None;
        }
        let node = self.node_of(&request);
        let phase = Phase::Asked(asked);
        let entry = Entry {
            request,
            node,
            tag: 0,
            regains: false,
            phase,
        };
        self.entries.insert(id, entry);
        self.look_again(id);
        self.ask(id)
    }

    pub fn renew(
        &mut self,
        id: u64,
        lease: Duration,
        fence: Option<u64>,
        to: Answer<u64>,
    ) -> Option<Sent> {
        let entry = self.entries.get_mut(&id);
        let number = entry.as_ref().map_or(NOWHERE, |entry| entry.node);
        let node = self.nodes.get_mut(number);
        let mut error = "it is not held, or its node is not known".into();
        if let (Some(Entry { request, phase, .. }), Some(node)) = (entry, node)
            && let Phase::Held(held) = phase
        {
            if let Some(link) = &node.link {
                held.renewals += 1;
                let sent = clock::now();
                let renew = What::Renew {
                    id,
                    lease,
                    sent,
                    to,
                };
                let command = request.renew(&link.speech, lease, fence);
                return Some(link.send(number, renew, command));
            }
            node.wanted = true;
            error = node.last_error.clone();
        }
        self.answer(to, Err(Error::Connection(error)));
        None
    }

    /// Nobody but the session is there to take the reply.
    pub fn ask_again(&mut self, id: u64) {
        if let Some(sent) = self.ask(id) {
            self.follow(sent);
        }
    }

    /// On the connection that there is, with a new tag.
    fn ask(&mut self, id: u64) -> Option<Sent> {
        if self.comes_after_a_release(id) {
            self.held_back.insert(id);
            return None;
        }
        let entry = self.entries.get_mut(&id)?;
        let Phase::Asked(asked) = &mut entry.phase else {
            return None;
        };
        let Some(node) = self.nodes.get_mut(entry.node) else {
            self.read_slots();
            return None;
        };
        node.beat_for(entry.request.counted(entry.request.lease));
        let Some(link) = &node.link else {
            node.wanted = true;
            return None;
        };
        if !link.speech.has_module() {
            return self.try_once(id);
        }
        let now = clock::now();
        self.last_tag += 1;
        let tag = self.last_tag;
        entry.tag = tag;
        self.by_tag.insert(tag, id);
        asked.sent = now;
        asked.was_sent = true;
        let left = asked.left(entry.request.wait, now);
        let wanted = asked.hint().is_some() && link.hears_wanted;
        asked.asked_on = if wanted { link.number } else { 0 };
        let (request, speech) = (&entry.request, &link.speech);
        let command = request.acquire(speech, left, &link.channel, tag, wanted);
        let sent = link.send(entry.node, What::Acquire { id, tag }, command);
        asked.reply = Some(sent.reply.clone());
        Some(sent)
    }

    /// Whether the server may know a hold or a wait of the same job yet for one of its keys. It would
    /// take this request for that one, and what ends that one would end this.
    pub fn comes_after_a_release(&self, id: u64) -> bool {
        let Some(entry @ Entry { request, .. }) = self.entries.get(&id) else {
            return false;
        };
        if request.place.is_none() {
            return false;
        }
        // What it gave way by is ahead of it on the same connection.
        let ahead = entry.gave_way();
        let releasing = self.releasing.iter().filter(|&&id| Some(id) != ahead);
        let releasing = releasing.filter_map(|id| self.entries.get(id));
        let releasing = releasing.map(|entry| &entry.request);
        let pending = self.pending.values().map(|pending| &pending.request);
        releasing.chain(pending).any(|before| {
            before.owner == request.owner
                && before.keys.iter().any(|key| request.keys.contains(key))
        })
    }

    /// The server has taken a release.
    pub fn ask_held_back(&mut self) {
        for id in std::mem::take(&mut self.held_back) {
            self.ask_again(id);
        }
    }

    /// Another node has its slot: asked again there, when it is known which.
    pub fn ask_elsewhere(&mut self, id: u64) {
        if let Some(entry) = self.entries.get_mut(&id)
            && let Phase::Asked(asked) = &mut entry.phase
        {
            asked.forget();
            self.by_tag.remove(&entry.tag);
            entry.tag = 0;
            let (request, node) = (Arc::clone(&entry.request), entry.node);
            entry.node = NOWHERE;
            self.leave_line(&request, node, id, true);
            self.read_slots();
        }
    }

    /// The grant may be on its way from the server: CANCEL, and then RELEASE of whatever came of
    /// it. Or the hold on its way to the program: released before anything else is asked for.
    pub fn cancel(&mut self, id: u64) {
        match self.entries.get(&id).map(|entry| &entry.phase) {
            Some(Phase::Asked(asked)) => {
                let was_sent = asked.was_sent;
                let Some(entry) = self.remove(id) else { return };
                if let Some(place) = &entry.request.place {
                    place.leave();
                }
                if was_sent {
                    self.end_at_server(id, entry.request, entry.node, true);
                }
            }
            Some(Phase::Held(_)) => self.let_go(id),
            _ => {}
        }
    }

    /// The program has it no more: from here on only its release is notified of what becomes of it.
    pub fn left(&mut self, id: u64) {
        if let Some(entry) = self.entries.get(&id)
            && let Phase::Held(held) = &entry.phase
        {
            let state = Arc::clone(&held.state);
            // Unless its lease has ended.
            _ = state.reason();
            state.leave();
            self.notify(state);
        }
    }

    /// Released in the background.
    pub fn let_go(&mut self, id: u64) {
        if let Some(sent) = self.release(id, None) {
            self.follow(sent);
        }
    }

    pub fn release(&mut self, id: u64, to: Option<Answer<()>>) -> Option<Sent> {
        // An entry that is gone was lost, and whoever asks knows by the state of the hold.
        let mut end = Ok(());
        let is_held = |entry: &Entry| matches!(entry.phase, Phase::Held(_));
        if self.entries.get(&id).is_some_and(is_held)
            && let Some(entry) = self.remove(id)
            && let Phase::Held(held) = &entry.phase
        {
            // From here on the job may ask for its keys again, but not before this.
            if let Some(place) = &entry.request.place {
                place.leave();
            }
            let node = self.nodes.get(entry.node);
            if let Some(reason) = held.state.reason() {
                end = Err(Error::Lost(reason));
                if !entry.request.in_quorum {
                    self.end_at_server(id, entry.request, entry.node, false);
                }
            } else if let Some(link) = node.and_then(|node| node.link.as_ref()) {
                let token = (!held.regained).then_some(held.token);
                let release = entry.request.release(&link.speech, token);
                let sent = link.send(entry.node, What::Release { id }, release);
                let phase = Phase::Released(Released {
                    to,
                    behind: None,
                    reply: sent.reply.clone(),
                    end: None,
                    lost: None,
                });
                // That it was lost before is notified by its tag, until the reply.
                self.by_tag.insert(entry.tag, id);
                self.releasing.insert(id);
                self.entries.insert(id, Entry { phase, ..entry });
                return Some(sent);
            } else {
                let is_anew = node.is_some_and(|node| node.is_anew);
                self.end_at_server(id, entry.request, entry.node, false);
                if let Some(pending) = self.pending.get_mut(&id)
                    && is_anew
                {
                    pending.to.extend(to);
                    return None;
                }
            }
        }
        if let Some(to) = to {
            self.answer(to, end);
        }
        None
    }

    pub fn close(&mut self, done: oneshot::Sender<()>) {
        self.closed = true;
        self.closing.push(done);
        self.end_waiting_uses();
        let ids: Vec<u64> = self.entries.keys().copied().collect();
        let mut known = Vec::new();
        for id in ids {
            match self.entries.get(&id).map(|entry| &entry.phase) {
                Some(Phase::Asked(asked)) => {
                    let was_sent = asked.was_sent;
                    if let Some(entry) = self.remove(id)
                        && let Phase::Asked(asked) = entry.phase
                    {
                        self.answer_asked(id, asked.to, Err(Error::closed()));
                        if was_sent {
                            known.push((id, entry.request, entry.node));
                        }
                    }
                }
                Some(Phase::Held(held)) => {
                    let state = Arc::clone(&held.state);
                    self.let_go(id);
                    self.notify_lost(state, Reason::Closed);
                }
                _ => {}
            }
        }
        self.look_at_all_stays();
        // Behind that, for nobody is in a line any more and places are given up.
        for (id, request, node) in known {
            self.end_at_server(id, request, node, true);
        }
    }
}

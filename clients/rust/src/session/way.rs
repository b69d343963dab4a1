//! A hold gives way: it is released, and asked for again behind whoever waits, both in one write.

use std::sync::Arc;

use crate::clock;
use crate::error::{Error, Reason};
use crate::hold::Hold;
use crate::request::Wait;
use crate::state::State;

use super::Answer;
use super::actor::Actor;
use super::direct::Sent;
use super::entry::{Asked, Phase, To, Way};

impl Actor {
    /// It goes on as `new`, when that is granted. Until then it is over.
    pub fn give_way(
        &mut self,
        id: u64,
        new: u64,
        wait: Wait,
        state: Arc<State>,
        to: Answer<Hold>,
    ) -> Option<Sent> {
        let held = self.entries.get(&id).filter(|_| state.reason().is_none());
        let again = held.and_then(|entry| match &entry.phase {
            Phase::Held(held) => Some(entry.request.anew(wait, held.lease)),
            _ => None,
        });
        let Some(request) = again.map(Arc::new) else {
            // It was lost just now.
            let reason = state.reason().unwrap_or(Reason::Other);
            self.answer(to, Err(Error::Lost(reason)));
            return None;
        };
        state.give_way();
        self.notify(Arc::clone(&state));
        let sent = self.release(id, None);
        if let Some(entry) = self.entries.get_mut(&id)
            && let Phase::Released(released) = &mut entry.phase
        {
            released.behind = Some(new);
        }
        sent.into_iter().for_each(|sent| self.follow(sent));
        let mut asked = Asked::new(To::Program(to), clock::now());
        asked.way = Some(Way { id, state });
        self.acquire(new, request, asked)
    }

    /// What was released for it is answered. What could not be released, or was lost before that, is not acquired
    /// anew.
    pub fn gave_way(&mut self, id: u64, end: &Result<(), Error>) {
        match end {
            Err(error) => self.give_up_asking(id, error.clone()),
            Ok(()) if self.is_granted(id) => self.make_sure(id),
            Ok(()) => {}
        }
    }

    fn is_granted(&self, id: u64) -> bool {
        let phase = self.entries.get(&id).map(|entry| &entry.phase);
        matches!(phase, Some(Phase::Asked(asked)) if asked.token.is_some())
    }

    /// On the same connection, with another tag.
    pub fn ask_anew(&mut self, id: u64) {
        if let Some(entry) = self.entries.get_mut(&id) {
            self.by_tag.remove(&entry.tag);
            entry.tag = 0;
            self.ask_again(id);
        }
    }
}

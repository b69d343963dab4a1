//! What the program asks the session for.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::clock;
use crate::error::{Error, Reason};
use crate::hold::Hold;
use crate::request::Request;

use super::actor::{Actor, What};
use super::entry::{Asked, Entry, Phase};
use super::{Answer, Command};

impl Actor {
    pub fn asked(&mut self, command: Command) {
        match command {
            Command::Acquire { id, request, to } => self.acquire(id, request, to),
            Command::Cancel(id) => self.cancel(id),
            Command::Release { id, to } => self.release(id, to),
            Command::Renew {
                id,
                lease,
                fence,
                to,
            } => {
                if let Some(Entry {
                    request,
                    phase: Phase::Held(_),
                    ..
                }) = self.entries.get(&id)
                    && let Some(link) = &mut self.link
                {
                    let sent = clock::now();
                    let renew = What::Renew {
                        id,
                        lease,
                        sent,
                        to,
                    };
                    link.send(renew, request.renew(lease, fence));
                } else {
                    _ = to.send(Err(Error::Connection(self.last_error.clone())));
                }
            }
            Command::Acked { id, tag, end } => self.acked(id, tag, end),
            Command::Close(done) => self.close(done),
        }
    }

    fn acquire(&mut self, id: u64, request: Arc<Request>, to: Answer<Hold>) {
        if self.closed {
            _ = to.send(Err(Error::closed()));
            return;
        }
        self.beat_for(request.lease);
        let phase = Phase::Asked(Asked::new(to, clock::now()));
        let tag = 0;
        self.entries.insert(
            id,
            Entry {
                request,
                tag,
                phase,
            },
        );
        self.look_again(id);
        self.ask(id);
    }

    /// On the connection that there is, with a new tag.
    pub fn ask(&mut self, id: u64) {
        let Some(link) = &mut self.link else { return };
        let Some(entry) = self.entries.get_mut(&id) else {
            return;
        };
        let Phase::Asked(asked) = &mut entry.phase else {
            return;
        };
        let now = clock::now();
        self.last_tag += 1;
        let tag = self.last_tag;
        entry.tag = tag;
        self.by_tag.insert(tag, id);
        asked.sent = now;
        asked.was_sent = true;
        let left = asked.left(entry.request.wait, now);
        let command = entry.request.acquire(left, &link.channel, tag);
        link.send(What::Acquire { id, tag }, command);
    }

    /// The grant may be on its way: CANCEL, and then RELEASE of whatever came of it.
    pub fn cancel(&mut self, id: u64) {
        if let Some(Entry {
            phase: Phase::Asked(asked),
            ..
        }) = self.entries.get(&id)
        {
            let was_sent = asked.was_sent;
            if let Some(entry) = self.remove(id)
                && was_sent
            {
                self.owe(id, entry.request, true);
            }
        }
    }

    fn release(&mut self, id: u64, to: Option<Answer<()>>) {
        // An entry that is gone was lost, and whoever asks knows by the hold.
        let mut end = Ok(());
        if let Some(entry) = self.remove(id)
            && let Phase::Held(held) = &entry.phase
        {
            if let Some(reason) = held.state.reason() {
                end = Err(Error::Lost(reason));
            } else if let Some(link) = &mut self.link {
                link.send(What::Release { id }, entry.request.release(held.token));
                let phase = Phase::Released(to);
                self.entries.insert(
                    id,
                    Entry {
                        tag: 0,
                        phase,
                        ..entry
                    },
                );
                return;
            } else {
                self.owe(id, entry.request, false);
            }
        }
        _ = to.map(|to| to.send(end));
    }

    fn close(&mut self, done: oneshot::Sender<()>) {
        self.closed = true;
        self.closing = Some(done);
        let ids: Vec<u64> = self.entries.keys().copied().collect();
        for id in ids {
            match self.entries.get(&id).map(|entry| &entry.phase) {
                Some(Phase::Asked(asked)) => {
                    let was_sent = asked.was_sent;
                    if let Some(entry) = self.remove(id)
                        && let Phase::Asked(asked) = entry.phase
                    {
                        _ = asked.to.send(Err(Error::closed()));
                        if was_sent {
                            self.owe(id, entry.request, true);
                        }
                    }
                }
                Some(Phase::Held(held)) => {
                    let state = Arc::clone(&held.state);
                    self.release(id, None);
                    state.lose(Reason::Closed);
                }
                _ => {}
            }
        }
        if self.link.is_none() {
            // Whom it owes something is not there; leases end by themselves.
            self.owed.clear();
        }
    }
}

//! What the server replies, and what it tells.

use std::sync::Arc;
use std::time::Duration;

use redis::{PushInfo, PushKind, RedisResult, Value};

use crate::clock::{self, Time};
use crate::error::{Error, Reason};
use crate::hold::{Hold, State};

use super::actor::{Actor, What};
use super::entry::{Entry, Held, Phase};

impl Actor {
    pub fn replied(&mut self, what: What, reply: RedisResult<Value>) {
        let reply = reply.and_then(Value::extract_error);
        if let Err(error) = &reply
            && (error.code().is_none() || Error::from_redis(error).is_no_master())
        {
            // What it was about goes on, by the next connection.
            if let What::Renew { to, .. } = what {
                _ = to.send(Err(Error::Connection(error.to_string())));
            }
            let text = error.to_string();
            self.disconnected(&text);
            return;
        }
        self.failures = 0;
        match what {
            What::Acquire { id, tag } => self.acquire_replied(id, tag, reply),
            What::FirstRenew { id, tag, sent } => self.first_renewed(id, tag, sent, reply),
            What::Renew {
                id,
                lease,
                sent,
                to,
            } => {
                let end = self.renewed(id, lease, sent, reply);
                _ = to.send(end);
            }
            What::Release { id } => self.release_replied(id, reply),
            What::Cancel => {}
            What::Owed { id } => match reply {
                // Said again with a later heartbeat, as long as the server refuses.
                Err(_) => _ = self.owed.get_mut(&id).map(|owed| owed.sent = false),
                Ok(_) => _ = self.owed.remove(&id),
            },
            What::Ping { sent } => self.proof = self.proof.max(sent),
        }
    }

    fn acquire_replied(&mut self, id: u64, tag: u64, reply: RedisResult<Value>) {
        let Some(entry) = self.entries.get_mut(&id).filter(|entry| entry.tag == tag) else {
            return;
        };
        let Phase::Asked(asked) = &mut entry.phase else {
            return;
        };
        match reply {
            Ok(Value::Int(token)) => {
                let deadline = asked.sent + entry.request.lease;
                self.granted(id, token, Some(deadline));
            }
            Ok(Value::Nil) => self.fail(id, Error::NotAcquired),
            Ok(_) => asked.queued = true,
            Err(error) => self.fail(id, Error::from_redis(&error)),
        }
    }

    /// Whichever says so first, the reply or the message. `deadline` is that of a plain
    /// hold, where it is known.
    fn granted(&mut self, id: u64, token: i64, deadline: Option<Time>) {
        let Some(entry) = self.entries.get_mut(&id) else {
            return;
        };
        let Phase::Asked(asked) = &mut entry.phase else {
            return;
        };
        if asked.token.is_some() {
            return;
        }
        asked.token = Some(u64::try_from(token).unwrap_or(0));
        if asked.to.is_closed() {
            return self.cancel(id);
        }
        if let Some(reason) = asked.lost {
            return self.fail(id, Error::Lost(reason));
        }
        asked.deadline = deadline;
        let (request, tag) = (Arc::clone(&entry.request), entry.tag);
        if let (Some(acks), Some(link)) = (request.acks, &self.link) {
            return self.acks.ask(id, tag, &request, acks, link);
        }
        if !request.watchdog && deadline.is_none() {
            let sent = clock::now();
            let renew = request.renew(request.lease, None);
            if let Some(link) = &mut self.link {
                link.send(What::FirstRenew { id, tag, sent }, renew);
            }
            return;
        }
        self.give(id);
    }

    fn first_renewed(&mut self, id: u64, tag: u64, sent: Time, reply: RedisResult<Value>) {
        let Some(entry) = self.entries.get_mut(&id).filter(|entry| entry.tag == tag) else {
            return;
        };
        let lease = entry.request.lease;
        if let Phase::Asked(asked) = &mut entry.phase {
            asked.deadline = Some(sent + lease);
        }
        match reply {
            Ok(_) => self.give(id),
            Err(error) => self.refuse_grant(id, Error::from_redis(&error)),
        }
    }

    pub fn acked(&mut self, id: u64, tag: u64, end: Result<Time, Error>) {
        let Some(entry) = self.entries.get_mut(&id).filter(|entry| entry.tag == tag) else {
            return;
        };
        let lease = entry.request.lease;
        match (end, &mut entry.phase) {
            (Ok(sent), Phase::Asked(asked)) => {
                asked.deadline = Some(sent + lease);
                self.give(id);
            }
            (Err(error), _) => self.refuse_grant(id, error),
            _ => {}
        }
    }

    /// The lock is had, and what had to be made sure of is refused.
    fn refuse_grant(&mut self, id: u64, error: Error) {
        let request = self
            .entries
            .get(&id)
            .map(|entry| Arc::clone(&entry.request));
        self.fail(id, error);
        if let Some(request) = request {
            self.owe(id, request, false);
        }
    }

    /// To the program.
    fn give(&mut self, id: u64) {
        let Some(session) = self.session() else {
            return self.cancel(id);
        };
        let Some(mut entry) = self.remove(id) else {
            return;
        };
        let Phase::Asked(asked) = entry.phase else {
            return;
        };
        let request = &entry.request;
        let token = asked.token.unwrap_or(0);
        let deadline = asked.deadline.filter(|_| !request.watchdog);
        let state = Arc::new(State::new(deadline));
        let hold = Hold::new(id, Arc::clone(request), token, session, Arc::clone(&state));
        let held = Held {
            state,
            token,
            lease: request.lease,
            until: request.max.map(|max| clock::now() + max),
        };
        self.by_tag.insert(entry.tag, id);
        entry.phase = Phase::Held(held);
        self.entries.insert(id, entry);
        self.look_again(id);
        // Where nobody wants it any more the hold is dropped here, and so released.
        drop(asked.to.send(Ok(hold)));
    }

    fn renewed(
        &mut self,
        id: u64,
        lease: Duration,
        sent: Time,
        reply: RedisResult<Value>,
    ) -> Result<u64, Error> {
        let reply = match reply {
            Ok(Value::Int(reply)) => u64::try_from(reply).unwrap_or(0),
            Ok(_) => 0,
            Err(error) => {
                let error = Error::from_redis(&error);
                if let Error::Lost(reason) = error {
                    self.lose(id, reason);
                }
                return Err(error);
            }
        };
        if let Some(entry) = self.entries.get_mut(&id)
            && let Phase::Held(held) = &mut entry.phase
        {
            held.lease = lease;
            if !entry.request.watchdog {
                held.state.set_deadline(Some(sent + lease));
            }
        }
        self.beat_for(lease);
        self.look_again(id);
        Ok(reply)
    }

    fn release_replied(&mut self, id: u64, reply: RedisResult<Value>) {
        let Some(entry) = self.remove(id) else { return };
        let Phase::Released(to) = entry.phase else {
            return;
        };
        let end = reply.map(drop).map_err(|error| Error::from_redis(&error));
        if end.is_err() {
            self.owe_later(id, entry.request);
        }
        _ = to.map(|to| to.send(end));
    }

    pub fn pushed(&mut self, push: PushInfo) {
        match push.kind {
            PushKind::Disconnection => self.disconnected("the connection was closed"),
            PushKind::Message | PushKind::SMessage => {
                if let Some(Value::BulkString(text)) = push.data.get(1) {
                    let text = String::from_utf8_lossy(text).into_owned();
                    self.told(&text);
                }
            }
            _ => {}
        }
    }

    fn told(&mut self, message: &str) {
        let mut words = message.splitn(3, ' ');
        let word = words.next().unwrap_or_default();
        let tag = words.next().and_then(|tag| tag.parse().ok());
        let rest = words.next().unwrap_or_default();
        let Some(id) = tag.and_then(|tag: u64| self.by_tag.get(&tag).copied()) else {
            return;
        };
        match word {
            "granted" => {
                if let Ok(token) = rest.parse() {
                    self.granted(id, token, None);
                }
            }
            "timeout" => self.fail(id, Error::NotAcquired),
            "error" => {
                let (code, text) = rest.split_once(' ').unwrap_or((rest, ""));
                let error = Error::from_server(code, text);
                if error.is_no_master() {
                    self.disconnected(rest);
                } else {
                    self.fail(id, error);
                }
            }
            "lost" => {
                let reason = Reason::from_word(rest);
                if let Some(Entry {
                    phase: Phase::Asked(asked),
                    ..
                }) = self.entries.get_mut(&id)
                {
                    asked.lost = Some(reason);
                    if asked.token.is_some() {
                        self.refuse_grant(id, Error::Lost(reason));
                    }
                } else {
                    self.lose(id, reason);
                }
                if reason == Reason::Demoted {
                    self.disconnected("the server became a replica");
                }
            }
            _ => {}
        }
    }
}

//! What the server replies, and its messages.

use std::collections::HashSet;
use std::time::Duration;

use redis::{PushInfo, PushKind, RedisResult, Value};

use crate::clock::{self, Time};
use crate::error::{Error, Reason};
use crate::finding;

use super::actor::{Actor, What};
use super::direct::Way;
use super::entry::{Entry, Phase, Released, To};
use super::link::Link;
use super::node::NOWHERE;

impl Actor {
    pub fn replied(&mut self, way: Way, what: What, reply: RedisResult<Value>) {
        self.read_messages_before(way);
        let link = self.nodes.get(way.node).and_then(|node| node.link.as_ref());
        let link = link.filter(|link| link.number == way.link);
        let reply = finding::reply(reply);
        // A server may not know HEARTBEAT, or not let this user say it.
        let is_beat = matches!(what, What::Beat { .. });
        let is_gone =
            !is_beat && matches!((link, &reply), (Some(link), Err(error)) if is_gone(link, error));
        let failed = match (link, &reply) {
            (None, _) => Some("the connection was closed".into()),
            (Some(link), _) if link.is_broken() => Some("the slot of the channel has moved".into()),
            (_, Err(Error::Connection(text))) => Some(text.clone()),
            (_, Err(error)) if error.is_no_master() => Some(error.to_string()),
            (_, Err(error)) if is_gone => Some(error.to_string()),
            _ => None,
        };
        if let Some(text) = failed {
            // What it was about goes on, by the next connection.
            let is_there = link.is_some();
            if let What::Renew { to, .. } = what {
                self.answer(to, Err(Error::Connection(text.clone())));
            }
            match is_there {
                true if is_gone => self.speak_anew(way.node, &text),
                true => self.disconnected(way.node, &text),
                false => {}
            }
            return;
        }
        let is_plain = link.is_some_and(|link| !link.speech.has_module());
        let reply = match is_plain {
            true => reply.map_err(Error::or_deleted),
            false => reply,
        };
        let of_hold = |reply: Result<Value, Error>| match is_plain {
            true => reply.map_err(Error::or_overwritten),
            false => reply,
        };
        self.nodes[way.node].failures = 0;
        match what {
            What::Acquire { id, tag } => self.acquire_replied(id, tag, reply),
            What::FirstRenew { id, tag, sent } => self.first_renewed(id, tag, sent, reply),
            What::Renew {
                id,
                lease,
                sent,
                to,
            } => {
                let end = self.renewed(id, lease, sent, of_hold(reply));
                self.answer(to, end);
                self.want(id);
            }
            What::Regain { id, lease, sent } => self.regained(id, lease, sent, of_hold(reply)),
            What::Want { id } => self.want_answered(id, reply.err()),
            What::Keep { id, lease, sent } => self.kept(id, lease, sent, of_hold(reply)),
            What::Release { id } => self.release_replied(id, of_hold(reply)),
            What::PendingCommand { id } => self.pending_answered(id, reply.err()),
            What::Token { stay, tag } => self.token_replied(stay, tag, reply),
            What::Proof { sent } => self.proved(way.node, sent, true),
            What::Beat { sent } => self.beat_answered(way.node, sent, reply.err()),
            What::Subscribe { channel } => {
                if let Err(error) = reply {
                    self.not_heard(way.node, &channel, &error);
                }
            }
            What::Unsubscribe => {}
            What::HasModule { first } => self.module_answered(way.node, first, &reply),
        }
    }

    /// The program's task may have the reply before the session's has the messages that the
    /// server sent before it.
    fn read_messages_before(&mut self, way: Way) {
        let message = |actor: &mut Self| {
            let link = actor.nodes.get_mut(way.node)?.link.as_mut()?;
            (link.number == way.link).then(|| link.next_message())?
        };
        while let Some(message) = message(self) {
            self.pushed(way.node, message);
        }
    }

    fn acquire_replied(&mut self, id: u64, tag: u64, reply: Result<Value, Error>) {
        let Some(entry) = self.entries.get_mut(&id).filter(|entry| entry.tag == tag) else {
            return;
        };
        let Phase::Asked(asked) = &mut entry.phase else {
            return;
        };
        asked.reply = None;
        match reply {
            Ok(Value::Int(token)) => {
                let (sent, node) = (asked.sent, entry.node);
                let deadline = sent + entry.request.lease;
                self.proved(node, sent, false);
                self.granted(id, token, Some(deadline));
            }
            Ok(Value::Nil) => self.not_acquired(id),
            Ok(said) => {
                asked.stands = true;
                let stay = match asked.to {
                    To::Stay(stay, _) => Some(stay),
                    To::Program(_) => None,
                };
                if let Value::Array(said) = said {
                    self.still_taken(id, &said);
                }
                if let Some(stay) = stay {
                    self.stands(stay);
                }
            }
            Err(error) => self.refused(id, error),
        }
    }

    /// As the server has said.
    pub fn not_acquired(&mut self, id: u64) {
        let Some(Entry { request, .. }) = self.entries.get(&id) else {
            return;
        };
        let keys: HashSet<_> = request.keys.iter().collect();
        let has = |entry: &&Entry| {
            matches!(entry.phase, Phase::Held(_))
                && entry.request.keys.iter().any(|key| keys.contains(key))
        };
        let held_by = self.entries.values().find(has);
        let error = Error::NotAcquired {
            key: request.keys.first().cloned().unwrap_or_default(),
            held_by: held_by.map(|entry| entry.request.owner().into()),
        };
        self.fail(id, error);
    }

    pub fn refused(&mut self, id: u64, error: Error) {
        if self.cluster.is_some() && error.is_elsewhere() {
            self.ask_elsewhere(id);
        } else if error.is_not_yet() && self.try_later(id) {
            self.look_again(id);
        } else if error.is_superseded() && self.is_by_itself(id)
            || error.says("syntax error") && self.refuses_wanted(id, &error)
        {
            self.ask_anew(id);
        } else {
            let error = match self.cluster {
                Some(_) => error,
                None => error.or_cluster(),
            };
            self.fail(id, error);
        }
    }

    /// By what it said on a connection that is gone, and that came late.
    fn is_by_itself(&mut self, id: u64) -> bool {
        let phase = self.entries.get_mut(&id).map(|entry| &mut entry.phase);
        match phase {
            Some(Phase::Asked(asked)) => std::mem::take(&mut asked.was_sent_before),
            _ => false,
        }
    }

    /// False if the request is to be refused.
    fn try_later(&mut self, id: u64) -> bool {
        let Some(entry) = self.entries.get_mut(&id).filter(|e| !e.request.in_quorum) else {
            return false;
        };
        let Phase::Asked(asked) = &mut entry.phase else {
            return false;
        };
        asked.try_later(clock::now());
        self.by_tag.remove(&entry.tag);
        entry.tag = 0;
        true
    }

    fn renewed(
        &mut self,
        id: u64,
        lease: Duration,
        sent: Time,
        reply: Result<Value, Error>,
    ) -> Result<u64, Error> {
        if let Some(held) = self.held_mut(id) {
            held.renewals = held.renewals.saturating_sub(1);
        }
        let reply = match reply {
            Ok(Value::Int(reply)) => u64::try_from(reply).unwrap_or(0),
            Ok(_) => 0,
            Err(error) => {
                if let Error::Lost(reason) = error {
                    self.lose(id, reason);
                }
                if error.is_elsewhere() {
                    // It is retried at the node that is known then.
                    self.read_slots();
                    return Err(Error::Connection(error.to_string()));
                }
                return Err(error);
            }
        };
        if let Some(held) = self.held_mut(id) {
            held.lease = lease;
            if held.renew_at.is_some() {
                held.keep(sent, lease);
            } else if held.state.deadline().is_some() {
                held.state.set_deadline(Some(sent + lease));
            }
        }
        if let Some(entry) = self.entries.get(&id) {
            self.beat_for(entry.node, entry.request.counted(lease));
        }
        self.look_again(id);
        Ok(reply)
    }

    fn release_replied(&mut self, id: u64, reply: Result<Value, Error>) {
        let Some(entry) = self.entries.get_mut(&id) else {
            return;
        };
        let Phase::Released(released) = &mut entry.phase else {
            return;
        };
        let held = i64::try_from(entry.request.keys.len()).unwrap_or(i64::MAX);
        let end = match reply {
            // Of several locks: not all of them were held.
            Ok(Value::Int(n)) if held > 1 && n < held => Err(Error::Lost(Reason::Deleted)),
            reply => reply.map(drop),
        };
        released.end.get_or_insert(end);
        if !entry.regains {
            self.released(id);
        }
    }

    /// All replies have come.
    pub fn released(&mut self, id: u64) {
        let Some(entry) = self.remove(id) else { return };
        let Phase::Released(Released {
            to,
            behind,
            end: Some(end),
            lost,
            ..
        }) = entry.phase
        else {
            return;
        };
        let mut end = end;
        match &end {
            Err(Error::Lost(_)) => {}
            Err(error) if error.is_elsewhere() => {
                // With watchdog it was lost when its slot moved.
                end = match entry.request.watchdog {
                    true => Err(Error::Lost(Reason::Moved)),
                    false => Ok(()),
                };
                self.end_at_server(id, entry.request, NOWHERE, false);
            }
            Err(_) => self.add_pending(id, entry.request, entry.node, false),
            Ok(()) => end = lost.map_or(Ok(()), |reason| Err(Error::Lost(reason))),
        }
        if let Some(behind) = behind {
            self.gave_way(behind, &end);
        }
        if let Some(to) = to {
            self.answer(to, end);
        }
        self.ask_held_back();
    }

    pub fn pushed(&mut self, node: usize, push: PushInfo) {
        match push.kind {
            PushKind::Disconnection => self.disconnected(node, "the connection was closed"),
            PushKind::SUnsubscribe => self.disconnected(node, "the slot of the channel has moved"),
            PushKind::Message | PushKind::SMessage => {
                if let [Value::BulkString(channel), Value::BulkString(text)] = &push.data[..] {
                    let link = self.nodes.get(node).and_then(|node| node.link.as_ref());
                    if link.is_some_and(|link| link.channel.as_bytes() == channel) {
                        self.notified(node, &String::from_utf8_lossy(text));
                    } else {
                        self.heard(node, &String::from_utf8_lossy(channel));
                    }
                }
            }
            _ => {}
        }
    }

    fn notified(&mut self, node: usize, message: &str) {
        let mut words = message.splitn(3, ' ');
        let word = words.next().unwrap_or_default();
        let tag = words.next().and_then(|tag| tag.parse().ok());
        let rest = words.next().unwrap_or_default();
        let Some(id) = tag.and_then(|tag: u64| self.by_tag.get(&tag).copied()) else {
            return;
        };
        match word {
            "granted" => {
                // Words that are not known may follow.
                if rest.ends_with(" wanted") {
                    self.notified_wanted(id);
                }
                if let Some(Ok(token)) = rest.split(' ').next().map(str::parse) {
                    self.granted(id, token, None);
                }
            }
            "timeout" => self.not_acquired(id),
            "error" => {
                let (code, text) = rest.split_once(' ').unwrap_or((rest, ""));
                let error = Error::from_server(code, text);
                if error.is_no_master() {
                    self.disconnected(node, rest);
                } else {
                    self.refused(id, error);
                }
            }
            "lost" => self.notified_lost(id, node, Reason::from_word(rest)),
            "wanted" => self.notified_wanted(id),
            _ => {}
        }
    }
}

/// Whether the server does not know any more what it was spoken to by. It did nothing then.
fn is_gone(link: &Link, error: &Error) -> bool {
    match link.speech.has_module() {
        true => error.is_unknown_command(),
        false => error.is_unknown_function(),
    }
}

//! Tokens of the uses of a sticky lock. That of the acquisition is for the first use that reads it; each other one asks for
//! a new one.

use redis::Value;

use crate::clock::{self, Time};
use crate::error::{Error, Reason};

use super::Answer;
use super::actor::{Actor, What};
use super::entry::Entry;

#[derive(Default)]
pub(super) struct Tokens {
    /// Of the acquisition, until somebody has read it.
    first: Option<u64>,
    /// That of the use with this number.
    last: Option<(u64, u64)>,
    asks: Vec<Ask>,
    /// What it is nobody knows: the lock goes back at the end of this use.
    pub is_unsure: bool,
}

struct Ask {
    /// Of the use.
    number: u64,
    /// The tag of the command.
    tag: u64,
    until: Time,
    to: Vec<Answer<u64>>,
}

impl Tokens {
    pub fn of(token: u64) -> Self {
        Self {
            first: Some(token),
            ..Self::default()
        }
    }

    pub fn wake(&self) -> Option<Time> {
        self.asks.iter().map(|ask| ask.until).min()
    }

    /// Who waits for one waits no more.
    pub fn give_up(&mut self) -> Vec<Answer<u64>> {
        let asks = std::mem::take(&mut self.asks);
        asks.into_iter().flat_map(|ask| ask.to).collect()
    }
}

impl Actor {
    pub fn use_token(&mut self, id: u64, number: u64, to: Answer<u64>) {
        let Some(stay) = self.stays.get_mut(&id) else {
            return self.answer(to, Err(Error::Lost(Reason::Released)));
        };
        let is_over = !stay.turn.is_of(number);
        let acquired = stay.acquired.as_ref();
        let reason = acquired.and_then(|acquired| acquired.state.reason());
        if is_over || acquired.is_none() || reason.is_some() {
            let reason = reason.filter(|_| !is_over).unwrap_or(Reason::Released);
            return self.answer(to, Err(Error::Lost(reason)));
        }
        let tokens = &mut stay.tokens;
        if let Some(first) = tokens.first.take() {
            tokens.last = Some((number, first));
        }
        if let Some((_, token)) = tokens.last.filter(|last| last.0 == number) {
            return self.answer(to, Ok(token));
        }
        match tokens.asks.iter_mut().find(|ask| ask.number == number) {
            Some(ask) => ask.to.push(to),
            None => self.ask_for_token(id, number, to),
        }
    }

    fn ask_for_token(&mut self, id: u64, number: u64, to: Answer<u64>) {
        let now = clock::now();
        let until = now + self.timeout;
        self.last_tag += 1;
        let tag = self.last_tag;
        let Some(stay) = self.stays.get_mut(&id) else {
            return;
        };
        let to = vec![to];
        let ask = Ask {
            number,
            tag,
            until,
            to,
        };
        stay.tokens.asks.push(ask);
        let entry = stay.acquired.as_ref().map(|acquired| acquired.id);
        let entry = entry.and_then(|id| self.entries.get(&id));
        let link = entry.and_then(|entry| self.nodes.get(entry.node)?.link.as_ref());
        if let (Some(Entry { request, node, .. }), Some(link)) = (entry, link) {
            let renew = request.renew_with_token(&link.speech);
            let sent = link.send(*node, What::Token { stay: id, tag }, renew);
            self.follow(sent);
        } else {
            let error = Error::Connection("there is none to ask for a token".into());
            self.no_tokens(id, &error, |_| true);
        }
        self.look_at_stay(id);
    }

    pub fn token_replied(&mut self, id: u64, tag: u64, reply: Result<Value, Error>) {
        let Some(stay) = self.stays.get_mut(&id) else {
            return;
        };
        let token = match reply {
            Ok(Value::Int(token)) => u64::try_from(token).unwrap_or(0),
            Ok(_) => {
                let error = Error::Connection("the server has replied no token".into());
                return self.no_tokens(id, &error, |ask| ask.tag == tag);
            }
            Err(error) => {
                // Which acquisition that was about is known by who asks.
                let is_its = stay.tokens.asks.iter().any(|ask| ask.tag == tag);
                if let (Error::Lost(reason), Some(request)) = (&error, stay.id)
                    && is_its
                {
                    self.lose(request, *reason);
                }
                return self.no_tokens(id, &error, |ask| ask.tag == tag);
            }
        };
        let tokens = &mut stay.tokens;
        if let Some(at) = tokens.asks.iter().position(|ask| ask.tag == tag) {
            let ask = tokens.asks.remove(at);
            tokens.last = Some((ask.number, token));
            for to in ask.to {
                self.answer(to, Ok(token));
            }
        }
    }

    /// These fail. What the token of the lock is nobody knows then.
    fn no_tokens(&mut self, id: u64, error: &Error, fails: impl Fn(&Ask) -> bool) {
        let Some(stay) = self.stays.get_mut(&id) else {
            return;
        };
        let asks = std::mem::take(&mut stay.tokens.asks);
        let (goes, stays): (Vec<_>, Vec<_>) = asks.into_iter().partition(fails);
        stay.tokens.asks = stays;
        if goes.is_empty() {
            return;
        }
        stay.tokens.is_unsure = true;
        for to in goes.into_iter().flat_map(|ask| ask.to) {
            self.answer(to, Err(error.clone()));
        }
        self.look_at_stay(id);
    }

    pub fn let_tokens_go(&mut self, id: u64, now: Time) {
        let error = Error::Connection("no reply to the question for a token".into());
        self.no_tokens(id, &error, |ask| ask.until <= now);
    }

    /// Those that were asked for at a node whose connection is gone, of holds that outlive it.
    pub fn no_tokens_of(&mut self, node: usize, why: &str) {
        let error = Error::Connection(why.into());
        for id in self.stay_ids() {
            let entry = self.stays.get(&id).and_then(|stay| stay.id);
            let entry = entry.and_then(|id| self.entries.get(&id));
            if entry.is_some_and(|entry| entry.node == node) {
                self.no_tokens(id, &error, |_| true);
            }
        }
    }
}

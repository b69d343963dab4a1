//! The client of a session: a connection that speaks RESP3 and listens to a channel of
//! its own, on which it is notified of many requests.

use std::time::Duration;

use redis::{PushKind, Value};

use super::client::Push;
use super::reply::{text, token};
use super::{Ask, RawClient, Server, BOUND, LONG};

pub struct Session {
    pub client: RawClient,
    pub id: i64,
    pub channel: String,
    /// Messages that came before the one that was looked for.
    early: Vec<String>,
}

impl Session {
    #[track_caller]
    pub fn new(server: &Server) -> Self {
        Self::on(server.raw())
    }

    /// A session in a connection that is there already.
    #[track_caller]
    pub fn on(mut client: RawClient) -> Self {
        let id = client.client_id();
        // All channels of a cluster's sessions are in one slot, which no test moves but
        // those that are about it.
        let channel = format!("{{session}}:{id}");
        client.keep_pushes_apart();
        client.map("HELLO 3");
        let mut session = Self {
            client,
            id,
            channel,
            early: Vec::new(),
        };
        session.subscribe();
        session
    }

    /// SSUBSCRIBE in a cluster.
    #[track_caller]
    pub fn subscribe(&mut self) {
        let info = self.client.text("INFO cluster");
        let word = match info.contains("cluster_enabled:1") {
            true => "SSUBSCRIBE",
            false => "SUBSCRIBE",
        };
        self.client.send(&format!("{word} {}", self.channel));
        let (kind, _) = self.client.push_within(BOUND).expect("subscribed");
        let confirmed = matches!(kind, PushKind::Subscribe | PushKind::SSubscribe);
        assert!(confirmed, "{kind:?}");
    }

    /// What stands at the end of a request whose messages come here with this tag.
    pub fn notify(&self, tag: &str) -> String {
        format!("NOTIFY {} {tag}", self.channel)
    }

    /// The reply to a request with NOTIFY added.
    #[track_caller]
    pub fn ask(&mut self, request: &str, tag: &str) -> Value {
        let notify = self.notify(tag);
        self.client.ask(&format!("{request} {notify}"))
    }

    /// Queues this request, which has no QUEUE yet, for ever.
    #[track_caller]
    pub fn queue_by(&mut self, request: &str, tag: &str) {
        let reply = self.ask(&format!("{request} QUEUE 0"), tag);
        assert_eq!(reply, queued(), "{request}");
    }

    /// Queues for a plain lock.
    #[track_caller]
    pub fn queue(&mut self, key: &str, owner: &str, tag: &str) {
        self.queue_by(&format!("RLOCK.ACQUIRE {key} {owner} {LONG}"), tag);
    }

    /// Holds a plain lock that is free, with these words: its token.
    #[track_caller]
    pub fn hold(&mut self, key: &str, owner: &str, words: &str, tag: &str) -> i64 {
        token(self.ask(&format!("RLOCK.ACQUIRE {key} {owner} {LONG} {words}"), tag))
    }

    /// The next message, whatever it is about.
    #[track_caller]
    pub fn next(&mut self) -> String {
        if !self.early.is_empty() {
            return self.early.remove(0);
        }
        self.come(BOUND).expect("a message in time")
    }

    /// The next message about this tag; those that come before stay.
    #[track_caller]
    pub fn about(&mut self, tag: &str) -> String {
        let is_about = |message: &String| message.split(' ').nth(1) == Some(tag);
        if let Some(at) = self.early.iter().position(is_about) {
            return self.early.remove(at);
        }
        loop {
            match self.come(BOUND) {
                Some(message) if is_about(&message) => return message,
                Some(message) => self.early.push(message),
                None => panic!("nothing about {tag}, but {:?}", self.early),
            }
        }
    }

    /// The token of the grant that comes for this tag.
    #[track_caller]
    pub fn granted(&mut self, tag: &str) -> i64 {
        let message = self.about(tag);
        let told = message.strip_prefix(&format!("granted {tag} "));
        let number = told.and_then(|number| number.parse().ok());
        token(Value::Int(number.unwrap_or_else(|| panic!("{message}"))))
    }

    /// No message came that was not read, and its connection is in step.
    #[track_caller]
    pub fn is_quiet(&mut self) {
        self.client.in_step();
        assert_eq!(self.heard(), Vec::<String>::new());
    }

    /// All messages that have come.
    #[track_caller]
    pub fn heard(&mut self) -> Vec<String> {
        let mut heard = std::mem::take(&mut self.early);
        while let Some(message) = self.come(Duration::from_millis(2)) {
            heard.push(message);
        }
        heard
    }

    /// The next message to the channel; confirmations and other channels are passed over.
    #[track_caller]
    fn come(&mut self, bound: Duration) -> Option<String> {
        loop {
            let push = self.client.push_within(bound)?;
            if let Some(message) = message(push, &self.channel) {
                return Some(message);
            }
        }
    }
}

/// The text of a message to this channel.
pub fn message((kind, data): Push, channel: &str) -> Option<String> {
    let is_message = matches!(kind, PushKind::Message | PushKind::SMessage);
    let mut texts = data.into_iter().filter(|_| is_message).map(text);
    let to = texts.next()?;
    texts.next().filter(|_| to == channel)
}

/// The reply to a request that stands in its queue.
pub fn queued() -> Value {
    Value::SimpleString("QUEUED".to_owned())
}

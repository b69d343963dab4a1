//! Keyspace notifications, in order.

use redis::Value;

use super::{RawClient, Server};

/// Tells the end of what happened so far from what happens next.
const MARK: &str = "rlock-test:mark";

pub struct Listener {
    subscriber: RawClient,
    marker: RawClient,
}

impl Listener {
    /// Listens to all key events of one database from now on.
    #[track_caller]
    pub fn keyspace(server: &Server, db: u32) -> Self {
        let mut marker = server.raw();
        let set = marker.call(&["CONFIG", "SET", "notify-keyspace-events", "AKE"]);
        assert_eq!(set, Value::Okay);
        Self::patterns(server, &[&format!("__keyevent@{db}__:*")])
    }

    /// Listens to the messages of all channels that match.
    #[track_caller]
    pub fn patterns(server: &Server, patterns: &[&str]) -> Self {
        let mut subscriber = server.raw();
        for pattern in [&[MARK], patterns].concat() {
            subscriber.call(&["PSUBSCRIBE", pattern]);
        }
        Self {
            subscriber,
            marker: server.raw(),
        }
    }

    /// The key events since the last call, as (event, key).
    #[track_caller]
    pub fn events(&mut self) -> Vec<(String, String)> {
        self.messages()
            .into_iter()
            .map(|(channel, key)| match channel.split_once("__:") {
                Some((_, event)) => (event.to_owned(), key),
                None => panic!("{channel} tells of no key event"),
            })
            .collect()
    }

    /// All messages since the last call, as (channel, text). A message of one's
    /// own closes them: the server delivers in order.
    #[track_caller]
    pub fn messages(&mut self) -> Vec<(String, String)> {
        self.marker.call(&["PUBLISH", MARK, ""]);
        let mut messages = Vec::new();
        loop {
            let message = self.subscriber.read();
            match redis::from_redis_value::<Vec<String>>(message) {
                Ok(parts) if parts[0] == "pmessage" && parts[1] == MARK => return messages,
                Ok(mut parts) if parts[0] == "pmessage" && parts.len() == 4 => {
                    let text = parts.remove(3);
                    messages.push((parts.remove(2), text));
                }
                other => panic!("not a message: {other:?}"),
            }
        }
    }
}

//! Keyspace notifications, in order.

use super::{eventually, Ask, RawClient, Server};

/// Tells the end of what happened so far from what happens next.
const MARK: &str = "rlock-test:mark";

/// A channel of Redisson's, of a lock that nobody takes: while somebody listens there,
/// messages go out at once.
const THEIRS: &str = "redisson_lock__channel:{rlock-test:nobody}";

pub struct Listener {
    subscriber: RawClient,
    marker: RawClient,
    /// Waits as Redisson does.
    _redisson: Option<RawClient>,
}

impl Listener {
    /// Listens to all key events of one database from now on.
    #[track_caller]
    pub fn keyspace(server: &Server, db: u32) -> Self {
        let mut marker = server.raw();
        marker.ok("CONFIG SET notify-keyspace-events AKE");
        Self::patterns(server, &[&format!("__keyevent@{db}__:*")])
    }

    /// Listens to the messages of all channels that match.
    #[track_caller]
    pub fn patterns(server: &Server, patterns: &[&str]) -> Self {
        let mut subscriber = server.raw();
        for pattern in [&[MARK], patterns].concat() {
            subscriber.ask(&["PSUBSCRIBE", pattern]);
        }
        let theirs = patterns.iter().any(|p| p.starts_with("redisson_"));
        let redisson = theirs.then(|| server.waits_as_redisson(THEIRS));
        Self {
            subscriber,
            marker: server.raw(),
            _redisson: redisson,
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
        self.marker.ask(&["PUBLISH", MARK, ""]);
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

    /// The messages up to this one, which is the last that is expected.
    #[track_caller]
    pub fn until(&mut self, last: &(String, String)) -> Vec<(String, String)> {
        let mut seen = Vec::new();
        eventually(&last.0, || {
            seen.extend(self.messages());
            seen.last() == Some(last)
        });
        seen
    }

    /// How many of these events of the key came since the last call.
    #[track_caller]
    pub fn count(&mut self, event: &str, key: &str) -> usize {
        let events = self.events();
        let same = |told: &&(String, String)| (told.0.as_str(), told.1.as_str()) == (event, key);
        events.iter().filter(same).count()
    }
}

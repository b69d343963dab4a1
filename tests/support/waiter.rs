//! Who waits for a lock, in either way: blocked, or queued and told by a message.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use redis::Value;

use super::reply::{int, token};
use super::session::{message, queued};
use super::{RawClient, Server, Session, BOUND, LONG};

/// How a request waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// BLOCK: its connection gets the reply when the wait ends.
    Block,
    /// QUEUE: its connection goes on, and a message says how the wait ended.
    Queue,
}

/// Makes two tests of a function that takes the way of waiting.
macro_rules! both_ways {
    ($($name:ident),+ $(,)?) => {
        $(
            mod $name {
                #[test]
                fn by_block() {
                    super::$name($crate::support::Way::Block);
                }

                #[test]
                fn by_queue() {
                    super::$name($crate::support::Way::Queue);
                }
            }
        )+
    };
}
pub(crate) use both_ways;

/// A connection whose request stands in a queue.
pub struct Waiter {
    pub client: RawClient,
    pub id: i64,
    /// What ends its wait from another connection.
    pub cancel: String,
    /// The channel and the tag, where it is notified by a message.
    told: Option<(String, String)>,
    /// The reply that came at once was read.
    is_replied: bool,
}

impl Way {
    pub const ALL: [Self; 2] = [Self::Block, Self::Queue];

    /// Waits for `key` as `owner`, for ever, with a long lease.
    #[track_caller]
    pub fn wait(self, server: &Server, key: &str, owner: &str) -> Waiter {
        self.with(server, &format!("{key} {owner} {LONG} BLOCK 0"))
    }

    /// The same for a read lock.
    #[track_caller]
    pub fn read(self, server: &Server, key: &str, owner: &str) -> Waiter {
        self.with(server, &format!("{key} {owner} {LONG} READ BLOCK 0"))
    }

    /// The same for a write lock.
    #[track_caller]
    pub fn write(self, server: &Server, key: &str, owner: &str) -> Waiter {
        self.with(server, &format!("{key} {owner} {LONG} WRITE BLOCK 0"))
    }

    /// The same for many keys.
    #[track_caller]
    pub fn many(self, server: &Server, keys: &str, owner: &str) -> Waiter {
        self.many_with(server, keys, owner, "BLOCK 0")
    }

    /// The same with these words behind it.
    #[track_caller]
    pub fn many_with(self, server: &Server, keys: &str, owner: &str, words: &str) -> Waiter {
        let count = keys.split_whitespace().count();
        let line = format!("RLOCK.MACQUIRE {count} {keys} {owner} {LONG} {words}");
        self.request(server, &line)
    }

    /// Waits with these arguments to RLOCK.ACQUIRE.
    #[track_caller]
    pub fn with(self, server: &Server, args: &str) -> Waiter {
        self.request(server, &format!("RLOCK.ACQUIRE {args}"))
    }

    /// Waits with this request, written with BLOCK.
    #[track_caller]
    pub fn request(self, server: &Server, line: &str) -> Waiter {
        self.on(server.raw(), line)
    }

    /// The same on a connection that is there already.
    #[track_caller]
    pub fn on(self, client: RawClient, line: &str) -> Waiter {
        static TAGS: AtomicU32 = AtomicU32::new(0);
        let (mut client, told, request) = match self {
            Self::Block => (client, None, line.to_owned()),
            Self::Queue => {
                let session = Session::on(client);
                let tag = format!("t{}", TAGS.fetch_add(1, Ordering::Relaxed));
                let notify = session.notify(&tag);
                let request = format!("{} {notify}", line.replace("BLOCK", "QUEUE"));
                (session.client, Some((session.channel, tag)), request)
            }
        };
        // Both requests come in one read, and replies leave after all of it was
        // run: whoever has the id knows that the other one waits.
        client.send_all(&["CLIENT ID", &request]);
        let id = int(client.read());
        Waiter {
            client,
            id,
            cancel: cancel(line),
            told,
            is_replied: false,
        }
    }
}

/// What calls off this request.
fn cancel(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (key, owner) = match words[0] {
        "RLOCK.MACQUIRE" => {
            let count: usize = words[1].parse().expect("a number of keys");
            (words[2], words[2 + count])
        }
        _ => (words[1], words[2]),
    };
    format!("RLOCK.CANCEL {key} {owner}")
}

/// Blocked waiters.
impl Waiter {
    #[track_caller]
    pub fn new(server: &Server, key: &str, owner: &str) -> Self {
        Way::Block.wait(server, key, owner)
    }

    #[track_caller]
    pub fn read(server: &Server, key: &str, owner: &str) -> Self {
        Way::Block.read(server, key, owner)
    }

    #[track_caller]
    pub fn write(server: &Server, key: &str, owner: &str) -> Self {
        Way::Block.write(server, key, owner)
    }

    #[track_caller]
    pub fn with(server: &Server, args: &str) -> Self {
        Way::Block.with(server, args)
    }

    #[track_caller]
    pub fn by(server: &Server, line: &str) -> Self {
        Way::Block.request(server, line)
    }

    #[track_caller]
    pub fn on(client: RawClient, line: &str) -> Self {
        Way::Block.on(client, line)
    }
}

impl Waiter {
    /// How its wait ended: the reply, or what the message says as the reply to BLOCK
    /// would have said it.
    #[track_caller]
    pub fn end(&mut self) -> Value {
        match self.end_within(BOUND) {
            Some(value) => value,
            None => panic!("the wait did not end within {BOUND:?}"),
        }
    }

    /// The same if it ends within `bound`.
    #[track_caller]
    pub fn end_within(&mut self, bound: Duration) -> Option<Value> {
        let Some((channel, tag)) = &self.told else {
            return self.client.read_within(bound);
        };
        if !self.is_replied {
            let reply = self.client.read_within(bound)?;
            if reply != queued() {
                return Some(reply);
            }
            self.is_replied = true;
        }
        loop {
            let told = message(self.client.push_within(bound)?, channel);
            let about = told.as_deref().and_then(|told| {
                let (word, rest) = told.split_once(' ')?;
                let (its, rest) = rest.split_once(' ').unwrap_or((rest, ""));
                (its == tag).then_some((word, rest))
            });
            match about {
                None => {}
                Some(("granted", token)) => {
                    return Some(Value::Int(token.parse().expect("a token")))
                }
                Some(("timeout", "")) => return Some(Value::Nil),
                Some(("error", line)) => return Some(as_error(line)),
                Some(other) => panic!("no end of a wait: {other:?}"),
            }
        }
    }

    /// The token that comes; panics at any other end.
    #[track_caller]
    pub fn token(&mut self) -> i64 {
        token(self.end())
    }

    /// It was not granted by what was replied to before.
    #[track_caller]
    pub fn still_waits(&mut self) {
        assert_eq!(self.end_within(Duration::from_millis(2)), None);
    }
}

fn as_error(line: &str) -> Value {
    redis::parse_redis_value(format!("-{line}\r\n").as_bytes()).expect("an error")
}

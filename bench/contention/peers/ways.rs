//! What the rivals say: scripts with a message, as Redisson does it, or SET and a
//! compare-and-delete.

use crate::load::{command, Connection, Expect, Outcome};
use crate::pairs::{load_script, ACQUIRE, RELEASE};

/// Longer than any turn of others takes.
const LEASE: &str = "600000";

const COMPARE_AND_DELETE: &str = "\
if redis.call('get', KEYS[1]) == ARGV[1] then
  return redis.call('del', KEYS[1])
end
return 0";

/// How a crowd contends.
#[derive(Clone, Debug)]
pub enum Way {
    /// The scripts' digests.
    PubSub {
        acquire: String,
        release: String,
    },
    Polled(Delete),
}

/// What the server has to delete a key if its value is the given one.
#[derive(Clone, Debug)]
pub enum Delete {
    /// DELIFEQ key value (Valkey 9).
    IfEqual,
    /// DELEX key IFEQ value (Redis 8.4).
    Ex,
    /// A script's digest.
    Script(String),
}

/// A rival's two requests.
pub struct Requests {
    pub take: Vec<u8>,
    pub give_back: Vec<u8>,
    taken: &'static [u8],
}

impl Requests {
    /// Whether its try succeeded.
    pub fn has_taken(&self, reply: &[u8]) -> bool {
        reply == self.taken
    }

    pub fn check_release(&self, reply: &[u8]) -> Outcome<()> {
        Expect::Exactly(":1\r\n").check(reply)
    }
}

impl Way {
    pub fn pub_sub(control: &mut Connection) -> Outcome<Self> {
        Ok(Way::PubSub {
            acquire: load_script(control, ACQUIRE)?,
            release: load_script(control, RELEASE)?,
        })
    }

    /// By the best that the server has.
    pub fn polled(control: &mut Connection) -> Outcome<Self> {
        let mut has = |name: &str| -> Outcome<bool> {
            let info = control.text(&["COMMAND", "INFO", name])?;
            Ok(info.to_lowercase().contains(&name.to_lowercase()))
        };
        let delete = if has("DELIFEQ")? {
            Delete::IfEqual
        } else if has("DELEX")? {
            Delete::Ex
        } else {
            Delete::Script(load_script(control, COMPARE_AND_DELETE)?)
        };
        Ok(Way::Polled(delete))
    }

    /// What it is called in a table.
    pub fn name(&self) -> &'static str {
        match self {
            Way::PubSub { .. } => "Lua + pub/sub",
            Way::Polled(Delete::IfEqual) => "SET NX PX + DELIFEQ, polled",
            Way::Polled(Delete::Ex) => "SET NX PX + DELEX, polled",
            Way::Polled(Delete::Script(_)) => "SET NX PX + Lua, polled",
        }
    }

    pub fn polls(&self) -> bool {
        matches!(self, Way::Polled(_))
    }

    /// What a rival of so many says; it listens from now on if there are messages.
    pub fn join(
        &self,
        connection: &mut Connection,
        crowd: usize,
        number: usize,
    ) -> Outcome<Requests> {
        let key = format!("wanted:{crowd}");
        let owner = format!("5f1c7a52-90e1-4b0c-8c2e-6f7f5f0a9d31:{number}");
        match self {
            Way::PubSub { acquire, release } => {
                let channel = format!("redisson_lock__channel:{{{key}}}");
                connection.call(&["HELLO", "3"])?;
                connection.call(&["SUBSCRIBE", &channel])?;
                Ok(Requests {
                    take: command(&["EVALSHA", acquire, "1", &key, LEASE, &owner]),
                    give_back: command(&["EVALSHA", release, "2", &key, &channel, LEASE, &owner]),
                    taken: b"_\r\n",
                })
            }
            Way::Polled(delete) => Ok(Requests {
                take: command(&["SET", &key, &owner, "NX", "PX", LEASE]),
                give_back: match delete {
                    Delete::IfEqual => command(&["DELIFEQ", &key, &owner]),
                    Delete::Ex => command(&["DELEX", &key, "IFEQ", &owner]),
                    Delete::Script(digest) => command(&["EVALSHA", digest, "1", &key, &owner]),
                },
                taken: b"+OK\r\n",
            }),
        }
    }
}

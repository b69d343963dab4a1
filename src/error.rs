//! What a client is told when a request is refused: one line that starts with a
//! code, says what was wrong and what to do, and is at most 512 bytes long.

use std::fmt::Write as _;

use crate::lock::{Foreign, Mode, Refusal};
use crate::server::Responder;

/// Longer lines are cut.
const LONGEST: usize = 512;

/// A refused request: the line for its client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(String);

impl Error {
    /// An error of the general kind.
    pub fn new(text: impl AsRef<str>) -> Self {
        Self(cut(format!("ERR {}", text.as_ref())))
    }

    /// Called from within one of our own calls into the server.
    pub fn busy() -> Self {
        Self::new("rlock is in the middle of another request; call it from outside the event")
    }

    pub fn fault() -> Self {
        Self::new("a fault in rlock, see the server's log; nothing was replied")
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self(of(&refusal))
    }
}

impl From<Error> for Responder {
    fn from(error: Error) -> Self {
        Self::Error(error.0)
    }
}

/// The line for a refusal of the core's.
pub fn of(refusal: &Refusal) -> String {
    cut(match refusal {
        Refusal::NotALock {
            why: Foreign::OtherType,
            ..
        } => WRONG_TYPE.to_owned(),
        Refusal::NotALock { key, .. } => format!(
            "{WRONG_TYPE}: {} is a hash, but not laid out as a lock; use another name",
            shown(&key.name)
        ),
        Refusal::NoLease { key } => format!(
            "{WRONG_TYPE}: {} has no TTL, it may be somebody's data; DEL it if it is not",
            shown(&key.name)
        ),
        Refusal::NotHeld {
            key,
            owner,
            held_for: None,
        } => format!(
            "NOTHELD owner {} does not hold {}: its lease ended, it was released, or never acquired",
            shown(owner),
            shown(&key.name)
        ),
        Refusal::NotHeld {
            key,
            owner,
            held_for: Some(mode),
        } => format!(
            "NOTHELD owner {} does not hold {} as a plain lock, it holds it for {}: say {2}",
            shown(owner),
            shown(&key.name),
            word(*mode)
        ),
        Refusal::Held { key, owner } => format!(
            "HELD owner {} already holds {}, and ONCE (or owner *) does not nest: \
             release it first, or use another owner",
            shown(owner),
            shown(&key.name)
        ),
        Refusal::OtherMode {
            key,
            owner,
            held_for,
        } => format!(
            "WRONGMODE owner {} holds {} for {}, which does not mix with a plain lock: \
             release it first, or use another name",
            shown(owner),
            shown(&key.name),
            word(*held_for)
        ),
        Refusal::TooManyHolds { key, owner } => format!(
            "ERR owner {} cannot nest any deeper on {}: release a hold first",
            shown(owner),
            shown(&key.name)
        ),
    })
}

/// The server's own text.
const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

fn word(mode: Mode) -> &'static str {
    match mode {
        Mode::Exclusive => "exclusive use",
        Mode::Read => "READ",
        Mode::Write => "WRITE",
    }
}

/// A name as it can stand in a line: quoted, other than printable ASCII escaped,
/// cut when it is long, so that two of them leave room for the rest.
pub fn shown(name: &[u8]) -> String {
    const MOST: usize = 100;
    let mut text = String::from("'");
    for byte in name {
        if text.len() > MOST {
            text.push_str("...");
            break;
        }
        match byte {
            b'\'' | b'\\' => {
                text.push('\\');
                text.push(char::from(*byte));
            }
            b' '..=b'~' => text.push(char::from(*byte)),
            _ => {
                let _ = write!(text, "\\x{byte:02x}");
            }
        }
    }
    text.push('\'');
    text
}

fn cut(mut line: String) -> String {
    // Only ASCII stands in a line, so any place is fit to cut at.
    line.truncate(LONGEST);
    line
}

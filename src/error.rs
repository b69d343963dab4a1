//! The error that a client gets when a request is refused: one line that starts with a
//! code, says what was wrong and what to do, and is at most 512 bytes long.

use crate::lock::{Crowd, Foreign, Link, Mode, NoPermits, Refusal, Token};

/// Longer lines are cut.
const LONGEST: usize = 512;

/// A refused request: the line for its client.
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

    /// The server's own code: the user may not use this channel.
    pub fn no_permission(channel: &[u8]) -> Self {
        let channel = shown(channel);
        Self(cut(format!(
            "NOPERM this user has no permissions to access the channel {channel}"
        )))
    }

    /// The server's own code: it says so itself, unless it lets replicas be written.
    pub fn replica() -> Self {
        Self(
            "READONLY a replica gives no locks, whatever replica-read-only says: ask its master"
                .to_owned(),
        )
    }

    /// The server's own words, in a cluster.
    pub fn cross_slot() -> Self {
        Self("CROSSSLOT Keys in request don't hash to the same slot".to_owned())
    }

    pub fn fault() -> Self {
        Self::new("a fault in rlock, see the server's log; nothing was replied")
    }

    pub fn line(&self) -> &str {
        &self.0
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        of(&refusal)
    }
}

/// The error for a refusal of the core's.
pub fn of(refusal: &Refusal) -> Error {
    Error(cut(match refusal {
        Refusal::NotALock { key, why } => not_a_lock(&shown(&key.name), *why),
        Refusal::NotHeld {
            key,
            owner,
            asked,
            held_for,
        } => not_held(&shown(&key.name), &shown(owner), *asked, *held_for),
        Refusal::Held { key, owner } => format!(
            "HELD owner {} already holds {}, and the owner * does not nest: release it first, \
             or use another owner",
            shown(owner),
            shown(&key.name)
        ),
        Refusal::ManyHolds { key, owner } => format!(
            "HELD owner {} holds {} more than once, and TOKEN is for a hold that is alone: release \
             the others first",
            shown(owner),
            shown(&key.name)
        ),
        Refusal::OtherMode {
            key,
            owner,
            held_for,
            asked,
        } => format!(
            "WRONGMODE owner {} holds {} {}, which does not mix with {}: release it first, or \
             use another name",
            shown(owner),
            shown(&key.name),
            held(*held_for),
            match asked {
                Mode::Exclusive => "a plain lock",
                Mode::Read | Mode::Write => "READ and WRITE",
                Mode::Permits => "permits",
            }
        ),
        Refusal::Permits { key, why } => no_permits(&shown(&key.name), why),
        Refusal::LeaseKeyTaken { key, owner } => format!(
            "{WRONG_TYPE}: the lease key that owner {} needs to read {} belongs to something \
             else; use another name or owner",
            shown(owner),
            shown(&key.name)
        ),
        Refusal::CounterUnusable { key } => counter_unusable(&key.name),
        Refusal::CounterSpent { key } => counter_spent(&key.name),
        Refusal::NoToken => no_token(),
        Refusal::TokenAhead { token } => token_ahead(token.0),
        Refusal::NoCounter { key } => counter_elsewhere(&key.name),
        Refusal::NoPermission { key } => no_permission(&key.name),
        Refusal::NotYet { ms } => format!(
            "NOTYET this server has started and may have lost locks: it grants none for {ms} ms \
             more (rlock.grant-after)"
        ),
        Refusal::Deadlock { cycle } => deadlock(cycle),
        Refusal::TooManyWait { which, most } => too_many_wait(which, *most),
        Refusal::Migrating { .. } | Refusal::Vanished { .. } => TRY_AGAIN.to_owned(),
        Refusal::TagInUse { tag } => tag_in_use(&shown(tag)),
        Refusal::Superseded => SUPERSEDED.to_owned(),
        Refusal::NoLongerMaster => NO_LONGER_MASTER.to_owned(),
        Refusal::SlotMoved { key } => slot_moved(&shown(&key.name)),
        Refusal::NobodyListens => NOBODY_LISTENS.to_owned(),
        Refusal::TooManyHolds { key, owner } => format!(
            "ERR owner {} cannot nest any deeper on {}: release a hold first",
            shown(owner),
            shown(&key.name)
        ),
    }))
}

fn no_permission(key: &[u8]) -> String {
    format!(
        "NOPERM the rights of this user to {} were taken away while the request waited: it has \
         nothing, and waits no more",
        shown(key)
    )
}

fn counter_unusable(key: &[u8]) -> String {
    format!(
        "{WRONG_TYPE}: redisson_lock_token:... of {}, its fencing counter, is no integer that can \
         be raised; use another name, or DEL it",
        shown(key)
    )
}

fn counter_spent(key: &[u8]) -> String {
    format!(
        "{WRONG_TYPE}: redisson_lock_token:... of {}, its fencing counter, has reached {}, and no \
         token is greater; use another name, or DEL it and what storage remembers",
        shown(key),
        Token::MOST.0
    )
}

fn counter_elsewhere(key: &[u8]) -> String {
    format!(
        "ERR FENCE needs the fencing counter of {}, which would lie in another slot of the \
         cluster: use a name whose hash tag is whole, or one without braces",
        shown(key)
    )
}

fn no_token() -> String {
    format!(
        "ERR this server's clock is beyond the year 2255, and no token is greater than {}: set \
         the clock",
        Token::MOST.0
    )
}

fn token_ahead(token: i64) -> String {
    format!(
        "ERR the token {token} is greater than all that this server has given for this lock, and \
         more than a day ahead of its clock"
    )
}

/// What is refused of permits and of their limit.
fn no_permits(key: &str, why: &NoPermits) -> String {
    match why {
        NoPermits::OtherLimit(pool) => format!(
            "WRONGLIMIT {key} is held with limit {}: ask with that one, or use another name",
            pool.asked
        ),
        NoPermits::AboveLimit(pool) => format!(
            "WRONGLIMIT {key} has a limit of {} for now: ask for no more permits",
            pool.limit
        ),
        NoPermits::OtherShare { owner, held } => format!(
            "HELD owner {} already holds another number of permits of {key}, {held}: RELEASE \
             them first, or leave ONCE away",
            shown(owner)
        ),
        NoPermits::TooFew { owner, held } => format!(
            "NOTHELD owner {} does not hold so many permits of {key}, but {held}: nothing was \
             given back",
            shown(owner)
        ),
        NoPermits::Free => {
            format!("NOTHELD nobody holds permits of {key}: the limit comes with the next request")
        }
        NoPermits::OtherKind => {
            format!("WRONGMODE {key} is not held by permits, so it has no limit")
        }
    }
}

/// A request that would wait, beyond one of the settings `rlock.max-waiters*`.
fn too_many_wait(which: &Crowd, most: usize) -> String {
    let (whose, setting) = match which {
        Crowd::Everybody => ("wait on this server".to_owned(), ""),
        Crowd::AtKey(key) => (format!("wait for {}", shown(&key.name)), "-per-key"),
        Crowd::OnConnection => ("of this connection wait".to_owned(), "-per-client"),
    };
    format!(
        "MAXWAITERS {most} requests {whose} already (rlock.max-waiters{setting}): ask again later, \
         or without waiting"
    )
}

const SUPERSEDED: &str = "SUPERSEDED a newer request of the same owner took the place";
const NO_LONGER_MASTER: &str = "UNBLOCKED the server is no master any more: ask the new one";
const NOBODY_LISTENS: &str = "UNBLOCKED nobody listens to the channel of this request";

fn tag_in_use(tag: &str) -> String {
    format!(
        "ERR the tag {tag} is that of another wait or hold of this connection: give each request \
         one of its own"
    )
}

fn slot_moved(key: &str) -> String {
    format!("MOVED the slot of {key} is served by another node: ask there")
}

fn not_a_lock(key: &str, why: Foreign) -> String {
    match why {
        Foreign::OtherType => WRONG_TYPE.to_owned(),
        Foreign::OtherHash => {
            format!("{WRONG_TYPE}: {key} is a hash, but not laid out as a lock; use another name")
        }
        Foreign::NoTtl => format!(
            "{WRONG_TYPE}: {key} has no TTL, it may be somebody's data; PEXPIRE it if it is a \
             lock, DEL it if nobody needs it, or use another name"
        ),
    }
}

fn not_held(key: &str, owner: &str, asked: Mode, held_for: Option<Mode>) -> String {
    let Some(mode) = held_for else {
        return format!(
            "NOTHELD owner {owner} does not hold {key}: its lease ended, it was released, or \
             never acquired"
        );
    };
    let advice = match mode {
        Mode::Exclusive => "leave the mode out",
        Mode::Read => "say READ",
        Mode::Write => "say WRITE",
        Mode::Permits => "say PERMITS",
    };
    format!(
        "NOTHELD owner {owner} does not hold {key} {}, it holds it {}: {advice}",
        held(asked),
        held(mode)
    )
}

/// In which way a lock is held.
fn held(mode: Mode) -> &'static str {
    match mode {
        Mode::Exclusive => "as a plain lock",
        Mode::Read => "for READ",
        Mode::Write => "for WRITE",
        Mode::Permits => "by permits",
    }
}

/// `DEADLOCK a waits for k (b), b waits for j (a)`; a long cycle is cut.
fn deadlock(cycle: &[Link]) -> String {
    let link = |link: &Link| {
        let [waits, on, by] = [&*link.waits, &link.on.name, &link.for_].map(bare);
        format!("{waits} waits for {on} ({by})")
    };
    let links: Vec<String> = cycle.iter().map(link).collect();
    format!("DEADLOCK {}", links.join(", "))
}

/// The server's own text.
const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

/// The server's own too, for a command with several keys: cluster clients know what to
/// do.
const TRY_AGAIN: &str = "TRYAGAIN Multiple keys request during rehashing of slot";

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
            b'\'' | b'\\' => text.extend(['\\', char::from(*byte)]),
            b' '..=b'~' => text.push(char::from(*byte)),
            _ => text.push_str(&format!("\\x{byte:02x}")),
        }
    }
    text.push('\'');
    text
}

/// A name without quotes if it needs none.
fn bare(name: &[u8]) -> String {
    let simple = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:{}/@".contains(byte);
    match std::str::from_utf8(name) {
        Ok(name) if !name.is_empty() && name.len() <= 100 && name.bytes().all(|b| simple(&b)) => {
            name.to_owned()
        }
        _ => shown(name),
    }
}

fn cut(mut line: String) -> String {
    // Only ASCII stands in a line, so any place is fit to cut at.
    line.truncate(LONGEST);
    line
}

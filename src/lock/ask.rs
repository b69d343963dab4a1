//! What requests say: whose lock is to be had, renewed or released, and how.

use std::borrow::Cow;

use super::address::Address;
use super::found::Mode;
use super::types::{ClientId, Moment, MonoUs, Now, Owner, Token, WaiterId};

/// A request for a lock, or for several.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    pub db: i32,
    pub owner: &'a [u8],
    /// The connection that asks; `None`: none that could close.
    pub client: Option<ClientId>,
    pub mode: Mode,
    pub share: Share,
    /// The lease in ms, from the moment of the grant.
    pub lease: i64,
    pub once: Once,
    /// The hold belongs to the connection.
    pub watch: bool,
    /// Where the end of the wait and the loss of the hold are told.
    pub notify: Option<&'a Address>,
    /// How to wait if the lock is held; `None`: do not.
    pub wait: Option<Wait>,
}

/// How much of a lock a request takes: so many holds, or permits of so many that there are to
/// be. Packed, for there are very many who wait: 20 bits for each of the two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Share([u8; 5]);

impl Share {
    /// One hold.
    pub const HOLD: Self = Self([1, 0, 0, 0, 0]);

    /// So many permits, of so many. Both are at most [`Pool::MOST`].
    ///
    /// [`Pool::MOST`]: super::Pool::MOST
    pub fn new(count: u32, limit: u32) -> Self {
        let both = u64::from(limit & MASK) << 20 | u64::from(count & MASK);
        let [a, b, c, d, e, ..] = both.to_le_bytes();
        Self([a, b, c, d, e])
    }

    fn both(self) -> u64 {
        let [a, b, c, d, e] = self.0;
        u64::from_le_bytes([a, b, c, d, e, 0, 0, 0])
    }

    /// So many permits, or holds.
    pub fn count(self) -> i64 {
        low(self.both())
    }

    /// How many permits there are to be; 0: it is for holds.
    pub fn limit(self) -> i64 {
        low(self.both() >> 20)
    }
}

const MASK: u32 = (1 << 20) - 1;

fn low(both: u64) -> i64 {
    i64::try_from(both & u64::from(MASK)).unwrap_or(0)
}

/// What an owner gets that holds the lock in this mode already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Once {
    /// One hold more.
    #[default]
    Nests,
    /// The hold under way: ONCE.
    IsTheSame,
    /// The error HELD: the owner `*`.
    IsRefused,
}

/// How a request waits.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    /// For so many ms; `None`: for ever.
    ms: Option<i64>,
    /// Its client goes on meanwhile, and is told at its address how the wait ended:
    /// QUEUE.
    pub queued: bool,
}

impl Wait {
    /// As BLOCK has it: so many ms, or 0 for ever.
    pub fn blocked(ms: i64) -> Self {
        Self {
            ms: (ms != 0).then_some(ms),
            queued: false,
        }
    }

    /// As QUEUE has it.
    pub fn queued(ms: i64) -> Self {
        Self {
            queued: true,
            ..Self::blocked(ms)
        }
    }

    /// When it is over for a request that comes now.
    pub fn until(self, now: Now) -> MonoUs {
        self.ms.map_or(MonoUs::NEVER, |ms| now.until(ms))
    }
}

/// Which holds are to end.
#[derive(Clone, Copy, Debug)]
pub struct Ended<'a> {
    pub db: i32,
    pub owner: &'a [u8],
    /// The connection that asks.
    pub client: Option<ClientId>,
    pub mode: Mode,
    /// So many, the newest first; `None`: all of them.
    pub count: Option<i64>,
    /// Else nothing ends, and that is no error.
    pub only: Option<Only>,
}

/// What RELEASE asks of the holds that it is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Only {
    /// The owner has any in that mode.
    Held,
    /// They have this token.
    Token(Token),
}

/// Whose lock FORCE is to free.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Aim<'a> {
    /// It is among the holders.
    Owner(Cow<'a, [u8]>),
    /// A hold under way has it.
    Token(Token),
}

/// What becomes of a lease.
#[derive(Clone, Copy, Debug)]
pub struct Renewal<'a> {
    pub db: i32,
    pub owner: &'a [u8],
    pub mode: Mode,
    /// From now, ms.
    pub lease: i64,
    /// The owner's holds belong to this connection from now on.
    pub watch: Option<ClientId>,
    /// Where the loss of its holds in this mode is told from now on.
    pub notify: Option<&'a Address>,
    pub fence: Option<Fence>,
}

/// What a renewal does about fencing tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fence {
    /// The lock's counter is at least this from now on: FENCE.
    Raise(Token),
    /// The hold has a new token from now on: TOKEN.
    New,
}

/// What became of a request that was not in error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The owner has the lock.
    Granted(Token),
    /// Somebody else has it, and the request does not wait.
    Refused,
    /// The request stands in the queue under this number.
    Waits(WaiterId),
}

/// What a grant needs to know of its request.
#[derive(Clone, Debug)]
pub struct Want {
    pub owner: Owner,
    pub client: Option<ClientId>,
    pub mode: Mode,
    pub share: Share,
    pub lease: i64,
    pub once: Once,
    pub watch: bool,
    pub notify: Option<Address>,
}

impl Want {
    pub fn of(ask: &Ask<'_>) -> Self {
        Self {
            owner: Owner::from(ask.owner),
            client: ask.client,
            mode: ask.mode,
            share: ask.share,
            lease: ask.lease,
            once: ask.once,
            watch: ask.watch,
            notify: ask.notify.cloned(),
        }
    }
}

/// What holds in a mode are to be bound to, by WATCHDOG, by NOTIFY, or by both.
#[derive(Clone, Copy, Debug)]
pub struct Binding<'a> {
    pub mode: Mode,
    pub client: Option<ClientId>,
    pub watch: bool,
    pub notify: Option<&'a Address>,
}

impl Want {
    pub fn binding(&self) -> Binding<'_> {
        Binding {
            mode: self.mode,
            client: self.client,
            watch: self.watch,
            notify: self.notify.as_ref(),
        }
    }
}

impl Renewal<'_> {
    pub fn binding(&self) -> Binding<'_> {
        let told = self.notify.map(|address| address.client);
        Binding {
            mode: self.mode,
            client: self.watch.or(told),
            watch: self.watch.is_some(),
            notify: self.notify,
        }
    }
}

impl Binding<'_> {
    pub fn is_empty(&self) -> bool {
        !self.watch && self.notify.is_none()
    }

    /// It is told there too that somebody waits.
    pub fn wants_hints(&self) -> bool {
        self.notify.is_some_and(|address| address.wants_hints)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Pool;
    use super::*;

    #[test]
    fn a_share_is_what_it_was_made_of() {
        let most = u32::try_from(Pool::MOST).unwrap();
        for (count, limit) in [(1, 0), (1, 1), (3, 4), (most, most), (1, most)] {
            let share = Share::new(count, limit);
            assert_eq!((share.count(), share.limit()), (count.into(), limit.into()));
        }
        assert_eq!(Share::HOLD, Share::new(1, 0));
    }
}

//! What is known of one owner's holds on a lock.

use super::takings::Taken;
use super::watch::Watch;
use crate::lock::address::Address;
use crate::lock::ask::Want;
use crate::lock::{ClientId, Lease, Mode, Now, Owner, Token, WallMs, WallUs};

/// A hold that began by a request of rlock's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begun {
    pub token: Token,
    pub since: WallUs,
}

/// What is known of one owner's holds. The keyspace says whether it still has
/// them; this adds what a hash cannot hold.
#[derive(Clone, Debug)]
pub struct Hold {
    pub owner: Owner,
    /// The hold under way; not known of a hold that was found. In the table [`Locks::begin`]
    /// alone sets it.
    ///
    /// [`Locks::begin`]: super::Locks::begin
    pub begun: Option<Begun>,
    /// The connection that took its first hold, as far as it is known.
    pub client: Option<ClientId>,
    /// Who took which of its holds, once there are several, or one belongs to a
    /// connection.
    pub watch: Option<Box<Watch>>,
}

impl Hold {
    /// A hold that somebody else took, or that was there before us.
    pub fn found(owner: Owner) -> Self {
        Self {
            owner,
            begun: None,
            client: None,
            watch: None,
        }
    }

    /// The first hold of a request.
    pub fn granted(want: &Want, token: Token, since: WallUs) -> Self {
        Self {
            begun: Some(Begun { token, since }),
            client: want.client,
            ..Self::found(want.owner.clone())
        }
    }

    /// The token of the hold under way, if it is known.
    pub fn token(&self) -> Option<Token> {
        self.begun.map(|begun| begun.token)
    }

    /// Since when it is held, if that is known.
    pub fn since(&self) -> Option<WallUs> {
        self.begun.map(|begun| begun.since)
    }

    /// Some connection is to be told of its end, or ends it.
    pub fn is_bound(&self) -> bool {
        let mut clients = self.watch.iter().flat_map(|watch| watch.taken.clients());
        clients.next().is_some()
    }

    /// For how many ms it is held, as far as is known.
    pub fn held_ms(&self, now: Now) -> Option<i64> {
        let since = self.since()?;
        Some(now.wall.ms_since(since).max(0))
    }

    /// The newest connection whose watchdog keeps holds in this mode.
    pub fn watcher(&self, mode: Mode) -> Option<ClientId> {
        let taken = self.watch.iter().flat_map(|watch| &watch.taken);
        let mut newest = taken.rev().filter(|taken| taken.mode == mode);
        newest.find_map(Taken::watcher)
    }

    /// Whether the loss of a hold in this mode is told there.
    pub fn is_told_at(&self, mode: Mode, address: &Address) -> bool {
        let watch = self.watch.as_ref();
        watch.is_some_and(|watch| watch.taken.are_told_at(mode, address))
    }
}

/// One owner that holds a lock which several may hold.
#[derive(Clone, Debug)]
pub struct Party {
    pub hold: Hold,
    /// The first and the newest token that its read holds or permits were given, as far as
    /// known: an upgrade begins a new one, which a read hold that nests after it has too.
    others: Option<Box<(Token, Token)>>,
    /// As a rule it is one, that of the hold under way: nothing more is kept of it.
    as_hold: bool,
    /// The token of the hold under way is that of its write holds.
    pub writes_given: bool,
    pub reads: bool,
    pub writes: bool,
    pub has_permits: bool,
    /// It has permits, and a request of its waits here.
    pub waits: bool,
    /// The lease of its read holds or permits; `Gone` if it has none.
    pub lease: Lease,
    /// How many read holds or permits it had when last seen. For each read hold there is a
    /// lease key.
    pub holds: i64,
}

impl Party {
    /// An owner of which no hold is known yet.
    pub fn found(owner: Owner) -> Self {
        Self {
            hold: Hold::found(owner),
            others: None,
            as_hold: false,
            writes_given: false,
            reads: false,
            writes: false,
            has_permits: false,
            waits: false,
            lease: Lease::Gone,
            holds: 0,
        }
    }

    /// Whether it holds the lock in this mode.
    pub fn has(&self, mode: Mode) -> bool {
        match mode {
            Mode::Read => self.reads,
            Mode::Write => self.writes,
            Mode::Permits => self.has_permits,
            Mode::Exclusive => false,
        }
    }

    /// Whether it holds anything.
    pub fn is_holder(&self) -> bool {
        self.reads || self.writes || self.has_permits
    }

    /// How many permits it has.
    pub fn permits(&self) -> i64 {
        if self.has_permits {
            self.holds
        } else {
            0
        }
    }

    /// It has so many permits until then.
    pub fn set_permits(&mut self, permits: i64, lease: Lease) {
        (self.has_permits, self.holds, self.lease) = (permits > 0, permits, lease);
    }

    /// It has no read holds any more.
    pub fn stop_reading(&mut self) {
        self.reads = false;
        (self.others, self.as_hold) = (None, false);
        self.lease = Lease::Gone;
        self.holds = 0;
    }

    /// It has no write holds any more.
    pub fn stop_writing(&mut self) {
        self.writes = false;
        self.writes_given = false;
    }

    /// The hold under way is this one from now on. What was given for its other holds stays.
    pub fn begin(&mut self, begun: Begun) {
        let before = self.hold.token().filter(|_| self.as_hold);
        if let Some(before) = before.filter(|before| *before != begun.token) {
            self.as_hold = false;
            self.others = Some(Box::new((before, before)));
        }
        self.hold.begun = Some(begun);
    }

    /// What was known of it is known still, as far as it has the holds still.
    pub fn go_on(&mut self, was: &Self) {
        self.hold = was.hold.clone();
        if self.reads || self.has_permits {
            (self.others, self.as_hold) = (was.others.clone(), was.as_hold);
        }
        self.writes_given = was.writes_given && self.writes;
    }

    /// It was told this token for what it holds in this mode.
    pub fn given(&mut self, mode: Mode, token: Token) {
        if mode == Mode::Write {
            self.writes_given = true;
        } else {
            let first = self.tokens(mode).map_or(token, |(first, _)| first);
            self.as_hold = first == token && self.hold.token() == Some(token);
            self.others = (!self.as_hold).then(|| Box::new((first, token)));
        }
    }

    /// The first and the newest token of its holds in this mode, as far as known.
    pub fn tokens(&self, mode: Mode) -> Option<(Token, Token)> {
        match mode {
            Mode::Read | Mode::Permits if self.as_hold => {
                self.hold.token().map(|token| (token, token))
            }
            Mode::Read | Mode::Permits => self.others.as_deref().copied(),
            Mode::Write => {
                let token = self.hold.token().filter(|_| self.writes_given);
                token.map(|token| (token, token))
            }
            Mode::Exclusive => None,
        }
    }

    /// When its read holds or permits end, in a hash that ends then.
    pub fn end(&self, hash: Option<WallMs>) -> Option<WallMs> {
        [self.lease.end(), hash].into_iter().flatten().min()
    }

    pub(super) fn fields(&self) -> usize {
        let held = [self.reads, self.writes, self.has_permits];
        held.into_iter().filter(|held| *held).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// There may be a hundred thousand of them on one lock.
    #[test]
    fn a_party_is_small() {
        assert!(size_of::<Party>() <= 96, "{}", size_of::<Party>());
    }
}

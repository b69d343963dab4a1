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

/// What is known of one owner's holds, in whatever modes. The keyspace says whether it still has
/// them; this adds what a hash cannot hold.
///
/// It is one for each owner, not for each of its modes: the lease, its renewal and the token of
/// the hold under way are the owner's.
#[derive(Clone, Debug)]
pub struct Hold {
    pub owner: Owner,
    /// The hold under way; not known of a hold that was found. In the table [`Locks::begin`]
    /// alone sets it, and [`Locks::renew_token`] its token.
    ///
    /// [`Locks::begin`]: super::Locks::begin
    /// [`Locks::renew_token`]: super::Locks::renew_token
    pub begun: Option<Begun>,
    /// The connection that took its first hold, as far as it is known.
    pub client: Option<ClientId>,
    /// Who took which of its holds, once there are several, or one belongs to a
    /// connection.
    pub watch: Option<Box<Watch>>,
    /// The first and the newest token that its read holds or permits were given, as far as
    /// known: an upgrade begins a new one, which a read hold that nests after it has too.
    others: Option<Box<(Token, Token)>>,
    /// As a rule it is one, that of the hold under way: nothing more is kept of it.
    as_hold: bool,
    /// The token of the hold under way is that of its write holds.
    pub writes_given: bool,
    /// It holds all of the lock: a plain one, or one that somebody has made a read/write lock of.
    pub excludes: bool,
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

impl Hold {
    /// An owner of which no hold is known yet.
    pub fn of(owner: Owner) -> Self {
        Self {
            owner,
            begun: None,
            client: None,
            watch: None,
            others: None,
            as_hold: false,
            writes_given: false,
            excludes: false,
            reads: false,
            writes: false,
            has_permits: false,
            waits: false,
            lease: Lease::Gone,
            holds: 0,
        }
    }

    /// One that holds all of the lock: somebody else took it, or it was there before us.
    pub fn plain(owner: Owner) -> Self {
        Self {
            excludes: true,
            ..Self::of(owner)
        }
    }

    /// The first plain hold of a request.
    pub fn granted(want: &Want, token: Token, since: WallUs) -> Self {
        Self {
            begun: Some(Begun { token, since }),
            client: want.client,
            ..Self::plain(want.owner.clone())
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

    /// For how many ms it is held, as far as is known.
    pub fn held_ms(&self, now: Now) -> Option<i64> {
        let since = self.since()?;
        Some(now.wall.ms_since(since).max(0))
    }

    // To what it is bound.

    /// Some connection is to be told of its end, or ends it.
    pub fn is_bound(&self) -> bool {
        let mut clients = self.watch.iter().flat_map(|watch| watch.taken.clients());
        clients.next().is_some()
    }

    /// The newest connection whose watchdog keeps holds in this mode.
    pub fn watcher(&self, mode: Mode) -> Option<ClientId> {
        let taken = self.watch.iter().flat_map(|watch| &watch.taken);
        let mut newest = taken.rev().filter(|taken| taken.mode == mode);
        newest.find_map(Taken::watcher)
    }

    /// Whether it is told somewhere that somebody waits for its holds in this mode.
    pub fn is_hinted(&self, mode: Mode) -> bool {
        let mut taken = self.watch.iter().flat_map(|watch| &watch.taken);
        taken.any(|taken| taken.mode == mode && taken.hinted_at().is_some())
    }

    /// Whether the loss of a hold in this mode is told there.
    pub fn is_told_at(&self, mode: Mode, address: &Address) -> bool {
        let watch = self.watch.as_ref();
        watch.is_some_and(|watch| watch.taken.are_told_at(mode, address))
    }

    // In which modes.

    /// Whether it holds the lock in this mode.
    pub fn has(&self, mode: Mode) -> bool {
        match mode {
            Mode::Exclusive => self.excludes,
            Mode::Read => self.reads,
            Mode::Write => self.writes,
            Mode::Permits => self.has_permits,
        }
    }

    /// In how many: each has a field of the hash.
    pub fn fields(&self) -> usize {
        let all = Mode::ALL.into_iter();
        all.filter(|mode| self.has(*mode)).count()
    }

    /// Whether it holds anything.
    pub fn is_holder(&self) -> bool {
        self.fields() > 0
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

    /// When its holds end, in a hash that ends then.
    pub fn end(&self, hash: Option<WallMs>) -> Option<WallMs> {
        [self.lease.end(), hash].into_iter().flatten().min()
    }

    // Their tokens.

    /// The hold under way is this one from now on. What was given for its other holds stays.
    pub fn begin(&mut self, begun: Begun) {
        let before = self.token().filter(|_| self.as_hold);
        if let Some(before) = before.filter(|before| *before != begun.token) {
            self.as_hold = false;
            self.others = Some(Box::new((before, before)));
        }
        self.begun = Some(begun);
    }

    /// Its one hold, in this mode, has this token from now on, and none that it had before.
    pub fn renew_token(&mut self, mode: Mode, token: Token) {
        if let Some(begun) = &mut self.begun {
            begun.token = token;
        }
        (self.others, self.as_hold) = (None, false);
        self.given(mode, token);
    }

    /// What was known of it is known still, as far as it has the holds still.
    pub fn go_on(&mut self, was: &Self) {
        (self.begun, self.client, self.watch) = (was.begun, was.client, was.watch.clone());
        if self.reads || self.has_permits {
            (self.others, self.as_hold) = (was.others.clone(), was.as_hold);
        }
        self.writes_given = was.writes_given && self.writes;
    }

    /// It was told this token for what it holds in this mode.
    pub fn given(&mut self, mode: Mode, token: Token) {
        match mode {
            Mode::Exclusive => {}
            Mode::Write => self.writes_given = true,
            Mode::Read | Mode::Permits => {
                let first = self.tokens(mode).map_or(token, |(first, _)| first);
                self.as_hold = first == token && self.token() == Some(token);
                self.others = (!self.as_hold).then(|| Box::new((first, token)));
            }
        }
    }

    /// The first and the newest token that its holds in this mode were given, as far as known.
    /// Whatever it was given between the two was for them.
    pub fn tokens(&self, mode: Mode) -> Option<(Token, Token)> {
        let is_one = match mode {
            Mode::Exclusive => self.excludes,
            Mode::Write => self.writes_given,
            Mode::Read | Mode::Permits if self.as_hold => true,
            Mode::Read | Mode::Permits => return self.others.as_deref().copied(),
        };
        let token = self.token().filter(|_| is_one)?;
        Some((token, token))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// There may be a hundred thousand of them on one lock.
    #[test]
    fn a_hold_is_small() {
        assert!(size_of::<Hold>() <= 96, "{}", size_of::<Hold>());
    }
}

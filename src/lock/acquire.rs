//! ACQUIRE: take a free lock, join, nest, be refused, or wait.

use super::ask::{Ask, Verdict, Want};
use super::modes::modes;
use super::stats::Counters;
use super::table::Hold;
use super::{head, ready, reconcile, shared, subscribers, token, waiting, watchdog};
use super::{Core, Decision, Event, Key, Kind, Look, Mode, Owner, Refusal, Token, WallMs, Write};

/// No decision takes so many ms.
const NEAR_MS: i64 = 100;

/// In what way an owner can have the lock as it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// It is free.
    First,
    /// Others read, so does the owner.
    Join,
    /// It has it in this mode already.
    Nest,
    /// It writes, and reads too.
    Under,
    /// It alone reads, and writes from now on.
    Upgrade,
}

impl How {
    /// Only an owner that holds the lock can have it so: no queue is in its way.
    pub fn is_holders(self) -> bool {
        matches!(self, Self::Nest | Self::Under | Self::Upgrade)
    }

    /// It begins a hold with a token of its own.
    pub fn is_new(self) -> bool {
        matches!(self, Self::First | Self::Join | Self::Upgrade)
    }
}

impl Core {
    /// The token of the hold that an acquisition nests in, if it is known.
    pub(super) fn token_under_way(&self, key: &Key, owner: &[u8], how: How) -> Option<Token> {
        if how.is_new() {
            return None;
        }
        self.locks.get(key)?.hold(owner)?.token
    }
}

/// Acquires a lock, or waits for it. In order of arrival: a free lock with
/// waiters goes to the first of them, not to the request.
pub fn acquire(d: &mut Decision<'_>, name: &[u8], ask: &Ask<'_>) -> Result<Verdict, Refusal> {
    match try_to_acquire(d, name, ask) {
        Err(Refusal::Vanished { .. }) => try_to_acquire(d, name, ask),
        done => done,
    }
}

fn try_to_acquire(d: &mut Decision<'_>, name: &[u8], ask: &Ask<'_>) -> Result<Verdict, Refusal> {
    let key = d.core.locks.key(ask.db, name);
    let mut look = ready::look(d, &key, ask.owner);
    let how = may(d, &key, ask.owner, ask.mode, &mut look)?;
    if ask.once && how == Some(How::Nest) {
        return Err(held(&key, ask.owner));
    }
    match how.filter(|how| how.is_holders() || !head::is_waited_for(d.core, &key)) {
        Some(how) => {
            let want = Want::of(ask);
            let token = give(d, &key, &want, how, look, None)?;
            if how == How::Join {
                subscribers::passed(d, &key, true);
            }
            Ok(Verdict::Granted(token))
        }
        None if how.is_none() && d.core.is_half(&key) => Err(Refusal::OnItsWay { key }),
        None => {
            Counters::up(&mut d.core.counters.contended);
            if look.kind == Kind::Plain {
                reconcile::found_held(d, &key, &look);
            }
            if how == Some(How::Join) {
                subscribers::keeps_out(d, &key);
            }
            match ask.wait {
                Some(wait) => waiting::wait_for(d, vec![key], Want::of(ask), ask.once, wait),
                None => Ok(Verdict::Refused),
            }
        }
    }
}

/// In what way the owner can have the lock now, whoever waits for it; `None`:
/// it is not to be had. A mode that does not go with those it has is refused.
pub fn may(
    d: &mut Decision<'_>,
    key: &Key,
    owner: &[u8],
    mode: Mode,
    look: &mut Look,
) -> Result<Option<How>, Refusal> {
    let has = modes(d.core, key, owner, look);
    if let Some(held_for) = has.other_kind_than(mode) {
        return Err(Refusal::OtherMode {
            key: key.clone(),
            owner: Owner::from(owner),
            held_for,
        });
    }
    d.core.has_its_leases(key, owner, look)?;
    Ok(match look.kind {
        Kind::Foreign(why) => {
            let key = key.clone();
            return Err(Refusal::NotALock { key, why });
        }
        Kind::Free => Some(How::First),
        Kind::Plain => has.plain.then_some(How::Nest),
        Kind::ReadWrite(_) => match mode {
            Mode::Exclusive if has.plain => Some(How::Nest),
            Mode::Read if has.reads => Some(How::Nest),
            Mode::Write if has.writes => Some(How::Nest),
            Mode::Read if has.writes => Some(How::Under),
            Mode::Read if reconcile::keeps_readers_out(d, key) => None,
            _ if mode != Mode::Read && reconcile::others(d, key, owner) => None,
            _ => {
                // Whoever was found dead is gone from the hash now.
                *look = reconcile::read(d, key, owner);
                match look.kind {
                    Kind::Free => Some(How::First),
                    Kind::ReadWrite(_) if mode == Mode::Read => Some(How::Join),
                    Kind::ReadWrite(_) if has.reads => Some(How::Upgrade),
                    _ => None,
                }
            }
        },
    })
}

/// A lock that is about to end could do so between the look at it and what is
/// written next: it is prolonged before anything else is.
pub fn secure(
    d: &mut Decision<'_>,
    key: &Key,
    want: &Want,
    how: How,
    look: &mut Look,
) -> Result<(), Refusal> {
    let until = d.now.deadline(want.lease);
    let soon = d.now.deadline(NEAR_MS);
    let ends = |end: &WallMs| how != How::First && *end < soon && *end < until;
    if look.expires.filter(ends).is_none() {
        return Ok(());
    }
    let key = key.clone();
    let prolong = Write::ExpireAt {
        key: key.clone(),
        at: until,
    };
    if !d.write(prolong) {
        return Err(Refusal::Vanished { key });
    }
    look.expires = Some(until);
    match look.kind {
        Kind::ReadWrite(_) => d
            .core
            .locks
            .change_shared(&key, |shared| shared.expires = Some(until)),
        _ => d.core.locks.set_deadline(&key, Some(until)),
    }
    Ok(())
}

/// The lock is the owner's from now on, or once more; the token.
pub fn give(
    d: &mut Decision<'_>,
    key: &Key,
    want: &Want,
    how: How,
    look: Look,
    token: Option<Token>,
) -> Result<Token, Refusal> {
    let now = d.now;
    let before = [
        (Mode::Write, look.writes),
        match look.kind {
            Kind::ReadWrite(_) if want.mode != Mode::Exclusive => (Mode::Read, look.holds),
            _ => (Mode::Exclusive, look.holds),
        },
    ];
    let known = d.core.token_under_way(key, &want.owner, how);
    let (token, counted) = match known.or(token) {
        Some(token) => (token, Vec::new()),
        None => token::new_token(d, std::iter::once(key))?,
    };
    match (want.mode, how) {
        (Mode::Exclusive, How::First) => {
            let at = now.deadline(want.lease);
            d.write(Write::Take {
                key: key.clone(),
                owner: want.owner.clone(),
                holds: 1,
                at,
            });
            let hold = Hold {
                token: Some(token),
                since: Some(now.wall),
                client: want.client,
                ..Hold::found(want.owner.clone())
            };
            d.core.locks.set_plain(key, hold, Some(at));
        }
        (Mode::Exclusive, _) => {
            nest(d, key, want, look)?;
            let known = d
                .core
                .locks
                .get(key)
                .and_then(|e| e.hold(&want.owner)?.token);
            if known.is_none() {
                reconcile::know_plain(d, key, &want.owner, &look);
                let hold = d.core.locks.hold_mut(key, &want.owner);
                if let Some(hold) = hold {
                    hold.token = Some(token);
                    hold.since = Some(now.wall);
                }
            }
        }
        _ => shared::give_shared(d, key, want, how, look, token)?,
    }
    token::fence(d, counted, token);
    if matches!(how, How::First | How::Join) {
        d.core.subscribers.count_grant(key);
    }
    d.tell(key, Event::Acquired);
    let is_first = (want.mode, how) == (Mode::Exclusive, How::First);
    if want.watch || !is_first {
        watchdog::on_acquired(d.core, key, want, &before, now);
    }
    d.joined(key, &want.owner);
    Ok(token)
}

/// One more plain hold for an owner that has the lock. The lease is lengthened
/// to at least the new one, never shortened; a lock without one stays without.
fn nest(d: &mut Decision<'_>, key: &Key, want: &Want, mut look: Look) -> Result<(), Refusal> {
    let holds = one_more(look.holds, key, &want.owner)?;
    secure(d, key, want, How::Nest, &mut look)?;
    d.write(Write::Count {
        key: key.clone(),
        owner: want.owner.clone(),
        mode: Mode::Exclusive,
        holds,
        by: 1,
    });
    let until = d.now.deadline(want.lease);
    let expires = look.expires.map(|at| at.max(until));
    d.expire_at(key, look.expires, expires);
    match look.kind {
        // Others may be in it by now, with leases of their own.
        Kind::ReadWrite(_) => d
            .core
            .locks
            .change_shared(key, |shared| shared.expires = expires),
        _ => d.core.locks.set_deadline(key, expires),
    }
    Ok(())
}

/// ONCE, and the owner has it already.
pub fn held(key: &Key, owner: &[u8]) -> Refusal {
    Refusal::Held {
        key: key.clone(),
        owner: Owner::from(owner),
    }
}

pub fn one_more(holds: i64, key: &Key, owner: &Owner) -> Result<i64, Refusal> {
    holds.checked_add(1).ok_or_else(|| too_many(key, owner))
}

pub fn too_many(key: &Key, owner: &Owner) -> Refusal {
    Refusal::TooManyHolds {
        key: key.clone(),
        owner: owner.clone(),
    }
}

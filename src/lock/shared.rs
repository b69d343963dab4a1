//! Read/write locks: many readers, each with a lease of its own, or one writer.
//!
//! The layout is Redisson's RReadWriteLock: the hash has a field `mode`, a field
//! for each reader and one for the writer, and each read hold has a lease key. A
//! reader whose lease keys are gone holds nothing, though its field may be there.

use super::acquire::{one_more, too_many, How};
use super::ask::Want;
use super::modes::modes;
use super::table::own_lease;
use super::table::Party;
use super::{acquire, lease_keys};
use super::{
    Decision, Key, Kind, Lease, Look, Mode, Owner, Refusal, Token, WallMs, Write, MOST_READS,
};

/// A hold in READ or WRITE mode.
pub fn give_shared(
    d: &mut Decision<'_>,
    key: &Key,
    want: &Want,
    how: How,
    mut look: Look,
    token: Token,
) -> Result<(), Refusal> {
    let until = d.now.deadline(want.lease);
    let was = own_lease(&look);
    let at = match (how, was) {
        (How::First | How::Join, _) => Some(until),
        (_, Lease::Until(at)) => Some(at.max(until)),
        (_, Lease::Gone | Lease::Endless | Lease::Away) => None,
    };
    let owner = &want.owner;
    let (held, field) = match want.mode {
        Mode::Write => (look.writes, Mode::Write),
        _ => (look.holds, Mode::Read),
    };
    let holds = one_more(held, key, owner)?;
    if want.mode == Mode::Read {
        if holds > MOST_READS {
            return Err(too_many(key, owner));
        }
        if !d.ks.may_lease(key, owner, holds) {
            return Err(Refusal::LeaseKeyTaken {
                key: key.clone(),
                owner: owner.clone(),
            });
        }
    }
    acquire::secure(d, key, want, how, &mut look)?;
    let mode = match (how, look.kind) {
        (How::First | How::Upgrade, _) => Some(want.mode),
        // The writer is gone without a word.
        (How::Join, Kind::ReadWrite(Mode::Write)) => Some(Mode::Read),
        _ => None,
    };
    if let Some(mode) = mode {
        let key = key.clone();
        d.write(Write::SetMode { key, mode });
    }
    d.write(Write::Count {
        key: key.clone(),
        owner: owner.clone(),
        mode: field,
        holds,
        by: 1,
    });
    let reads = look.holds.min(MOST_READS);
    // By hand, the lease keys of a writer that reads too may have had another end.
    if let Some(at) = at.filter(|at| look.lease != Lease::Until(*at)) {
        lease_keys::renew(d, key, owner, reads, at);
    }
    if want.mode == Mode::Read {
        d.write(Write::Lease {
            key: key.clone(),
            owner: owner.clone(),
            index: holds,
            at,
        });
    }
    let expires = match (how, look.expires) {
        (How::First, _) => at,
        // Its reader is alone now: the lock ends with it.
        (How::Upgrade, Some(_)) if at.is_some() => at,
        (_, None) => None,
        // A lease without an end goes with the hash all the same.
        (_, Some(end)) => Some(at.unwrap_or(until).max(end)),
    };
    d.expire_at(key, look.expires, expires);
    let lease = at.map_or(Lease::Endless, Lease::Until);
    let since = Some(d.now.wall);
    d.core.locks.change_shared(key, |shared| {
        shared.expires = expires;
        if shared.party(owner).is_none() {
            shared.put(Party::found(owner.clone()));
        }
        let mut party = match shared.remove(owner) {
            Some(party) => party,
            None => return,
        };
        if want.mode == Mode::Read {
            party.reads = true;
            party.holds = holds;
        }
        party.writes |= want.mode == Mode::Write;
        if party.reads {
            party.lease = lease;
        }
        if party.hold.token != Some(token) {
            party.hold.token = Some(token);
            party.first = party.first.or(Some(token));
            party.hold.since = since;
        }
        shared.put(party);
    });
    Ok(())
}

/// Sets the lease of an owner that holds the lock, in every mode.
pub fn set_lease(d: &mut Decision<'_>, key: &Key, owner: &Owner, look: &Look, at: WallMs) {
    let has = modes(d.core, key, owner, look);
    if has.plain {
        d.expire_at(key, None, Some(at));
        match look.kind {
            Kind::ReadWrite(_) => {
                d.core
                    .locks
                    .change_shared(key, |shared| shared.expires = Some(at));
            }
            _ => d.core.locks.set_deadline(key, Some(at)),
        }
        return;
    }
    if has.reads {
        lease_keys::renew(d, key, owner, look.holds, at);
    }
    let mut expires = Some(at);
    d.core.locks.change_shared(key, |shared| {
        shared.change(owner, |party| {
            if party.reads {
                party.lease = Lease::Until(at);
            }
        });
        // The hash stays for the reader that stays longest.
        if !has.writes {
            let end = look.expires.map(|end| end.max(at));
            expires = shared.last_end().or(end);
        }
        shared.expires = expires;
    });
    d.expire_at(key, look.expires, expires);
}

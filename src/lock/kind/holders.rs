//! Who holds a lock, as operators are shown it. Changes nothing.

use std::collections::BTreeMap;

use super::FEW_FIELDS;
use crate::lock::reconcile::{judge, why_no_lock};
use crate::lock::table::Entry;
use crate::lock::{Foreign, Holder, Key, Keyspace, Kind, Lease, Look, Mode, Now};

/// Who holds it now, whoever excludes most first; of very many so many at most. Those whose own
/// lease is over are left out, and left where they are. Or why it is no lock.
pub fn of<K: Keyspace>(
    entry: Option<&Entry>,
    ks: &mut K,
    now: Now,
    key: &Key,
    most: usize,
) -> Result<Vec<Holder>, Foreign> {
    let beside = entry.map(|entry| entry.beside(None)).unwrap_or_default();
    let look = judge(entry, &[], ks.look_with_hint(key, &[], beside));
    let mut holders = match look.kind {
        Kind::Free => return Ok(Vec::new()),
        Kind::Foreign(Foreign::NoTtl) if look.fields <= FEW_FIELDS => {
            return Err(why_no_lock(&look, ks.holders(key).len()));
        }
        Kind::Foreign(why) => return Err(why),
        Kind::Permits(_) => return permits(ks, now, key, most).ok_or(Foreign::OtherHash),
        Kind::Plain | Kind::ReadWrite(_) if look.fields > most.max(FEW_FIELDS) => {
            let known = entry.and_then(|entry| some_known(ks, key, entry, &look, most));
            let some = known.or_else(|| some_found(ks, key, most));
            return some.ok_or(Foreign::OtherHash);
        }
        Kind::Plain | Kind::ReadWrite(_) => ks.holders(key),
    };
    for holder in &mut holders {
        // Somebody made a read/write lock of a plain one.
        let plain = entry.is_some_and(|entry| entry.plain_of(&holder.owner).is_some());
        if holder.lease.is_missing() && plain {
            holder.mode = Mode::Exclusive;
            holder.lease = Lease::of(look.expires);
        }
    }
    let all = holders.len();
    holders.retain(|holder| holder.lease != Lease::Gone);
    // A hash with a field `mode` that is somebody's data.
    let is_held = || all > 0 || entry.is_some_and(Entry::is_held);
    if all != look.fields || !is_held() {
        return Err(Foreign::OtherHash);
    }
    holders.sort_by(|a, b| (a.mode, &a.owner).cmp(&(b.mode, &b.owner)));
    Ok(holders)
}

/// So many of very many holders of a read/write lock, if all of them are known.
fn some_known<K: Keyspace>(
    ks: &mut K,
    key: &Key,
    entry: &Entry,
    look: &Look,
    most: usize,
) -> Option<Vec<Holder>> {
    let shared = entry.shared()?;
    if entry.plain().is_some() || entry.fields() != look.fields {
        return None;
    }
    let writer = shared.writer().and_then(|owner| shared.hold(owner));
    let rest = shared.holds().filter(|hold| !hold.writes);
    let mut holders = Vec::new();
    for hold in writer.into_iter().chain(rest) {
        if holders.len() >= most {
            break;
        }
        let owner = &hold.owner;
        let found = ks.look(key, owner);
        if (hold.reads, hold.writes) != (found.holds > 0, found.writes > 0) {
            return None;
        }
        let of_hash = Lease::of(found.expires);
        let all = [
            (Mode::Write, found.writes, of_hash),
            (Mode::Read, found.holds, found.lease),
        ];
        let held = all
            .into_iter()
            .filter(|(_, holds, lease)| *holds > 0 && *lease != Lease::Gone);
        holders.extend(held.map(|(mode, holds, lease)| Holder {
            owner: owner.clone(),
            mode,
            holds,
            lease,
        }));
    }
    Some(holders)
}

/// So many of very many who are not known; `None`: what was read of it shows that it is no
/// lock.
fn some_found<K: Keyspace>(ks: &mut K, key: &Key, most: usize) -> Option<Vec<Holder>> {
    let mut holders = ks.some_holders(key, most.max(FEW_FIELDS));
    let any = !holders.is_empty();
    holders.retain(|holder| holder.lease != Lease::Gone);
    holders.sort_by(|a, b| (a.mode, &a.owner).cmp(&(b.mode, &b.owner)));
    any.then_some(holders)
}

/// Some who hold permits, in the order of their names; `None`: some field is no permit.
fn permits<K: Keyspace>(ks: &mut K, now: Now, key: &Key, most: usize) -> Option<Vec<Holder>> {
    let mut holders = BTreeMap::new();
    let mut cursor = Some(0);
    while let Some(from) = cursor.filter(|_| holders.len() < most) {
        let part = ks.some_fields(key, from);
        if part.wrong.is_some() {
            return None;
        }
        let live = part.holders.into_iter();
        let live = live.filter(|holder| holder.lease >= Lease::Until(now.wall_ms()));
        holders.extend(live.map(|holder| (holder.owner.clone(), holder)));
        cursor = part.next;
    }
    Some(holders.into_values().take(most).collect())
}

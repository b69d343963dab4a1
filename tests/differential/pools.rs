//! Hashes with permits, as the comparison sees them. These may differ:
//! - The fields of owners whose deadline is past, and so many are out more: the module
//!   removes them when the lease ends, the library when they are in the way.
//! - What is out, where somebody has changed the hash: the module counts again, the library
//!   when it is in the way.
//! - Deadlines, by the time in which both servers were asked.

use std::collections::BTreeMap;

use super::step::Bytes;

pub type Fields = BTreeMap<Bytes, Bytes>;

const MODE: &[u8] = b"mode";

/// What `mode` says: the limit that requests say, the one in force, and how many are out.
fn pool(fields: &Fields) -> Option<[i64; 3]> {
    let text = std::str::from_utf8(fields.get(MODE)?).ok()?;
    let numbers = text.strip_prefix("permits ")?.split(' ');
    let numbers: Option<Vec<i64>> = numbers.map(|number| number.parse().ok()).collect();
    numbers?.try_into().ok()
}

/// Whether it is such a hash.
pub fn is_one(fields: &Fields) -> bool {
    pool(fields).is_some()
}

/// An owner's permits, and until when it has them.
fn permit(value: &[u8]) -> Option<(i64, i64)> {
    let (permits, ends) = std::str::from_utf8(value).ok()?.split_once('@')?;
    let (permits, ends) = (permits.parse().ok()?, ends.parse().ok()?);
    (permits > 0).then_some((permits, ends))
}

fn owners(fields: &Fields) -> impl Iterator<Item = (&Bytes, &Bytes)> {
    fields.iter().filter(|(owner, _)| *owner != MODE)
}

/// Whether every field is a permit.
pub fn is_whole(fields: &Fields) -> bool {
    owners(fields).all(|(owner, value)| {
        let is_name = !owner.is_empty() && !owner.ends_with(b":write");
        is_name && permit(value).is_some()
    })
}

/// How many permits the owners have.
fn held(fields: &Fields) -> i64 {
    let permits = owners(fields).filter_map(|(_, value)| permit(value));
    permits.map(|(permits, _)| permits).sum()
}

/// Whether fewer are out, as `mode` tells, than the owners have.
pub fn is_short(fields: &Fields) -> bool {
    pool(fields).is_some_and(|[.., out]| out < held(fields))
}

/// Whether somebody has taken from an owner what the module knows of it, and nothing else is
/// to be seen by another owner: then it is found out when its lease ends, or it asks.
pub fn is_unheard(before: &Fields, now: &Fields) -> bool {
    let less = |(owner, value): (&Bytes, &Bytes)| {
        let (had, has) = (permit(before.get(owner)?)?, permit(value)?);
        Some(has.0 != had.0 || has.1 < had.1)
    };
    let same = before.get(MODE) == now.get(MODE) && before.len() == now.len();
    same && owners(now).any(|holder| less(holder) == Some(true))
}

/// Whether it has no field but `mode`.
pub fn is_bare(fields: &Fields) -> bool {
    fields.len() == 1
}

/// When owners' leases end.
pub fn ends(fields: &Fields) -> impl Iterator<Item = i64> + use<'_> {
    let of = |(_, value): (&Bytes, &Bytes)| permit(value).map(|(_, ends)| ends);
    let is_one = is_one(fields);
    owners(fields).filter_map(of).filter(move |_| is_one)
}

/// The same without those who have run out; with `recount` what is out is what is held.
pub fn without_dead(fields: &Fields, now: i64, recount: bool) -> Fields {
    let Some([asked, limit, out]) = pool(fields) else {
        return fields.clone();
    };
    let mut live = fields.clone();
    live.retain(|_, value| permit(value).is_none_or(|(_, ends)| ends >= now));
    let out = match recount {
        true => held(&live),
        false => out - (held(fields) - held(&live)),
    };
    let mode = format!("permits {asked} {limit} {out}");
    live.insert(MODE.to_vec(), mode.into_bytes());
    live
}

/// Whether two hashes say the same, but for deadlines that are so much apart.
pub fn same(one: &Fields, other: &Fields, slack: i64) -> bool {
    let all = one.len() == other.len();
    all && one.iter().zip(other).all(|((name, a), (name_too, b))| {
        let near = match (permit(a), permit(b)) {
            (Some((held, ends)), Some((held_too, ends_too))) => {
                held == held_too && (ends - ends_too).abs() <= slack
            }
            _ => a == b,
        };
        name == name_too && near
    })
}

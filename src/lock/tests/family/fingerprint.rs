//! When two states are the same: what is left of the core and of the model when
//! moments count from now, waiters by their order, and tokens only for which are
//! the same.

use std::collections::hash_map::DefaultHasher;
use std::collections::BTreeSet;
use std::fmt::{Debug, Write};
use std::hash::{Hash, Hasher};

use super::world::World;

/// Waiters are numbered from here on, so that they are known from other numbers.
pub const FIRST_WAITER: u64 = 2_000_000_000;
/// So are connections.
pub const FIRST_CLIENT: u64 = 10_000_000_000;
/// The monotonic clock starts here.
pub const FIRST_MONO: i64 = 50_000_000_000;
const FIRST_MS: u64 = 1_000_000_000_000;
const FIRST_US: u64 = 1_000_000_000_000_000;
const NEVER: u64 = 9_000_000_000_000_000_000;

pub fn text(world: &World) -> String {
    ordered(&without_since(&state(world)), world)
}

pub fn fingerprint(world: &World) -> u64 {
    let text = text(world);
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// All that is remembered, in an order that does not depend on hashing.
fn state(world: &World) -> String {
    let core = &world.shell.core;
    let mut text = String::new();
    for (db, table) in &core.tables {
        let _ = write!(text, "{db}{}", sorted(table.iter()));
    }
    text += &sorted(core.waiters.iter());
    text += &sorted(core.by_owner.iter());
    text += &sorted(core.by_client.iter());
    text += &sorted(core.grants.iter());
    text += &sorted(core.bonds.iter());
    let _ = write!(
        text,
        "{:?}{:?}{:?}{:?}",
        core.waited_for, core.leases, core.timeouts, core.renewals
    );
    let _ = write!(text, "{:?}{:?}", world.shell.ks.keys, core.unsettled);
    let model = &world.model;
    let mut holds: Vec<_> = model.holds.iter().collect();
    holds.sort_by_key(|hold| (hold.place, hold.owner));
    for hold in holds {
        let kept = (
            hold.place,
            hold.owner,
            hold.mode,
            hold.client,
            hold.watch.is_some(),
        );
        let granted = model
            .grants
            .iter()
            .any(|grant| grant.holds.contains(&hold.id));
        let _ = write!(text, "{kept:?}{granted}");
    }
    for waiter in &model.queue {
        let _ = write!(text, "{:?}{}", waiter.ask, waiter.upgrades);
    }
    text
}

fn sorted<T: Debug>(items: impl Iterator<Item = T>) -> String {
    let mut lines: Vec<String> = items.map(|item| format!("{item:?}")).collect();
    lines.sort();
    lines.join(";")
}

/// Since when a lock is held only INFO tells.
fn without_since(text: &str) -> String {
    let mut parts = text.split("since_us: Some(");
    let first = parts.next().unwrap_or_default().to_owned();
    let digit = |c: char| c.is_ascii_digit();
    parts.fold(first, |all, part| all + part.trim_start_matches(digit))
}

/// The text with its numbers made comparable.
fn ordered(text: &str, world: &World) -> String {
    let now_ms = world.shell.ks.now_ms;
    let numbers = || {
        let parts = text.split(|c: char| !c.is_ascii_digit());
        parts.filter_map(|part| part.parse::<u64>().ok())
    };
    let is_waiter = |n: &u64| (FIRST_WAITER..FIRST_CLIENT).contains(n);
    let is_client = |n: &u64| (FIRST_CLIENT..FIRST_MONO as u64).contains(n);
    let is_token = |n: &u64| (FIRST_US..NEVER).contains(n);
    let waiters: BTreeSet<u64> = numbers().filter(is_waiter).collect();
    let closed = |n: &u64| is_client(n) && !world.seats.contains(n);
    let first_seen = |of: &dyn Fn(&u64) -> bool| {
        let mut seen: Vec<u64> = Vec::new();
        for n in numbers().filter(|n| of(n)) {
            if !seen.contains(&n) {
                seen.push(n);
            }
        }
        seen
    };
    let (tokens, closed) = (first_seen(&is_token), first_seen(&closed));
    let place = |of: &[u64], n: u64| of.iter().position(|known| *known == n);
    let rank = |of: &BTreeSet<u64>, n: u64| of.range(..n).count();
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        out += &rest[..start];
        let end = rest[start..].find(|c: char| !c.is_ascii_digit());
        let end = end.map_or(rest.len(), |length| start + length);
        let _ = match rest[start..end].parse::<u64>() {
            Ok(n) if is_waiter(&n) => write!(out, "w{}", rank(&waiters, n)),
            Ok(n) if is_token(&n) => write!(out, "t{:?}", place(&tokens, n)),
            Ok(n) if is_client(&n) => match place(&world.seats, n) {
                Some(seat) => write!(out, "c{seat}"),
                None => write!(out, "x{:?}", place(&closed, n)),
            },
            Ok(n) if (FIRST_MS..FIRST_US).contains(&n) => {
                // How long ago makes no difference: nothing here counts from then.
                write!(out, "m{}", (n as i64 - now_ms).max(-1))
            }
            Ok(n) if n >= FIRST_MONO as u64 && n < FIRST_MS => write!(out, "s"),
            _ => write!(out, "{}", &rest[start..end]),
        };
        rest = &rest[end..];
    }
    out + rest
}

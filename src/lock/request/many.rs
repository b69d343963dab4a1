//! MACQUIRE, MRELEASE and MRENEW: several plain locks at once, all or none.
//!
//! A request that waits holds nothing. It stands in the queue of each of its keys
//! under one rank, and has them all when on each it is first and the key is free,
//! or its owner holds it already. So two of them never wait for each other, but for
//! what their owners hold beside. A key whose first waiter wants others too stays free
//! for it: it is reserved.

use super::acquire::{require_own_tag, require_start};
use super::release::release_one;
use super::renew::{renew_one, require_its_tag};

use crate::lock::ask::{Ask, Ended, Renewal, Want};
use crate::lock::grant::Plan;
use crate::lock::{grant, head, modes, ready, reconcile, waiting};
use crate::lock::{Decision, Key, Mode, Refusal, Token, Verdict};

/// The most keys of one request.
pub const MOST_KEYS: usize = 1024;

fn keys(d: &Decision<'_>, db: i32, names: &[&[u8]]) -> Vec<Key> {
    let keys = names.iter().map(|name| d.core.locks.key(db, name));
    keys.collect()
}

/// Acquires all of these locks, or waits for them; one token for all.
pub fn acquire_many(
    d: &mut Decision<'_>,
    names: &[&[u8]],
    ask: &Ask<'_>,
) -> Result<Verdict, Refusal> {
    debug_assert_eq!(ask.mode, Mode::Exclusive, "only plain locks go together");
    let keys = keys(d, ask.db, names);
    let before = d.size();
    let mut plan = Vec::with_capacity(keys.len());
    for key in &keys {
        let mut look = ready::look(d, key, ask.owner);
        let asked = (ask.mode, ask.share);
        let how = grant::admit(d, key, ask.owner, asked, ask.once, &mut look)?;
        require_start(d, how)?;
        let free = how.filter(|how| how.is_holders() || !head::is_waited_for(d.core, key));
        plan.extend(free.map(|how| (key.clone(), how, look)));
    }
    require_own_tag(d, &keys, ask)?;
    let taken = if d.size() != before {
        // What was seen of a key may have changed when another was looked at.
        look_and_take(d, &keys, ask)
    } else if plan.len() == keys.len() {
        take(d, &Want::of(ask), plan)
    } else {
        Ok(None)
    };
    let taken = match taken {
        Err(Refusal::Vanished { .. }) => look_and_take(d, &keys, ask),
        done => done,
    };
    match taken? {
        Some(token) => {
            waiting::forget_place(d.core, d.now, &keys, ask);
            Ok(Verdict::Granted(token))
        }
        None => waiting::wait_for(d, keys, ask, false),
    }
}

/// Takes all keys if each is the owner's, or free and not waited for.
fn look_and_take(
    d: &mut Decision<'_>,
    keys: &[Key],
    ask: &Ask<'_>,
) -> Result<Option<Token>, Refusal> {
    let want = Want::of(ask);
    match grant::plan(d, None, keys, &want)? {
        Some(plan) => take(d, &want, plan),
        None => Ok(None),
    }
}

fn take(d: &mut Decision<'_>, want: &Want, mut plan: Plan) -> Result<Option<Token>, Refusal> {
    let fresh = grant::fresh(d, want, &mut plan)?;
    let (token, _) = grant::carry_out(d, want, plan, fresh)?;
    Ok(Some(token))
}

/// Releases one plain hold on each key where the owner has one; on how many. None
/// is handed on before all of them are released: what another request of the
/// owner's gets by that it keeps.
pub fn release_many(
    d: &mut Decision<'_>,
    names: &[&[u8]],
    ended: &Ended<'_>,
) -> Result<i64, Refusal> {
    let keys = keys(d, ended.db, names);
    for key in &keys {
        let look = ready::look(d, key, ended.owner);
        modes::require_lock(key, &look)?;
    }
    let mut released: i64 = 0;
    for key in &keys {
        let look = reconcile::read(d, key, ended.owner);
        if release_one(d, key, ended, look).is_ok() {
            released = released.saturating_add(1);
        }
    }
    Ok(released)
}

/// Renews the owner's lease on all keys, or on none if it lacks one.
pub fn renew_many(
    d: &mut Decision<'_>,
    names: &[&[u8]],
    renewal: &Renewal<'_>,
) -> Result<(), Refusal> {
    let keys = keys(d, renewal.db, names);
    for key in &keys {
        let look = ready::look(d, key, renewal.owner);
        modes::require(d.core, key, renewal.owner, Mode::Exclusive, &look)?;
    }
    require_its_tag(d, &keys, renewal)?;
    for key in &keys {
        let look = reconcile::read(d, key, renewal.owner);
        renew_one(d, key, renewal, &look);
    }
    Ok(())
}

//! ACQUIRE: take a free lock, join, nest, be refused, or wait.

use crate::lock::ask::{Ask, Once, Want};
use crate::lock::grant::GrantKind;
use crate::lock::{grant, head, modes, ready, subscribers, waiting};
use crate::lock::{Decision, Key, Refusal, Verdict};

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
    require_free_tag(d, std::slice::from_ref(&key), ask)?;
    let asked = (ask.mode, ask.share);
    let how = grant::admit(d, &key, ask.owner, asked, ask.once, &mut look)?;
    require_start(d, how.is_some_and(|how| how.is_holders()))?;
    match how.filter(|how| how.is_holders() || !head::is_waited_for(d.core, &key)) {
        Some(how) => {
            let want = Want::of(ask);
            let token = grant::give(d, &key, &want, how, look, None)?;
            if how == GrantKind::Join {
                subscribers::passed(d, &key, ask.mode.is_read_write());
            }
            waiting::forget_place(d, std::slice::from_ref(&key), ask);
            Ok(Verdict::Granted(token))
        }
        None if how.is_none() && modes::is_half(d.core, &key) => Err(Refusal::OnItsWay { key }),
        None => {
            if how == Some(GrantKind::Join) {
                subscribers::keeps_out(d, &key);
            }
            waiting::wait_for(d, key, ask)
        }
    }
}

/// Refuses a request for a lock that is not its owner's already, as long as the server may
/// have lost holds that are still under way.
pub fn require_start(d: &Decision<'_>, is_holders: bool) -> Result<(), Refusal> {
    match d.core.rules.grants_in {
        Some(ms) if !is_holders => Err(Refusal::NotYet { ms }),
        _ => Ok(()),
    }
}

/// A tag stands for one request of its connection, so that its messages are not taken for
/// another's. A request that is said again with ONCE may have the one that it had.
pub fn require_free_tag(d: &Decision<'_>, keys: &[Key], ask: &Ask<'_>) -> Result<(), Refusal> {
    let Some(address) = ask.notify.filter(|address| d.core.sessions.has(address)) else {
        return Ok(());
    };
    let is_its = || {
        let waits = waiting::same_request(d.core, keys, ask.owner, (ask.mode, ask.share));
        let waits = waits.and_then(|id| d.core.queues.get(id));
        let waits = waits.is_some_and(|waiter| waiter.told_at() == Some(address));
        let mut holds = keys
            .iter()
            .filter_map(|key| d.core.locks.hold(key, ask.owner));
        waits || holds.any(|hold| hold.is_told_at(ask.mode, address))
    };
    if ask.once == Once::IsTheSame && is_its() {
        return Ok(());
    }
    let tag = address.tag.clone();
    Err(Refusal::TagInUse { tag })
}

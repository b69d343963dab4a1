//! ACQUIRE: take a free lock, join, nest, be refused, or wait.

use crate::lock::ask::{Ask, Once, Want};
use crate::lock::grant::GrantKind;
use crate::lock::{grant, head, modes, ready, subscribers, waiting};
use crate::lock::{Address, Decision, Key, Mode, Refusal, Verdict};

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
    require_own_tag(d, std::slice::from_ref(&key), ask)?;
    let asked = (ask.mode, ask.share);
    let how = grant::admit(d, &key, ask.owner, asked, ask.once, &mut look)?;
    require_start(d, how)?;
    match how.filter(|how| how.is_holders() || !head::is_waited_for(d.core, &key)) {
        Some(how) => {
            let want = Want::of(ask);
            let token = grant::give(d, &key, &want, how, look, None)?;
            if how == GrantKind::Join {
                subscribers::passed(d.core, d.out, &key, ask.mode.is_read_write());
            }
            waiting::forget_place(d.core, d.now, std::slice::from_ref(&key), ask);
            Ok(Verdict::Granted(token))
        }
        None if how.is_none() && modes::is_half(d.core, &key) => Err(Refusal::Migrating { key }),
        None => {
            if how == Some(GrantKind::Join) {
                subscribers::keeps_out(d, &key);
            }
            waiting::wait_for(d, key, ask, look.as_known)
        }
    }
}

/// Refuses a request for a lock that is not its owner's already, as long as the server may
/// have lost holds that are still under way.
pub fn require_start(d: &Decision<'_>, how: Option<GrantKind>) -> Result<(), Refusal> {
    let is_holders = how.is_some_and(|how| how.is_holders());
    match d.core.rules.grants_in {
        Some(ms) if !is_holders => Err(Refusal::NotYet { ms }),
        _ => Ok(()),
    }
}

/// A request that is said again with ONCE may have the tag that it had.
pub fn require_own_tag(d: &Decision<'_>, keys: &[Key], ask: &Ask<'_>) -> Result<(), Refusal> {
    require_free_tag(d, ask.notify, |address| {
        let waits = waiting::same_request(d.core, keys, ask.owner, (ask.mode, ask.share));
        let waits = waits.and_then(|id| d.core.queues.get(id));
        let waits = waits.is_some_and(|waiter| waiter.told_at() == Some(address));
        ask.once == Once::IsTheSame && (waits || is_told_at(d, keys, ask.owner, ask.mode, address))
    })
}

/// A tag stands for one request of its connection, so that its messages are not taken for
/// another's. `is_its`: whether this is the one.
pub fn require_free_tag(
    d: &Decision<'_>,
    notify: Option<&Address>,
    is_its: impl Fn(&Address) -> bool,
) -> Result<(), Refusal> {
    match notify.filter(|address| d.core.sessions.has(address) && !is_its(address)) {
        Some(address) => Err(Refusal::TagInUse {
            tag: address.tag.clone(),
        }),
        None => Ok(()),
    }
}

/// Whether the loss of some of these holds is told there.
pub fn is_told_at(
    d: &Decision<'_>,
    keys: &[Key],
    owner: &[u8],
    mode: Mode,
    address: &Address,
) -> bool {
    let mut holds = keys.iter().filter_map(|key| d.core.locks.hold(key, owner));
    holds.any(|hold| hold.is_told_at(mode, address))
}

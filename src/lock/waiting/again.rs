//! A request that is said again, with ONCE, takes the place of the one that waits.

use crate::lock::ask::{Ask, Once, Share};
use crate::lock::leaving;
use crate::lock::queue::Waiter;
use crate::lock::{Core, Decision, Key, Mode, Now, Outcome, Refusal, WaiterId};

/// The foremost request of an owner for these very keys, in this mode, for as much.
pub fn same_request(
    core: &Core,
    keys: &[Key],
    owner: &[u8],
    asked: (Mode, Share),
) -> Option<WaiterId> {
    let same = |waiter: &Waiter| waiter.is_for(keys, asked);
    let requests = core.queues.requests(owner, keys.first()?);
    let mut its = requests
        .map(|(_, id)| id)
        .filter(|id| core.queues.get(*id).is_some_and(same));
    its.next()
}

/// A request is granted at once: if it was sent before, it needs the place no more that
/// was kept for it.
pub fn forget_place(core: &mut Core, now: Now, keys: &[Key], ask: &Ask<'_>) {
    if ask.once == Once::IsTheSame {
        let kept = core.queues.kept();
        kept.take(keys, ask.owner, (ask.mode, ask.share), now);
    }
}

/// A request takes the place of an older one, whose wait ends. Where the older one is told
/// at the same address nothing is said: it is the same request, sent again.
pub fn take_over(d: &mut Decision<'_>, old: WaiterId, id: WaiterId, mut waiter: Waiter) {
    let Some(before) = d.core.queues.get(old) else {
        return;
    };
    let to = before.told_at().cloned();
    waiter.rank = before.rank.clone();
    waiter.since = before.since;
    let is_resent = to.as_ref().zip(waiter.told_at());
    let is_resent = is_resent.is_some_and(|(old, new)| old.reads_as(new));
    if let Some(address) = waiter.told_at() {
        d.core.sessions.add_wait(address, id);
    }
    if let Some(address) = &to {
        d.core.sessions.remove_wait(address, old);
    }
    d.core.queues.replace(old, id, waiter);
    leaving::stir(d.core, id);
    if !is_resent {
        d.answer(old, to, Outcome::Refused(Refusal::Superseded));
    }
}

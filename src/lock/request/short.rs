//! The short way: a plain lock of which nothing else is to be known is acquired while it is
//! free, and released by the owner that holds it once.
//!
//! These are most requests, and for them a decision comes to a look, a write and a record, so
//! nothing else of one is begun. Each "no" comes before the first write, and leaves the request to
//! the long way, [`acquire`](super::acquire) or [`release`](super::release), as if it had not
//! been here. What is done here the long way would do in the same order.

use super::{acquire as long_acquire, release as long_release};
use crate::lock::ask::{Ask, Ended, Only, Verdict};
use crate::lock::head;
use crate::lock::table::{Begun, Hold};
use crate::lock::{
    Core, Counter, Decider, Event, Key, Kind, Look, Mode, Notice, Owner, Refusal, Token,
    WakeTarget, Write,
};

/// ACQUIRE, by the shortest way.
pub fn acquire(with: &mut Decider<'_>, name: &[u8], ask: &Ask<'_>) -> Result<Verdict, Refusal> {
    match take(with, name, ask) {
        Some(token) => Ok(Verdict::Granted(token)),
        None => with.request(|d| long_acquire::acquire(d, name, ask)),
    }
}

/// RELEASE, by the shortest way: how many holds are left.
pub fn release(with: &mut Decider<'_>, name: &[u8], ended: &Ended<'_>) -> Result<i64, Refusal> {
    match free(with, name, ended) {
        Some(()) => Ok(0),
        None => with.decide(|d| long_release::release(d, name, ended)),
    }
}

/// Nothing is due, was heard or is half done, and nobody gets events.
fn is_quiet(core: &Core) -> bool {
    let is_busy = core.has_due() || core.any_half_done() || core.any_to_let_go();
    !is_busy && !core.rules.emits_events
}

/// Takes a free lock of which nothing is known, and which has no counter.
fn take(with: &mut Decider<'_>, name: &[u8], ask: &Ask<'_>) -> Option<Token> {
    let Decider { core, ks, now, .. } = with;
    let is_plain = ask.mode == Mode::Exclusive && ask.notify.is_none() && !ask.watch;
    let rules = &core.rules;
    let is_allowed = rules.grants_in.is_none() && !rules.counts && !ks.in_cluster();
    if !is_plain || !is_allowed || !is_quiet(core) || core.locks.contains(ask.db, name) {
        return None;
    }
    let key = Key::new(ask.db, name);
    let is_free = !head::is_waited_for(core, &key) && ks.look(&key, ask.owner) == Look::FREE;
    if !is_free || ks.counter(&key) != Counter::Absent {
        return None;
    }
    let token = core.tokens.next(*now, core.tokens.before(&key))?;
    core.tokens.given(&key, token);
    let at = now.deadline(ask.lease);
    let owner = Owner::from(ask.owner);
    let take = Write::Take {
        owner: owner.clone(),
        holds: 1,
        at,
    };
    ks.write(&key, &take);
    let since = now.wall;
    let hold = Hold {
        begun: Some(Begun { token, since }),
        client: ask.client,
        ..Hold::found(owner)
    };
    core.locks.set_plain(&key, hold, Some(at));
    core.subscribers.count_grant(&key);
    core.counters.event(Event::Acquired);
    Some(token)
}

/// Frees a lock that its owner holds once, and that nobody waits for in the queue.
fn free(with: &mut Decider<'_>, name: &[u8], ended: &Ended<'_>) -> Option<()> {
    let Decider { core, ks, now, out } = with;
    let is_plain = ended.mode == Mode::Exclusive && !matches!(ended.only, Some(Only::Token(_)));
    if !is_plain || ks.in_cluster() || !is_quiet(core) {
        return None;
    }
    let entry = core.locks.by_name(ended.db, name)?;
    if !entry.is_only_held_by(ended.owner) {
        return None;
    }
    let key = core.locks.key(ended.db, name);
    if head::is_waited_for(core, &key) {
        return None;
    }
    let known = entry.beside(Some(ended.owner));
    let found = ks.look_with_hint(&key, ended.owner, known);
    if found.kind != Kind::Plain || found.holds != 1 {
        return None;
    }
    ks.write(&key, &Write::Delete);
    core.counters.event(Event::Released);
    core.locks.forget_holders(&key);
    core.count_over(*now);
    let target = WakeTarget::One;
    out.push(Notice::Wake { key, target });
    Some(())
}

//! The short way: a plain lock of which nothing else is to be known is acquired while it is
//! free, released by the owner that holds it once, and handed to a plain request that is next.
//!
//! These are most requests, and for them a decision comes to a look, a write and a record, so
//! nothing else of one is begun. Each "no" comes before the first write, and leaves the request to
//! the long way, [`acquire`](super::acquire) or [`release`](super::release), as if it had not
//! been here. What is done here the long way would do in the same order.

use super::{acquire as long_acquire, release as long_release};
use crate::lock::ask::{Ask, Ended, Only, Share, Verdict, Want};
use crate::lock::head::{self, Next};
use crate::lock::in_flight::Grant;
use crate::lock::queue::Waiter;
use crate::lock::table::{Begun, Hold};
use crate::lock::{leaving, subscribers, waiting, wanted, watchdog};
use crate::lock::{
    Act, Cause, ClientId, Core, Counter, Decider, Due, Event, Hint, Key, Keyspace, Kind, Look,
    Mode, Notice, Notices, Now, Outcome, Owner, Refusal, Token, WaiterId, WakeTarget, WallMs,
    Write,
};

/// ACQUIRE, by the shortest way.
pub fn acquire(with: &mut Decider<'_>, name: &[u8], ask: &Ask<'_>) -> Result<Verdict, Refusal> {
    match take_free(with, name, ask) {
        Some(token) => Ok(Verdict::Granted(token)),
        None => with.request(|d| long_acquire::acquire(d, name, ask)),
    }
}

/// RELEASE, by the shortest way: how many holds are left.
pub fn release(with: &mut Decider<'_>, name: &[u8], ended: &Ended<'_>) -> Result<i64, Refusal> {
    match give_up_only_held(with, name, ended) {
        Some(()) => Ok(0),
        None => with.decide(|d| long_release::release(d, name, ended)),
    }
}

/// Nothing is due, was heard or is half done, nobody gets events, and no slot is on its way.
fn is_quiet(core: &Core, ks: &dyn Keyspace) -> bool {
    !Due::any_now(core) && !core.rules.emits_events && !ks.in_cluster()
}

/// Takes a free lock of which nothing is known, and which has no counter. `None`: it is none, or
/// there is more to do; nothing has changed.
pub fn take_free(with: &mut Decider<'_>, name: &[u8], ask: &Ask<'_>) -> Option<Token> {
    let Decider { core, ks, now, out } = with;
    let is_known = || core.locks.contains(ask.db, name);
    let is_refused = core.rules.grants_in.is_some()
        || ask.notify.is_some_and(|address| core.sessions.has(address));
    if ask.mode != Mode::Exclusive || is_refused || !is_quiet(core, *ks) || is_known() {
        return None;
    }
    let [names, owners] = &mut core.names;
    let key = Key {
        db: ask.db,
        name: names.of(name),
    };
    let owner = Owner::from(owners.of(ask.owner));
    let is_free = !head::is_waited_for(core, &key) && ks.look(&key, ask.owner) == Look::FREE;
    if !is_free {
        return None;
    }
    let token = next_token(core, *ks, *now, &key)?;
    let at = now.deadline(ask.lease);
    let holds = 1;
    ks.write(&key, &Write::Take { owner, holds, at });
    if ask.watch || ask.notify.is_some() {
        begins(core, *now, &key, (&Want::of(ask), token, at));
        wanted::look(core, out, *now);
    } else {
        let since = now.wall;
        let begun = (Begun { token, since }, ask.client);
        core.locks.keep(&key, ask.owner, begun, at);
        has_begun(core, &key);
    }
    waiting::forget_place(core, *now, std::slice::from_ref(&key), ask);
    Some(token)
}

/// A plain lock that its owner holds once is free, or the next one's. `None`: as above.
pub fn give_up_only_held(with: &mut Decider<'_>, name: &[u8], ended: &Ended<'_>) -> Option<()> {
    let Decider { core, ks, now, out } = with;
    if ended.mode != Mode::Exclusive || !is_quiet(core, *ks) {
        return None;
    }
    let known = core.locks.only_held_by(ended.db, name, ended.owner)?;
    let meant = match ended.only {
        Some(Only::Token(token)) => Some(token),
        Some(Only::Held) | None => None,
    };
    if meant.is_some() && known.token != meant {
        return None;
    }
    let key = match known.row {
        Some(_) => {
            let (db, [names, _]) = (ended.db, &mut core.names);
            let name = names.of(name);
            Key { db, name }
        }
        None => core.locks.key(ended.db, name),
    };
    let next = match head::next(core, &key) {
        None => None,
        // An owner that waits may wait for more from now on.
        Some(_) if core.queues.owner(ended.owner).is_some() => return None,
        Some(Next::Waiter(id)) => Some((id, core.queues.get(id)?)),
        Some(Next::Subscribers) => return None,
    };
    let is_turn = core.subscribers.is_turn(&key);
    if is_turn || next.is_some_and(|(_, waiter)| !can_be_next(core, *now, waiter)) {
        return None;
    }
    // Whether a token is that of the hold under way, its end tells too.
    let hint = Hint {
        holder: Some(ended.owner),
        end: meant.is_none().then_some(known.ends),
    };
    let found = ks.look_with_hint(&key, ended.owner, hint);
    if found.ran_out {
        // The next look finds it gone, and would not know why.
        core.heard.of(key, Cause::Expired);
        return None;
    }
    let is_as_known = found.holds == 1 && found.expires == Some(known.ends);
    if found.kind != Kind::Plain || !is_as_known {
        return None;
    }
    let next = next.map(|(id, _)| id);
    if let Some(id) = next {
        return hand_over(with, &key, ended, id);
    }
    ks.write(&key, &Write::Delete);
    core.counters.event(Event::Released);
    match known.row {
        Some(row) => core.locks.drop_record(key.db, row),
        None => ends(core, out, &key, ended.client),
    }
    core.count_over(*now);
    let target = WakeTarget::One;
    out.push(Notice::Wake { key, target });
    Some(())
}

/// Whether nothing follows from its grant but its reply: its owner waits for nothing else.
fn can_be_next(core: &Core, now: Now, waiter: &Waiter) -> bool {
    let want = &waiter.want;
    let asked = (want.mode, want.share);
    let is_plain = asked == (Mode::Exclusive, Share::HOLD) && !waiter.is_many();
    is_plain && !waiter.is_late(now) && core.queues.ids_of(&want.owner).nth(1).is_none()
}

/// The lock goes from its owner to the first who waits.
fn hand_over(with: &mut Decider<'_>, key: &Key, ended: &Ended<'_>, id: WaiterId) -> Option<()> {
    let Decider { core, ks, now, out } = with;
    let waiter = core.queues.get(id)?;
    let (want, told_at) = (waiter.want.clone(), waiter.told_at().cloned());
    let act = Act::Acquire(std::slice::from_ref(key));
    let may = want.client.is_none_or(|client| ks.may(client, act));
    let hears = told_at.as_ref().is_none_or(|address| ks.reaches(address));
    if !may || !hears {
        return None;
    }
    let token = next_token(core, *ks, *now, key)?;
    let at = now.deadline(want.lease);
    let hand_over = Write::HandOver {
        from: Owner::from(ended.owner),
        to: want.owner.clone(),
        at,
    };
    if !ks.write(key, &hand_over) {
        return None;
    }
    core.counters.event(Event::Released);
    if let Some(gone) = leaving::dequeue(core, id) {
        let waited = now.mono.since(gone.waiter.since);
        core.counters.waits.add(waited, now.wall_ms());
    }
    if let Some(over) = begins(core, *now, key, (&want, token, at)) {
        watchdog::on_over(core, out, key, over, ended.client);
    }
    core.count_over(*now);
    subscribers::passed(core, out, key, false);
    let grant = Grant::new(vec![(key.clone(), token)], want);
    core.in_flight.grants.insert(id, grant);
    out.push(Notice::Answer {
        waiter: id,
        to: told_at,
        outcome: Outcome::Granted(token),
        wanted: false,
    });
    wanted::look(core, out, *now);
    Some(())
}

/// The token of a lock that has no counter and needs none.
fn next_token(core: &mut Core, ks: &mut dyn Keyspace, now: Now, key: &Key) -> Option<Token> {
    if core.rules.counts || ks.counter(key) != Counter::Absent {
        return None;
    }
    let token = core.tokens.next(now, core.tokens.before(key))?;
    core.tokens.given(key, token);
    Some(token)
}

/// The first hold of a request has begun, and ends then. The one before it, if it was handed on.
fn begins(
    core: &mut Core,
    now: Now,
    key: &Key,
    (want, token, at): (&Want, Token, WallMs),
) -> Option<Hold> {
    let hold = Hold::granted(want, token, now.wall);
    let before = core.locks.set_plain(key, hold, Some(at));
    has_begun(core, key);
    if !want.binding().is_empty() {
        watchdog::on_acquired(core, key, want, &[], now);
    }
    before
}

fn has_begun(core: &mut Core, key: &Key) {
    core.subscribers.count_grant(key);
    core.counters.event(Event::Acquired);
}

/// All that was held is over, by this connection's request.
fn ends(core: &mut Core, out: &mut Notices, key: &Key, by: Option<ClientId>) {
    for hold in core.locks.forget_holders(key) {
        watchdog::on_over(core, out, key, hold, by);
    }
}

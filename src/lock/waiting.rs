//! Waiting, and how a lock goes to the next.

use super::acquire::{held, one_more, How};
use super::ask::Want;
use super::head::{self, Next};
use super::in_flight::Grant;
use super::queue::{Rank, Waiter};
use super::stats::Counters;
use super::{acquire, deadlock, freed, judge, leaving, reconcile, subscribers, timeouts, token};
use super::{
    Core, Decision, Key, Kind, Look, Mode, Outcome, Refusal, Token, Verdict, Wait, WaiterId, Whom,
};

/// So many waiters are looked at in one decision: readers that may all enter, say.
/// The rest is as if nothing had happened yet.
const MOST_TURNS: u32 = 128;

/// In what way a request can have each of its keys.
pub type Ways = Vec<(Key, How, Look)>;

/// What became of a look at one who waits.
pub enum Turn {
    /// It has what it waits for, or can never have it.
    Over,
    /// It is not to be had yet.
    NotYet,
}

impl Core {
    /// The request of a reader that wants to write, while others read.
    pub(super) fn upgrades(&self, keys: &[Key], want: &Want) -> bool {
        let [key] = keys else {
            return false;
        };
        let party = self.locks.party(key, &want.owner);
        want.mode == Mode::Write && party.is_some_and(|party| party.reads)
    }
}

/// The request waits, unless it would wait for itself.
pub fn wait_for(
    d: &mut Decision<'_>,
    keys: Vec<Key>,
    want: Want,
    once: bool,
    wait: Wait,
) -> Result<Verdict, Refusal> {
    for key in &keys {
        reconcile::know_holder(d, key);
    }
    // Who was found dead on the way may have let somebody else in.
    let stirred = d.work.is_stirred();
    if stirred {
        settle_pending(d);
    }
    let id = d.core.queues.number();
    let upgrades = d.core.upgrades(&keys, &want);
    let rank = match keys.first() {
        Some(key) if upgrades => d.core.front(key, id),
        _ => Rank::arrived(id),
    };
    let waiter = Waiter {
        keys,
        want,
        once,
        rank,
        since: d.now.mono,
        until: wait.until(d.now),
    };
    if stirred {
        d.work.dirty.extend(waiter.keys.iter().cloned());
    }
    d.core.enqueue(id, waiter);
    d.asking = Some(id);
    let now = d.now;
    let circle = judge::proven(d, |core| {
        let second = upgrades.then(|| core.other_upgrade(id)).flatten();
        second.or_else(|| core.closes_a_circle(id, now))
    });
    let circle = match circle {
        Some(circle) if !upgrades => deadlock::let_past(d, id, circle),
        circle => circle,
    };
    let Some(circle) = circle else {
        return Ok(Verdict::Waits(id));
    };
    // As if it had never come.
    d.core.dequeue(id);
    Counters::up(&mut d.core.counters.deadlocks);
    Err(Refusal::Deadlock { circle })
}

/// Gives a key to those at the head of its queue who can have it now, as far as
/// turns are left.
fn settle(d: &mut Decision<'_>, key: &Key, turns: &mut u32) {
    while let Some(next) = head::next(d.core, key) {
        if *turns == 0 {
            d.core.due.dirty.insert(key.clone());
            break;
        }
        let id = match next {
            // What holds it up is another key, and that is as it was.
            Next::Waiter(id) if d.held_up.get(&id).is_some_and(|other| other != key) => break,
            Next::Waiter(id) => id,
            Next::Subscribers if subscribers::offer(d, key) => break,
            Next::Subscribers => continue,
        };
        *turns = turns.saturating_sub(1);
        // Who nests in what was granted a moment ago may have come before.
        let rank = d.core.queues.get(id).map(|waiter| waiter.rank.clone());
        if judge::nest_first(d, rank.as_ref()) {
            continue;
        }
        match turn(d, id) {
            Turn::Over => {}
            Turn::NotYet => break,
        }
    }
    d.work.dirty.remove(key);
}

/// Settles what the decision under way has stirred up: first who can have what
/// it waits for gets it, then nobody may wait in a circle.
pub fn settle_pending(d: &mut Decision<'_>) {
    // As nearly always where nobody waits.
    if !d.work.is_stirred() && d.work.suspects.is_empty() && d.work.freed.is_empty() {
        return;
    }
    let mut turns = MOST_TURNS;
    let before = d.size();
    loop {
        if turns == 0 || d.is_long(before) {
            // The rest has a decision of its own, after others had a turn.
            d.core.due.append(std::mem::take(&mut d.work));
            return;
        }
        if let Some(key) = d.work.dirty.pop_first() {
            if d.ks.is_at_hand(&key) {
                settle(d, &key, &mut turns);
            } else {
                d.core.due.dirty.insert(key);
            }
            continue;
        }
        turns = turns.saturating_sub(1);
        if !judge::nest_first(d, None)
            && !judge::judge_upgrades(d)
            && !judge::judge_circles(d)
            && !d.work.is_stirred()
        {
            break;
        }
    }
    for (key, whom) in std::mem::take(&mut d.work.freed) {
        let is_open = match d.ks.look(&key, &[]).kind {
            Kind::Free => true,
            Kind::ReadWrite(Mode::Read) => {
                whom == Whom::AllShared && !head::is_waited_for(d.core, &key)
            }
            Kind::ReadWrite(_) | Kind::Plain | Kind::Foreign(_) => false,
        };
        if is_open {
            freed::wake(d, &key, whom);
        }
    }
}

/// One who waits, and stands first in a queue, or holds something now: it is
/// given what it waits for if that is to be had.
pub fn turn(d: &mut Decision<'_>, id: WaiterId) -> Turn {
    let Some(waiter) = d.core.queues.get(id).cloned() else {
        return Turn::Over;
    };
    if waiter.is_late(d.now) {
        timeouts::timed_out(d, id);
        return Turn::Over;
    }
    let ways = ways(d, Some(id), &waiter.keys, &waiter.want, waiter.once).and_then(|ways| {
        let Some(mut ways) = ways else {
            return Ok(None);
        };
        let fresh = fresh(d, &waiter.want, &mut ways)?;
        Ok(Some((ways, fresh)))
    });
    let (ways, fresh) = match ways {
        Ok(Some(ways)) => ways,
        Ok(None) => return Turn::NotYet,
        Err(Refusal::OnItsWay { key }) => {
            d.core.look_again(&key);
            return Turn::NotYet;
        }
        Err(Refusal::Vanished { key }) => {
            d.core.due.dirty.insert(key);
            return Turn::NotYet;
        }
        Err(refusal) => {
            refuse(d, id, refusal);
            return Turn::Over;
        }
    };
    let Some(gone) = d.core.dequeue(id) else {
        return Turn::Over;
    };
    leaving::left(d.core, &mut d.work, &gone);
    match give_all(d, &waiter.want, ways, fresh) {
        Ok((token, keys)) => granted(d, id, &waiter, token, keys),
        Err(Refusal::Vanished { key }) => {
            d.core.enqueue(id, waiter);
            d.core.due.dirty.insert(key);
            return Turn::NotYet;
        }
        Err(refusal) => d.answer(id, Outcome::Refused(refusal)),
    }
    Turn::Over
}

/// Whether a waiter can have what it waits for; it has it then, or its answer.
pub fn has_its_turn(d: &mut Decision<'_>, id: WaiterId) -> bool {
    matches!(turn(d, id), Turn::Over)
}

/// A waiter has what it waited for.
fn granted(
    d: &mut Decision<'_>,
    id: WaiterId,
    waiter: &Waiter,
    token: Token,
    keys: Vec<(Key, Token)>,
) {
    let waited = d.now.mono.since(waiter.since);
    d.core.counters.waits.add(waited);
    for (key, _) in &keys {
        subscribers::passed(d, key, waiter.want.mode != Mode::Exclusive);
    }
    let grant = Grant {
        keys,
        owner: waiter.want.owner.clone(),
        mode: waiter.want.mode,
        client: waiter.want.client,
        watched: waiter.want.watch,
    };
    // The reply to the request that is decided leaves with the decision.
    if d.asking != Some(id) {
        d.core.in_flight.insert(id, grant);
    }
    d.answer(id, Outcome::Granted(token));
}

/// The token that holds have which begin with a request, if any does, and the keys
/// whose counter is to be set to it.
pub fn fresh(
    d: &mut Decision<'_>,
    want: &Want,
    ways: &mut Ways,
) -> Result<Option<(Token, Vec<Key>)>, Refusal> {
    // One that turns out to be gone is to be known before any is taken.
    if ways.len() > 1 {
        for (key, how, look) in ways.iter_mut() {
            acquire::secure(d, key, want, *how, look)?;
        }
    }
    // Also for holds that others began: their counter may refuse, and nothing may
    // be written before that.
    let lacks = |(key, how, _): &(Key, How, Look)| {
        let known = d.core.token_under_way(key, &want.owner, *how);
        known.is_none()
    };
    if !ways.iter().any(lacks) {
        return Ok(None);
    }
    let keys = ways.iter().map(|(key, ..)| key);
    token::new_token(d, keys).map(Some)
}

/// Gives all keys that a request wants: its token, and that of each hold. A
/// hold that begins with it has the request's token, a nested one its own.
pub fn give_all(
    d: &mut Decision<'_>,
    want: &Want,
    ways: Ways,
    fresh: Option<(Token, Vec<Key>)>,
) -> Result<(Token, Vec<(Key, Token)>), Refusal> {
    let token = fresh.as_ref().map(|(token, _)| *token);
    let mut given = Vec::with_capacity(ways.len());
    for (key, how, look) in ways {
        let given_token = acquire::give(d, &key, want, how, look, token)?;
        given.push((key, given_token));
    }
    if let Some((token, counted)) = fresh {
        token::fence(d, counted, token);
    }
    let greatest = given.iter().map(|(_, token)| *token).max();
    Ok((token.or(greatest).unwrap_or(Token::BEFORE_FIRST), given))
}

/// In what way a request can have each of its keys, if it can have them all. `id`: it
/// stands in their queues.
pub fn ways(
    d: &mut Decision<'_>,
    id: Option<WaiterId>,
    keys: &[Key],
    want: &Want,
    once: bool,
) -> Result<Option<Ways>, Refusal> {
    let mut ways = Vec::with_capacity(keys.len());
    for key in keys {
        let mut look = reconcile::read(d, key, &want.owner);
        // A name that is something else now may be free again later.
        let how = match acquire::may(d, key, &want.owner, want.mode, &mut look) {
            Err(Refusal::NotALock { .. }) => None,
            how => how?,
        };
        if how == Some(How::Nest) {
            if once {
                return Err(held(key, &want.owner));
            }
            one_more(look.holds.max(look.writes), key, &want.owner)?;
        }
        if how == Some(How::First) && !d.ks.is_free(key) {
            return Err(Refusal::OnItsWay { key: key.clone() });
        }
        let is_next = match head::next(d.core, key) {
            Some(Next::Waiter(next)) => Some(next) == id,
            Some(Next::Subscribers) => false,
            None => true,
        };
        match how.filter(|how| is_next || how.is_holders()) {
            Some(how) => ways.push((key.clone(), how, look)),
            None => {
                if let Some(id) = id.filter(|_| keys.len() > 1) {
                    d.held_up.insert(id, key.clone());
                }
                return Ok(None);
            }
        }
    }
    Ok(Some(ways))
}

pub fn refuse(d: &mut Decision<'_>, id: WaiterId, refusal: Refusal) {
    leaving::give_up(d.core, &mut d.work, id);
    d.answer(id, Outcome::Refused(refusal));
}

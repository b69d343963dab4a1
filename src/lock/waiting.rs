//! Waiting, and how a lock goes to the next.

use super::acquire::{held, one_more, How, Want};
use super::queue::Waiter;
use super::rank::Rank;
use super::stats::Counters;
use super::turns::Next;
use super::{
    Bytes, Cause, Core, Effect, Hold, Key, Keyspace, Kind, Look, Mode, Outcome, Refusal, Step,
    Verdict, Wait, WaiterId, Whom,
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
    /// The request waits, unless it would wait for itself.
    pub(super) fn wait_for<K: Keyspace>(
        &mut self,
        step: &mut Step<'_, K>,
        keys: Vec<Key>,
        want: Want,
        once: bool,
        wait: Wait,
    ) -> Result<Verdict, Refusal> {
        for key in &keys {
            self.know_holder(step, key);
        }
        // Who was found dead on the way may have let somebody else in.
        let stirred = self.is_stirred();
        if stirred {
            self.settle_pending(step);
        }
        let id = self.next_waiter();
        let upgrades = self.upgrades(&keys, &want);
        let rank = match keys.first() {
            Some(key) if upgrades => self.front(key, id),
            _ => Rank::arrived(id),
        };
        let waiter = Waiter {
            keys,
            want,
            once,
            rank,
            since: step.now.mono_us,
            until: (wait.ms > 0).then(|| step.now.until(wait.ms)),
        };
        if stirred {
            self.pending.extend(waiter.keys.iter().cloned());
        }
        self.insert(id, waiter);
        let now = step.now;
        let circle = self.proven(step, |core| {
            let second = upgrades.then(|| core.other_upgrade(id)).flatten();
            second.or_else(|| core.closes_a_circle(id, now))
        });
        let circle = match circle {
            None if !self.is_stirred() => return Ok(Verdict::Waits(id)),
            Some(circle) if !upgrades => self.let_past(step, id, circle),
            circle => circle,
        };
        if circle.is_some() {
            self.withdraw(id);
            Counters::up(&mut self.counters.deadlocks);
        }
        self.settle_pending(step);
        match circle {
            Some(circle) => Err(Refusal::Deadlock { circle }),
            None => self.claim(step, id),
        }
    }

    /// Something is to be settled yet.
    fn is_stirred(&self) -> bool {
        !self.pending.is_empty() || !self.nesting.is_empty() || !self.risen.is_empty()
    }

    /// Takes a request back that has not waited, as if it had never come.
    pub(super) fn withdraw(&mut self, id: WaiterId) {
        let pending = self.pending.clone();
        self.dequeue(id);
        self.pending = pending;
    }

    /// What a request that was queued a moment ago got, if it got something.
    fn claim<K: Keyspace>(
        &mut self,
        step: &mut Step<'_, K>,
        id: WaiterId,
    ) -> Result<Verdict, Refusal> {
        let answer =
            |effect: &Effect| matches!(effect, Effect::Answer { waiter, .. } if *waiter == id);
        let Some(at) = step.out.iter().position(answer) else {
            return Ok(Verdict::Waits(id));
        };
        match step.out.remove(at) {
            Effect::Answer {
                outcome: Outcome::Granted(token),
                ..
            } => {
                self.grants.remove(&id);
                Ok(Verdict::Granted(token))
            }
            Effect::Answer {
                outcome: Outcome::Refused(refusal),
                ..
            } => Err(refusal),
            _ => Ok(Verdict::Refused),
        }
    }

    /// The request of a reader that wants to write, while others read.
    pub(super) fn upgrades(&self, keys: &[Key], want: &Want) -> bool {
        let [key] = keys else {
            return false;
        };
        let shared = self.entry(key).and_then(|entry| entry.shared.as_ref());
        let party = shared.and_then(|shared| shared.party(&want.owner));
        want.mode == Mode::Write && party.is_some_and(|party| party.reads)
    }

    /// Whose lock it is that is waited for, be it found a moment ago.
    pub(super) fn know_holder<K: Keyspace>(&mut self, step: &mut Step<'_, K>, key: &Key) {
        if let Some(entry) = self.entry(key).filter(|entry| entry.is_held()) {
            let Some(owner) = entry.plain.as_ref().map(|hold| hold.owner.clone()) else {
                return;
            };
            let look = step.ks.look(key, &owner);
            if look.kind != Kind::Plain || look.holds > 0 {
                return;
            }
            // Another has it since, and nobody told.
            self.ended(step, key, Cause::Removed);
            self.set_deadline(key, look.expires);
            self.judge_holders(step, key);
        }
        if let Some(holder) = step.ks.holders(key).into_iter().next() {
            if holder.mode == Mode::Exclusive {
                let owner = Bytes::from(holder.owner);
                self.entry_or_new(key).plain = Some(Hold::found(owner));
            }
        }
    }

    /// As `know_holder`, for an owner that has it for certain.
    pub(super) fn know_plain<K: Keyspace>(
        &mut self,
        step: &mut Step<'_, K>,
        key: &Key,
        owner: &Bytes,
        look: &Look,
    ) {
        let known = self.entry(key).and_then(|entry| entry.hold(owner));
        if known.is_none() && look.kind == Kind::Plain {
            let found = Hold::found(owner.clone());
            if let Some(other) = self.entry_or_new(key).plain.replace(found) {
                self.lost(step, key, &other);
            }
        }
    }

    /// Gives a key to those at the head of its queue who can have it now, as far as
    /// turns are left.
    fn settle<K: Keyspace>(&mut self, step: &mut Step<'_, K>, key: &Key, turns: &mut u32) {
        while let Some(next) = self.next(key) {
            if *turns == 0 {
                self.later.pending.insert(key.clone());
                break;
            }
            *turns = turns.saturating_sub(1);
            let id = match next {
                Next::Waiter(id) => id,
                Next::Subscribers if self.offer(step, key) => break,
                Next::Subscribers => continue,
            };
            // Who nests in what was granted a moment ago may have come before.
            let rank = self.waiters.get(&id).map(|waiter| waiter.rank.clone());
            if self.nest_first(step, rank.as_ref()) {
                continue;
            }
            match self.turn(step, id) {
                Turn::Over => {}
                Turn::NotYet => break,
            }
        }
        self.pending.remove(key);
    }

    /// Settles what the decision under way has stirred up: first who can have what
    /// it waits for gets it, then nobody may wait in a circle.
    pub(super) fn settle_pending<K: Keyspace>(&mut self, step: &mut Step<'_, K>) {
        // As nearly always where nobody waits.
        if !self.is_stirred() && self.suspects.is_empty() && self.left.is_empty() {
            return;
        }
        let mut turns = MOST_TURNS;
        let before = step.out.len();
        loop {
            if turns == 0 || step.is_long(before) {
                // The rest has a decision of its own, after others had a turn.
                return self.unsettle();
            }
            if let Some(key) = self.pending.pop_first() {
                if step.ks.is_at_hand(&key) {
                    self.settle(step, &key, &mut turns);
                } else {
                    self.later.pending.insert(key);
                }
                continue;
            }
            turns = turns.saturating_sub(1);
            if !self.nest_first(step, None)
                && !self.judge_upgrades(step)
                && !self.judge_circles(step)
                && !self.is_stirred()
            {
                break;
            }
        }
        for (key, whom) in std::mem::take(&mut self.left) {
            let is_open = match step.ks.look(&key, &[]).kind {
                Kind::Free => true,
                Kind::ReadWrite(Mode::Read) => whom == Whom::AllShared && !self.is_waited_for(&key),
                Kind::ReadWrite(_) | Kind::Plain | Kind::Foreign(_) => false,
            };
            if is_open {
                self.wake(step, &key, whom);
            }
        }
    }

    /// One who waits, and stands first in a queue, or holds something now: it is
    /// given what it waits for if that is to be had.
    pub(super) fn turn<K: Keyspace>(&mut self, step: &mut Step<'_, K>, id: WaiterId) -> Turn {
        let Some(waiter) = self.waiters.get(&id).cloned() else {
            return Turn::Over;
        };
        if waiter.is_late(step.now) {
            self.timed_out(step, id);
            return Turn::Over;
        }
        let ways = self.ways(step, id, &waiter).and_then(|ways| {
            let Some(mut ways) = ways else {
                return Ok(None);
            };
            let fresh = self.fresh(step, &waiter.want, &mut ways)?;
            Ok(Some((ways, fresh)))
        });
        let (ways, fresh) = match ways {
            Ok(Some(ways)) => ways,
            Ok(None) => return Turn::NotYet,
            Err(Refusal::OnItsWay { key }) => {
                self.look_again(&key);
                return Turn::NotYet;
            }
            Err(Refusal::Vanished { key }) => {
                self.later.pending.insert(key);
                return Turn::NotYet;
            }
            Err(refusal) => {
                self.refuse(step, id, refusal);
                return Turn::Over;
            }
        };
        self.dequeue(id);
        match self.give_all(step, &waiter.want, ways, fresh) {
            Ok((token, keys)) => self.granted(step, id, &waiter, token, keys),
            Err(Refusal::Vanished { key }) => {
                self.insert(id, waiter);
                self.later.pending.insert(key);
                return Turn::NotYet;
            }
            Err(refusal) => step.out.push(Effect::Answer {
                waiter: id,
                outcome: Outcome::Refused(refusal),
            }),
        }
        Turn::Over
    }

    /// Whether a waiter can have what it waits for; it has it then, or its answer.
    pub(super) fn has_its_turn<K: Keyspace>(
        &mut self,
        step: &mut Step<'_, K>,
        id: WaiterId,
    ) -> bool {
        matches!(self.turn(step, id), Turn::Over)
    }

    /// The token that holds have which begin with a request, if any does, and the keys
    /// whose counter is to be set to it.
    pub(super) fn fresh<K: Keyspace>(
        &mut self,
        step: &mut Step<'_, K>,
        want: &Want,
        ways: &mut Ways,
    ) -> Result<Option<(i64, Vec<Key>)>, Refusal> {
        // One that turns out to be gone is to be known before any is taken.
        if ways.len() > 1 {
            for (key, how, look) in ways.iter_mut() {
                self.secure(step, key, want, *how, look)?;
            }
        }
        // Also for holds that others began: their counter may refuse, and nothing may
        // be written before that.
        let lacks = |(key, how, _): &(Key, How, Look)| {
            let known = self.token_under_way(key, &want.owner, *how);
            known.is_none()
        };
        if !ways.iter().any(lacks) {
            return Ok(None);
        }
        let keys = ways.iter().map(|(key, ..)| key);
        self.new_token(step, keys).map(Some)
    }

    /// Gives all keys that a request wants: its token, and that of each hold. A
    /// hold that begins with it has the request's token, a nested one its own.
    pub(super) fn give_all<K: Keyspace>(
        &mut self,
        step: &mut Step<'_, K>,
        want: &Want,
        ways: Ways,
        fresh: Option<(i64, Vec<Key>)>,
    ) -> Result<(i64, Vec<(Key, i64)>), Refusal> {
        let token = fresh.as_ref().map(|(token, _)| *token);
        let mut given = Vec::with_capacity(ways.len());
        for (key, how, look) in ways {
            let given_token = self.give(step, &key, want, how, look, token)?;
            given.push((key, given_token));
        }
        if let Some((token, counted)) = fresh {
            Self::fence(step, counted, token);
        }
        let greatest = given.iter().map(|(_, token)| *token).max();
        Ok((token.or(greatest).unwrap_or_default(), given))
    }

    /// In what way a waiter can have each of its keys, if it can have them all.
    pub(super) fn ways<K: Keyspace>(
        &mut self,
        step: &mut Step<'_, K>,
        id: WaiterId,
        waiter: &Waiter,
    ) -> Result<Option<Ways>, Refusal> {
        let want = &waiter.want;
        let mut ways = Vec::with_capacity(waiter.keys.len());
        for key in &waiter.keys {
            let mut look = self.see(step, key, &want.owner);
            // A name that is something else now may be free again later.
            let how = match self.may(step, key, &want.owner, want.mode, &mut look) {
                Err(Refusal::NotALock { .. }) => None,
                how => how?,
            };
            if how == Some(How::Nest) {
                if waiter.once {
                    return Err(held(key, &want.owner));
                }
                one_more(look.holds.max(look.writes), key, &want.owner)?;
            }
            if how == Some(How::First) && !step.ks.is_free(key) {
                return Err(Refusal::OnItsWay { key: key.clone() });
            }
            let is_next = self.next(key).is_none_or(|next| next == Next::Waiter(id));
            match how.filter(|how| is_next || how.is_holders()) {
                Some(how) => ways.push((key.clone(), how, look)),
                None => return Ok(None),
            }
        }
        Ok(Some(ways))
    }

    pub(super) fn refuse<K: Keyspace>(
        &mut self,
        step: &mut Step<'_, K>,
        id: WaiterId,
        refusal: Refusal,
    ) {
        self.give_up(id);
        step.out.push(Effect::Answer {
            waiter: id,
            outcome: Outcome::Refused(refusal),
        });
    }
}

//! Random runs: after each step the core must have done what the model did, and
//! what is promised of every lock must hold, whatever the model says.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::model::{Answer, Told, Value};
use super::ops::{steps, Op, Other};
use super::shell::{answers, events};
use super::world::{at, World};
use crate::lock::memory;
use crate::lock::{Effect, Effects, Event, Key, Outcome, Refusal, WaiterId};

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_core_does_what_the_model_does(ops in steps()) {
        let mut run = Run::new();
        for op in ops.0 {
            run.step(op);
        }
        run.end();
    }
}

struct Run {
    world: World,
    /// Everyone who ever waited and was not answered yet.
    waiting: BTreeSet<WaiterId>,
    last_token: i64,
}

impl Run {
    fn new() -> Self {
        Self {
            world: World::new(),
            waiting: BTreeSet::new(),
            last_token: 0,
        }
    }

    fn step(&mut self, op: Op) {
        let known = self.world.ids.len();
        self.world.act(op);
        self.waiting.extend(&self.world.ids[known..]);
        if !self.world.model.unread.is_empty() {
            return;
        }
        let told = std::mem::take(&mut self.world.shell.told);
        self.same_replies(&told);
        self.same_events(&told);
        self.same_keys();
        self.tokens_rise(&told);
        self.each_is_answered_once(&told);
        self.nobody_is_overtaken(&told);
        self.nobody_waits_for_a_free_lock();
        self.nothing_leaks();
        self.everything_due_is_scheduled();
    }

    /// All go home: nothing may be left behind.
    fn end(&mut self) {
        self.world.read();
        let waiters: Vec<usize> = self.world.model.queue.iter().map(|w| w.id).collect();
        for _ in waiters {
            self.step(Op::Leave(0));
        }
        self.step(Op::Confirm);
        for place in super::ops::PLACES {
            let (what, late) = (Other::Del(place), false);
            self.step(Op::Other { what, late });
        }
        let core = &self.world.shell.core;
        assert!(core.is_idle() && core.grants.is_empty() && self.waiting.is_empty());
    }

    fn same_replies(&mut self, told: &Effects) {
        if let Some((got, expected)) = self.world.replies {
            assert_eq!(got, expected, "the reply");
        }
        let answer = |(id, outcome): (WaiterId, Outcome)| {
            let answer = match outcome {
                Outcome::Granted(token) => Answer::Granted(token),
                Outcome::TimedOut => Answer::TimedOut,
                Outcome::Refused(Refusal::Held { .. }) => Answer::Held,
                Outcome::Refused(other) => panic!("{other:?}"),
            };
            (id, answer)
        };
        let got: Vec<_> = answers(told).into_iter().map(answer).collect();
        let expected = std::mem::take(&mut self.world.model.answers);
        let expected: Vec<_> = expected
            .into_iter()
            .map(|(id, answer)| (self.world.ids[id], answer))
            .collect();
        assert_eq!(got, expected, "the answers");
    }

    /// The same events in the same order, key by key.
    fn same_events(&mut self, told: &Effects) {
        let mut got = events(told);
        got.sort_by(|a, b| a.0.cmp(&b.0));
        let mut expected = std::mem::take(&mut self.world.model.events);
        expected.sort_by_key(|(place, ..)| *place);
        assert!(matches(&got, &expected), "got {got:?}, not {expected:?}");
    }

    fn same_keys(&self) {
        let (shell, model) = (&self.world.shell, &self.world.model);
        type Slots = BTreeMap<Key, (memory::Value, Option<i64>)>;
        let now = shell.ks.now_ms;
        let live = |ends: Option<i64>| ends.is_none_or(|at| at >= now);
        let got: Slots = shell
            .ks
            .keys
            .iter()
            .filter(|(_, (_, ends))| live(*ends))
            .map(|(key, slot)| (key.clone(), slot.clone()))
            .collect();
        let expected: Slots = model
            .keys
            .iter()
            .filter(|(_, slot)| live(slot.ends))
            .map(|(place, slot)| {
                let value = match slot.value {
                    // One field: nobody else holds it.
                    Value::Lock { owner, holds, .. } => memory::Value::Hash(BTreeMap::from([(
                        owner.as_bytes().to_vec(),
                        holds.to_string().into_bytes(),
                    )])),
                    Value::Text { .. } => memory::Value::Text,
                };
                (at(*place), (value, slot.ends))
            })
            .collect();
        assert_eq!(got, expected, "the keyspace");
        for (place, slot) in &model.keys {
            if let Value::Lock { owner, token, .. } = slot.value {
                let got =
                    shell
                        .core
                        .hold_of(shell.now, place.0, place.1.as_bytes(), owner.as_bytes());
                assert_eq!(got.map(|(token, _)| token), token, "the token of {place:?}");
            }
        }
    }

    /// A lock that was free is taken with a token above all before it, whatever
    /// the wall clock did.
    fn tokens_rise(&mut self, told: &Effects) {
        let mut firsts = Vec::new();
        let mut taken = 0;
        for effect in told {
            match effect {
                Effect::Take { .. } => taken += 1,
                Effect::Answer {
                    outcome: Outcome::Granted(token),
                    ..
                } if taken > firsts.len() => firsts.push(*token),
                _ => {}
            }
        }
        if taken > firsts.len() {
            match self.world.replies {
                Some((super::model::Reply::Token(token), _)) => firsts.push(token),
                other => panic!("a lock was taken for nobody: {other:?}"),
            }
        }
        assert_eq!(taken, firsts.len());
        for token in firsts {
            assert!(token > self.last_token, "{token} <= {}", self.last_token);
            self.last_token = token;
        }
        // A lock that a script took has its first token when its owner nests.
        self.last_token = self.last_token.max(self.world.model.last_token);
    }

    fn each_is_answered_once(&mut self, told: &Effects) {
        for (id, _) in answers(told) {
            assert!(self.waiting.remove(&id), "{id} was answered twice");
        }
        let queue = &self.world.model.queue;
        let ids: BTreeSet<WaiterId> = queue.iter().map(|w| self.world.ids[w.id]).collect();
        // Those who left get no answer.
        self.waiting.retain(|id| ids.contains(id));
        let core = &self.world.shell.core;
        assert_eq!(core.waiters.keys().copied().collect::<BTreeSet<_>>(), ids);
    }

    /// A free lock goes to the first in its queue.
    fn nobody_is_overtaken(&self, told: &Effects) {
        let core = &self.world.shell.core;
        let mut granted: Option<&Key> = None;
        for effect in told {
            match effect {
                Effect::Take { key, .. } => granted = Some(key),
                Effect::Answer {
                    waiter,
                    outcome: Outcome::Granted(_),
                } => {
                    let Some(key) = granted.take() else {
                        continue;
                    };
                    let mut queue = core.waiters.iter().filter(|(_, w)| w.key == *key);
                    let ahead = queue.find(|(id, _)| *id < waiter);
                    assert!(ahead.is_none(), "{waiter} overtook {ahead:?} on {key:?}");
                }
                _ => {}
            }
        }
    }

    fn nobody_waits_for_a_free_lock(&self) {
        let (core, ks) = (&self.world.shell.core, &self.world.shell.ks);
        for waiter in core.waiters.values() {
            assert!(ks.keys.contains_key(&waiter.key), "{waiter:?}");
        }
    }

    /// What is remembered is of a lock that is held, or of somebody who waits.
    fn nothing_leaks(&self) {
        let World { shell, model, .. } = &self.world;
        let core = &shell.core;
        let timed = model.queue.iter().filter(|w| w.until.is_some()).count();
        assert_eq!(core.timeouts.len(), timed);
        assert_eq!(core.waiting(), model.queue.len());
        let queued: usize = core.by_owner.values().map(BTreeSet::len).sum();
        assert_eq!(queued, model.queue.len());
        assert!(core.by_owner.values().all(|ids| !ids.is_empty()));
        for key in core.keys(None) {
            let there = shell.ks.keys.contains_key(&key);
            assert!(there, "remembered of {key:?}, which is gone");
        }
        let entries = core.tables.values().flat_map(|table| table.values());
        let with_deadline = entries.clone().filter(|e| e.deadline.is_some()).count();
        assert_eq!(core.leases.len(), with_deadline);
        let queued: usize = entries.map(|entry| entry.queue.len()).sum();
        assert_eq!(queued, model.queue.len());
        let mut ours: Vec<u64> = core.grants.keys().copied().collect();
        ours.sort_unstable();
        let mut open: Vec<u64> = model.grants.iter().map(|g| self.world.ids[g.0]).collect();
        open.sort_unstable();
        assert_eq!(ours, open);
    }

    fn everything_due_is_scheduled(&self) {
        let World { shell, model, .. } = &self.world;
        let first = model.queue.iter().filter_map(|w| w.until).min();
        assert_eq!(shell.core.next_timeout(), first);
        for slot in model.keys.values() {
            if let (Value::Lock { token: Some(_), .. }, Some(ends)) = (slot.value, slot.ends) {
                let next = shell.core.next_expiry();
                assert!(next.is_some_and(|at| at <= ends + 1), "{next:?}, {ends}");
            }
        }
    }
}

/// Whether the events are those that were expected, with or without those of
/// which that is left open.
fn matches(got: &[(Key, Event)], expected: &[Told]) -> bool {
    let Some(((place, event, sure), rest)) = expected.split_first() else {
        return got.is_empty();
    };
    let next = got.first() == Some(&(at(*place), *event));
    (next && matches(&got[1..], rest)) || (!sure && matches(got, rest))
}

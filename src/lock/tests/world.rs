//! A random run: each step is taken by the core and by the model.

use super::model::{Model, Owner, Place, Reply, Slot, Value};
use super::ops::{Op, Other, PLACES};
use super::shell::{key, Request, Shell};
use crate::lock::{Event, Key, Refusal, Verdict, WaiterId};

pub struct World {
    pub shell: Shell,
    pub model: Model,
    /// The core's numbers of the model's waiters.
    pub ids: Vec<WaiterId>,
    /// The reply to the step, by the core and by the model.
    pub replies: Option<(Reply, Reply)>,
}

pub fn at(place: Place) -> Key {
    key(place.0, place.1)
}

impl World {
    pub fn new() -> Self {
        let shell = Shell::new();
        let model = Model {
            wall_us: shell.now.wall_us,
            mono_us: shell.now.mono_us,
            ..Model::default()
        };
        Self {
            shell,
            model,
            ids: Vec::new(),
            replies: None,
        }
    }

    pub fn act(&mut self, op: Op) {
        self.replies = None;
        match op {
            Op::Pass { .. } => {}
            _ => self.read(),
        }
        match op {
            Op::Acquire {
                at,
                owner,
                lease,
                once,
                block,
            } => self.acquire(at, owner, lease, once, block),
            Op::Release {
                at: place,
                owner,
                by_holder,
                all,
            } => {
                let owner = self.who(place, owner, by_holder);
                let got = self.shell.release_on(&at(place), owner, all);
                let got = got.map_or_else(refused, Reply::Left);
                self.replies = Some((got, self.model.release(place, owner, all)));
            }
            Op::Renew {
                at: place,
                owner,
                by_holder,
                lease,
            } => {
                let owner = self.who(place, owner, by_holder);
                let got = self.shell.renew_on(&at(place), owner, lease);
                let got = got.map_or_else(refused, |()| Reply::Renewed);
                self.replies = Some((got, self.model.renew(place, owner, lease)));
            }
            Op::Force(place) => {
                let got = self.shell.force_on(&at(place));
                let got = got.map_or_else(refused, Reply::Forced);
                self.replies = Some((got, self.model.force(place)));
            }
            Op::Leave(which) => {
                let waiting = self.model.queue.iter().map(|waiter| waiter.id);
                if let Some(id) = waiting.clone().nth(which % waiting.len().max(1)) {
                    self.shell.core.leave(self.ids[id]);
                    self.model.leave(id);
                }
            }
            Op::Lose(which) => {
                // What is over is out of the way: a lost grant is nobody's cue.
                self.tick();
                let open = &self.model.grants;
                if let Some((id, ..)) = open.get(which % open.len().max(1)).copied() {
                    self.shell.lose(self.ids[id]);
                    self.model.lose(id);
                }
            }
            Op::Confirm => self.confirm(),
            Op::Pass { us, fires } => {
                self.pass(us, us);
                if fires {
                    self.tick();
                }
            }
            Op::Set { ms } => {
                // A key that was found ended stays so: none comes back to life.
                self.tick();
                self.other(Other::ExpireCycle);
                self.read();
                self.pass(ms * 1000, 0);
                self.tick();
            }
            Op::Other { what, late } => {
                self.other(what);
                if !late {
                    self.read();
                }
            }
        }
    }

    pub fn confirm(&mut self) {
        for (id, ..) in std::mem::take(&mut self.model.grants) {
            self.shell.core.confirm(self.ids[id]);
        }
    }

    pub fn read(&mut self) {
        self.shell.read_notes();
        self.model.read();
    }

    pub fn tick(&mut self) {
        self.shell.tick();
        self.model.tick();
    }

    fn pass(&mut self, wall: i64, mono: i64) {
        self.shell.pass_us(wall, mono);
        self.model.wall_us += wall;
        self.model.mono_us += mono;
        self.model.late = !self.model.unread.is_empty();
    }

    fn who(&self, place: Place, owner: Owner, by_holder: bool) -> Owner {
        let holder = self.model.keys.get(&place).and_then(|slot| slot.owner());
        holder.filter(|_| by_holder).unwrap_or(owner)
    }

    fn acquire(&mut self, at: Place, owner: Owner, lease: i64, once: bool, block: Option<i64>) {
        let request = Request {
            db: at.0,
            name: at.1,
            owner,
            lease,
            once,
            block,
        };
        let got = match self.shell.acquire(request) {
            Ok(Verdict::Granted(token)) => Reply::Token(token),
            Ok(Verdict::Refused) => Reply::Null,
            Ok(Verdict::Waits(id)) => {
                self.ids.push(id);
                Reply::Waits(self.ids.len() - 1)
            }
            Err(refusal) => refused(refusal),
        };
        let expected = self.model.acquire(at, owner, lease, once, block);
        self.replies = Some((got, expected));
    }

    fn other(&mut self, what: Other) {
        let (shell, model) = (&mut self.shell, &mut self.model);
        match what {
            Other::Del(place) => {
                shell.del(&at(place));
                model.found(place, true);
                model.remove(place);
            }
            Other::Evict(place) => {
                shell.evict(&at(place));
                model.found(place, true);
                match model.remove(place) {
                    Some(Value::Lock { token, .. }) => {
                        model.tell(place, Event::Evicted, token.is_some());
                    }
                    Some(Value::Text { unnoticed: true }) => {
                        model.tell(place, Event::Evicted, false);
                    }
                    _ => {}
                }
            }
            Other::Expire(place, ms) => {
                shell.pexpire(&at(place), ms);
                model.found(place, true);
                let ends = ms.map(|ms| model.now_ms() + ms);
                let slot = model.keys.get(&place).copied();
                if let Some(slot) = slot.filter(|slot| (slot.ends, ends) != (None, None)) {
                    let value = match slot.value {
                        Value::Text { .. } => Value::Text { unnoticed: false },
                        lock => lock,
                    };
                    model.put(place, Slot { value, ends });
                }
            }
            Other::Set(place, ms) => {
                shell.set(&at(place), ms);
                model.found(place, true);
                let ends = ms.map(|ms| model.now_ms() + ms);
                let value = Value::Text {
                    unnoticed: ends.is_none(),
                };
                model.put(place, Slot { value, ends });
            }
            Other::Rename(from, to) => {
                let there = from.0 != to.0 && model.keys.contains_key(&to);
                // MOVE keeps the name and wants it free there.
                if from == to || (from.0 != to.0 && from.1 != to.1) || there {
                    return;
                }
                // Nor can rlock know this from the lock that was there.
                let of = |place| model.keys.get(place).and_then(|slot| slot.owner());
                if of(&from).is_some() && of(&from) == of(&to) && !model.is_known(from) {
                    return;
                }
                shell.rename(&at(from), &at(to));
                model.found(from, true);
                // The lock that comes there may have the same owner: then what it
                // replaces has not visibly ended.
                model.found(to, false);
                if let Some(slot) = model.keys.get(&from).copied() {
                    model.remove(from);
                    model.put(to, slot);
                }
            }
            Other::Take(place, owner, ms) => {
                // Its own again: rlock cannot know that it was lost in between.
                let held_by = model.keys.get(&place).and_then(|slot| slot.owner());
                if held_by == Some(owner) {
                    return;
                }
                shell.script_takes(&at(place), owner, ms);
                model.found(place, true);
                if !model.keys.contains_key(&place) {
                    let value = Value::Lock {
                        owner,
                        holds: 1,
                        token: None,
                    };
                    let ends = Some(model.now_ms() + ms);
                    model.put(place, Slot { value, ends });
                }
            }
            Other::Flush(db) => {
                shell.flush(db);
                let flushed = |place: &Place| db.is_none_or(|db| db == place.0);
                for place in PLACES.into_iter().filter(flushed) {
                    // Over and flushed at once: either is true.
                    model.found(place, false);
                    model.remove(place);
                }
            }
            Other::Swap(one, other) => {
                shell.swap(one, other);
                let swapped = |db| if db == one { other } else { one };
                let keys = std::mem::take(&mut model.keys).into_iter();
                model.keys = keys
                    .map(|((db, name), slot)| ((swapped(db), name), slot))
                    .collect();
                for name in ["j", "k"] {
                    model.unread.extend([(one, name), (other, name)]);
                }
            }
            Other::ExpireCycle => {
                shell.expire_cycle();
                for place in PLACES {
                    model.found(place, true);
                }
            }
        }
    }
}

fn refused(refusal: Refusal) -> Reply {
    match refusal {
        Refusal::Held { .. } => Reply::Held,
        Refusal::NotHeld { held_for: None, .. } => Reply::NotHeld,
        Refusal::NotALock { .. } | Refusal::NoLease { .. } => Reply::WrongType,
        other => panic!("refused for no reason that there is: {other:?}"),
    }
}

//! What plain locks are to do, put as plainly as possible, from the specification
//! alone. Slow, and without an index of anything: a key is a lock or a text, one
//! list holds all who wait, and the clocks are looked at anew each time.

use std::collections::BTreeMap;

pub use crate::lock::Event;

pub type Owner = &'static str;
/// A database and a name in it.
pub type Place = (i32, &'static str);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    Lock {
        owner: Owner,
        holds: i64,
        /// Not known of a lock that a script took.
        token: Option<i64>,
    },
    Text {
        /// Nobody has told rlock of it yet.
        unnoticed: bool,
    },
}

#[derive(Clone, Copy, Debug)]
pub struct Slot {
    pub value: Value,
    /// Wall-clock ms.
    pub ends: Option<i64>,
}

impl Slot {
    pub fn owner(&self) -> Option<Owner> {
        match self.value {
            Value::Lock { owner, .. } => Some(owner),
            Value::Text { .. } => None,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Waiter {
    pub id: usize,
    pub place: Place,
    pub owner: Owner,
    pub lease: i64,
    pub once: bool,
    /// Monotonic us.
    pub until: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    Token(i64),
    Null,
    Waits(usize),
    Left(i64),
    Renewed,
    Forced(bool),
    Held,
    NotHeld,
    WrongType,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Granted(i64),
    TimedOut,
    Held,
}

/// An event, and whether it has to be told. The specification leaves open whether
/// the end of a lock is told that rlock never touched, or that two things ended
/// at once.
pub type Told = (Place, Event, bool);

#[derive(Default)]
pub struct Model {
    pub wall_us: i64,
    pub mono_us: i64,
    pub keys: BTreeMap<Place, Slot>,
    /// In order of arrival, over all keys.
    pub queue: Vec<Waiter>,
    /// Replies of grants that may not have left the server.
    pub grants: Vec<(usize, Owner, i64)>,
    pub answers: Vec<(usize, Answer)>,
    pub events: Vec<Told>,
    /// Changed by others, and rlock has not looked yet.
    pub unread: Vec<Place>,
    /// rlock looks late, and may miss that a lease ran out meanwhile.
    pub late: bool,
    pub last_token: i64,
    pub arrivals: usize,
}

impl Model {
    pub fn now_ms(&self) -> i64 {
        self.wall_us / 1000
    }

    fn is_over(&self, slot: &Slot) -> bool {
        slot.ends.is_some_and(|ends| ends < self.now_ms())
    }

    pub fn acquire(
        &mut self,
        place: Place,
        owner: Owner,
        lease: i64,
        once: bool,
        block: Option<i64>,
    ) -> Reply {
        self.settle(place);
        match self.keys.get(&place).map(|slot| slot.value) {
            None => Reply::Token(self.take(place, owner, lease)),
            Some(Value::Text { .. }) => Reply::WrongType,
            Some(Value::Lock { owner: held_by, .. }) if held_by == owner && once => Reply::Held,
            Some(Value::Lock { owner: held_by, .. }) if held_by == owner => {
                Reply::Token(self.nest(place, lease))
            }
            Some(Value::Lock { .. }) => match block {
                None => Reply::Null,
                Some(ms) => {
                    let id = self.arrivals;
                    self.arrivals += 1;
                    self.queue.push(Waiter {
                        id,
                        place,
                        owner,
                        lease,
                        once,
                        until: (ms > 0).then_some(self.mono_us + ms * 1000),
                    });
                    Reply::Waits(id)
                }
            },
        }
    }

    pub fn release(&mut self, place: Place, owner: Owner, all: bool) -> Reply {
        self.settle(place);
        match self.holds_of(place, owner) {
            Ok(holds) => Reply::Left(self.drop_holds(place, if all { holds } else { 1 })),
            Err(refusal) => refusal,
        }
    }

    pub fn renew(&mut self, place: Place, owner: Owner, lease: i64) -> Reply {
        self.settle(place);
        if let Err(refusal) = self.holds_of(place, owner) {
            return refusal;
        }
        self.keys.get_mut(&place).unwrap().ends = Some(self.wall_us / 1000 + lease);
        self.tell(place, Event::Renewed, true);
        Reply::Renewed
    }

    pub fn force(&mut self, place: Place) -> Reply {
        self.settle(place);
        match self.keys.get(&place) {
            None => Reply::Forced(false),
            Some(Slot {
                value: Value::Lock { .. },
                ends: Some(_),
            }) => {
                self.keys.remove(&place);
                self.tell(place, Event::Forced, true);
                self.hand_on(place);
                Reply::Forced(true)
            }
            // A lock without a lease may be somebody's data.
            Some(_) => Reply::WrongType,
        }
    }

    /// The client of a waiter went.
    pub fn leave(&mut self, id: usize) {
        self.queue.retain(|waiter| waiter.id != id);
    }

    /// The reply of a grant never left: its hold, wherever the key is by now, ends
    /// as if released.
    pub fn lose(&mut self, id: usize) {
        let at = self.grants.iter().position(|grant| grant.0 == id).unwrap();
        let (_, owner, token) = self.grants.remove(at);
        let found = self.keys.iter().find(|(_, slot)| {
            matches!(slot.value, Value::Lock { owner: o, token: t, .. } if (o, t) == (owner, Some(token)))
        });
        if let Some(place) = found.map(|(place, _)| *place) {
            self.drop_holds(place, 1);
        }
    }

    /// The timer: leases that are over, earliest first, then waits.
    pub fn tick(&mut self) {
        self.read();
        let over = |slot: &Slot| slot.ends.filter(|_| self.is_over(slot));
        let mut due: Vec<_> = self
            .keys
            .iter()
            .filter_map(|(place, slot)| Some((over(slot)?, *place)))
            .collect();
        due.sort();
        for (_, place) in due {
            self.settle(place);
        }
        let over = |w: &Waiter| w.until.is_some_and(|until| until <= self.mono_us);
        let mut over: Vec<Waiter> = self.queue.iter().copied().filter(over).collect();
        over.sort_by_key(|waiter| (waiter.until, waiter.id));
        for waiter in over {
            self.leave(waiter.id);
            self.answers.push((waiter.id, Answer::TimedOut));
        }
    }

    /// Looks at what others changed.
    pub fn read(&mut self) {
        for place in std::mem::take(&mut self.unread) {
            self.settle(place);
        }
        self.late = false;
    }

    /// What is due on a key happens: a lease that is over ends, a free lock goes
    /// to the first who waits, waiters whose owner holds it need not wait.
    fn settle(&mut self, place: Place) {
        self.expire(place, !self.late);
        self.hand_on(place);
        self.join(place);
    }

    /// Somebody else's command comes to the key, and finds it gone if its time is
    /// over.
    pub fn found(&mut self, place: Place, sure: bool) {
        if self.keys.get(&place).is_some_and(|slot| self.is_over(slot)) {
            self.expire(place, sure);
            self.unread.push(place);
        }
    }

    /// Whether the lock is one whose token rlock knows.
    pub fn is_known(&self, place: Place) -> bool {
        let value = self.keys.get(&place).map(|slot| slot.value);
        matches!(value, Some(Value::Lock { token: Some(_), .. }))
    }

    /// Somebody else writes the key.
    pub fn put(&mut self, place: Place, slot: Slot) {
        self.keys.insert(place, slot);
        self.unread.push(place);
    }

    /// Somebody else removes the key.
    pub fn remove(&mut self, place: Place) -> Option<Value> {
        let slot = self.keys.remove(&place)?;
        self.unread.push(place);
        Some(slot.value)
    }

    /// The key goes if its time is over.
    fn expire(&mut self, place: Place, sure: bool) {
        let Some(slot) = self.keys.get(&place).copied() else {
            return;
        };
        if !self.is_over(&slot) {
            return;
        }
        self.keys.remove(&place);
        if let Value::Lock { token, .. } = slot.value {
            self.tell(place, Event::Expired, sure && token.is_some());
        }
    }

    fn hand_on(&mut self, place: Place) {
        while !self.keys.contains_key(&place) {
            let Some(at) = self.queue.iter().position(|w| w.place == place) else {
                return;
            };
            let waiter = self.queue.remove(at);
            if self.waited_too_long(&waiter) {
                continue;
            }
            let token = self.take(place, waiter.owner, waiter.lease);
            self.grant(&waiter, token);
            self.join(place);
        }
    }

    fn join(&mut self, place: Place) {
        let Some(Value::Lock { owner, .. }) = self.keys.get(&place).map(|slot| slot.value) else {
            return;
        };
        let (theirs, rest) = std::mem::take(&mut self.queue)
            .into_iter()
            .partition(|w| w.place == place && w.owner == owner);
        self.queue = rest;
        let theirs: Vec<Waiter> = theirs;
        for waiter in theirs {
            if self.waited_too_long(&waiter) {
                continue;
            }
            if waiter.once {
                self.answers.push((waiter.id, Answer::Held));
            } else {
                let token = self.nest(place, waiter.lease);
                self.grant(&waiter, token);
            }
        }
    }

    fn waited_too_long(&mut self, waiter: &Waiter) -> bool {
        let over = waiter.until.is_some_and(|until| until <= self.mono_us);
        if over {
            self.answers.push((waiter.id, Answer::TimedOut));
        }
        over
    }

    fn grant(&mut self, waiter: &Waiter, token: i64) {
        self.answers.push((waiter.id, Answer::Granted(token)));
        self.grants.push((waiter.id, waiter.owner, token));
    }

    fn take(&mut self, place: Place, owner: Owner, lease: i64) -> i64 {
        let token = self.next_token();
        let value = Value::Lock {
            owner,
            holds: 1,
            token: Some(token),
        };
        let ends = Some(self.now_ms() + lease);
        self.keys.insert(place, Slot { value, ends });
        self.tell(place, Event::Acquired, true);
        token
    }

    fn nest(&mut self, place: Place, lease: i64) -> i64 {
        let at_least = self.now_ms() + lease;
        let fresh = self.last_token.max(self.wall_us - 1) + 1;
        let slot = self.keys.get_mut(&place).unwrap();
        slot.ends = slot.ends.map(|ends| ends.max(at_least));
        let Value::Lock { holds, token, .. } = &mut slot.value else {
            panic!("nested in a text");
        };
        *holds += 1;
        let token = *token.get_or_insert(fresh);
        self.last_token = self.last_token.max(token);
        self.tell(place, Event::Acquired, true);
        token
    }

    fn next_token(&mut self) -> i64 {
        self.last_token = (self.last_token + 1).max(self.wall_us);
        self.last_token
    }

    /// How often the owner holds the lock, or why it is refused.
    fn holds_of(&self, place: Place, who: Owner) -> Result<i64, Reply> {
        match self.keys.get(&place).map(|slot| slot.value) {
            Some(Value::Lock { owner, holds, .. }) if owner == who => Ok(holds),
            Some(Value::Text { .. }) => Err(Reply::WrongType),
            _ => Err(Reply::NotHeld),
        }
    }

    /// So many holds end; how many are left.
    fn drop_holds(&mut self, place: Place, count: i64) -> i64 {
        let Value::Lock { holds, .. } = &mut self.keys.get_mut(&place).unwrap().value else {
            panic!("released a text");
        };
        *holds -= count;
        let left = *holds;
        self.tell(place, Event::Released, true);
        if left == 0 {
            self.keys.remove(&place);
            self.hand_on(place);
        }
        left
    }

    pub fn tell(&mut self, place: Place, event: Event, sure: bool) {
        self.events.push((place, event, sure));
    }
}

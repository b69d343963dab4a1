//! Who is granted, and when.

use super::{
    Answer, Ask, Event, Grant, Hold, Kind, Limit, Mode, Model, Owner, Place, Slot, Token, Waiter,
    Watch, Why,
};

/// What is to become of a request, as things are now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    Granted,
    Refused(Vec<Why>),
    Stays,
}

impl Model {
    pub fn waiter(&self, id: usize) -> &Waiter {
        self.queue.iter().find(|waiter| waiter.id == id).unwrap()
    }

    /// All that is due happens, until nothing more does: what ran out ends, and in
    /// the order of the queue whoever can be granted is.
    pub fn settle(&mut self) {
        self.watch();
        loop {
            self.expire();
            let waited_for: Vec<Place> =
                self.queue.iter().flat_map(|w| w.ask.keys.clone()).collect();
            self.know(&waited_for);
            if !self.serve_one() && !self.hoard_one() && !self.upgrade_one() && !self.break_one() {
                break;
            }
        }
        self.judged.clear();
        self.hint();
    }

    /// The first that can be granted, or that can never be: its owner has become a
    /// holder in another way.
    fn serve_one(&mut self) -> bool {
        let mut statuses = self.queue.iter().map(|w| (w, self.status(w)));
        let Some((next, status)) = statuses.find(|(_, status)| *status != Status::Stays) else {
            return false;
        };
        let (id, client, queue) = (next.id, next.ask.client, next.ask.queue);
        // One that waits is refused so where its lease key is no string: at its turn only.
        let is_its_turn = [Status::Granted, Status::Refused(vec![Why::WrongType])];
        if self.is_deaf(next) && is_its_turn.contains(&status) {
            // Nobody would hear it: nothing is written, and no token given.
            self.dequeue(|waiter| waiter.id == id);
            return true;
        }
        if let Status::Refused(reasons) = status {
            self.refuse(id, reasons[0]);
            return true;
        }
        let (tokens, holds) = self.take(id);
        self.answers.push((id, Answer::Granted(tokens)));
        self.grants.push(Grant {
            waiter: id,
            client,
            queue,
            holds,
        });
        true
    }

    /// Nobody would hear of its grant.
    pub fn is_deaf(&self, waiter: &Waiter) -> bool {
        waiter.ask.queue && self.deaf.contains(&waiter.ask.client)
    }

    pub fn refuse(&mut self, id: usize, why: Why) {
        self.dequeue(|waiter| waiter.id == id);
        self.answers.push((id, Answer::Refused(why)));
    }

    /// They wait no more. What other requests of their owners wait for has changed:
    /// see [`Model::waits_for`].
    pub fn dequeue(&mut self, which: impl Fn(&Waiter) -> bool) -> Vec<Waiter> {
        let queue = std::mem::take(&mut self.queue).into_iter();
        let (gone, rest): (Vec<Waiter>, _) = queue.partition(|waiter| which(waiter));
        self.queue = rest;
        self.judged
            .extend(gone.iter().map(|waiter| waiter.ask.owner));
        gone.iter().for_each(|waiter| self.unblocked(waiter));
        gone
    }

    /// A waiting writer that has become a reader is an upgrade from then on.
    fn upgrade_one(&mut self) -> bool {
        let reads = |w: &&Waiter| self.count(w.ask.keys[0], w.ask.owner, Mode::Read) > 0;
        let mut writers = self.queue.iter().filter(|w| w.ask.mode == Mode::Write);
        let Some(next) = writers.find(|w| !w.upgrades && reads(w)) else {
            return false;
        };
        let id = next.id;
        if self.is_second_upgrade(id) {
            self.refuse(id, Why::Deadlock);
        } else {
            self.put_ahead(id);
        }
        true
    }

    /// Two readers that each wait for the other to leave.
    pub fn is_second_upgrade(&self, id: usize) -> bool {
        let ask = &self.waiter(id).ask;
        let place = ask.keys[0];
        self.queue.iter().any(|other| {
            other.upgrades
                && other.ask.keys[0] == place
                && other.ask.owner != ask.owner
                && self.count(place, other.ask.owner, Mode::Read) > 0
        })
    }

    /// An upgrade stands ahead of all others, but for upgrades that came before.
    pub fn put_ahead(&mut self, id: usize) {
        let at = self.queue.iter().position(|w| w.id == id).unwrap();
        let mut waiter = self.queue.remove(at);
        waiter.upgrades = true;
        waiter.rank = None;
        let place = waiter.ask.keys[0];
        let upgrades = |w: &Waiter| w.upgrades && self.count(place, w.ask.owner, Mode::Read) > 0;
        let mut queue = self.queue.iter();
        let others = queue.position(|w| w.ask.keys.contains(&place) && !upgrades(w));
        self.queue
            .insert(others.unwrap_or(self.queue.len()), waiter);
    }

    pub fn status(&self, waiter: &Waiter) -> Status {
        let ask = &waiter.ask;
        let next = self.count(ask.keys[0], ask.owner, Mode::Read) + 1;
        let lease_key = (ask.keys[0], ask.owner, next);
        let again = self.is_again(ask, ask.keys[0]);
        let squatted = ask.mode == Mode::Read && !again && self.squats.contains(&lease_key);
        let on_each: Vec<Status> = ask
            .keys
            .iter()
            .map(|k| self.status_on(waiter, *k))
            .collect();
        let refused = on_each.iter().filter_map(|status| match status {
            Status::Refused(reasons) => Some(reasons[0]),
            _ => None,
        });
        let reasons: Vec<Why> = refused.collect();
        if !reasons.is_empty() {
            Status::Refused(reasons)
        } else if on_each.contains(&Status::Stays) {
            Status::Stays
        } else if squatted {
            Status::Refused(vec![Why::WrongType])
        } else {
            Status::Granted
        }
    }

    pub fn status_on(&self, waiter: &Waiter, place: Place) -> Status {
        let ask = &waiter.ask;
        let own = |mode| self.count(place, ask.owner, mode) > 0;
        let refuse = |why| Status::Refused(vec![why]);
        let granted_if = |yes| if yes { Status::Granted } else { Status::Stays };
        let kind = self.kind(place);
        if kind == Some(Kind::Text) {
            // Those who wait already stay until it is free.
            let waits = waiter.id < self.arrivals;
            return if waits {
                Status::Stays
            } else {
                refuse(Why::WrongType)
            };
        }
        if kind.is_none() {
            return granted_if(self.is_first(waiter, place));
        }
        if kind == Some(Kind::Permits) || ask.mode == Mode::Permits {
            return match (kind, ask.mode) {
                (Some(Kind::Permits), Mode::Permits) => self.status_of_permits(waiter, place),
                _ if self.holds_any(place, ask.owner) => refuse(Why::WrongMode),
                _ => Status::Stays,
            };
        }
        if self.holds_any(place, ask.owner) {
            let plain = own(Mode::Plain);
            return if plain != (ask.mode == Mode::Plain) {
                refuse(Why::WrongMode)
            } else if ask.mode == Mode::Write && !own(Mode::Write) {
                granted_if(self.owners_at(place).len() == 1)
            } else {
                // It nests, reads under its own write, or has it with ONCE.
                Status::Granted
            };
        }
        let read = |hold: &Hold| hold.mode == Mode::Read;
        let shares = ask.mode == Mode::Read && self.holds_at(place).all(read);
        granted_if(shares && self.is_first(waiter, place))
    }

    /// Nobody ahead of it waits for the key too. Readers go in together.
    fn is_first(&self, waiter: &Waiter, place: Place) -> bool {
        let mut ahead = self.ahead(waiter, place);
        ahead.all(|other| (other.ask.mode, waiter.ask.mode) == (Mode::Read, Mode::Read))
    }

    pub fn ahead<'a>(&'a self, waiter: &Waiter, place: Place) -> impl Iterator<Item = &'a Waiter> {
        let id = waiter.id;
        let ahead = self.queue.iter().take_while(move |other| other.id != id);
        ahead.filter(move |other| other.ask.keys.contains(&place))
    }

    /// The request has its keys: its token, and the holds it made.
    pub fn take(&mut self, id: usize) -> (Vec<Token>, Vec<u64>) {
        let at = self.queue.iter().position(|w| w.id == id).unwrap();
        let waiter = self.queue.remove(at);
        self.unblocked(&waiter);
        self.forget_hints();
        let ask = waiter.ask;
        let tokens = self.tokens_for(&ask);
        let token = tokens[0];
        let lease = self.now_ms() + ask.lease;
        let mut ids = Vec::new();
        for place in ask.keys.iter().copied() {
            if self.is_again(&ask, place) {
                self.hold_again(&ask, place);
                self.give_token(&ask, place, token);
                continue;
            }
            let held = self.holds_any(place, ask.owner);
            // It is lengthened to at least that, never shortened.
            let ends = match held {
                true => self.ends(place, ask.owner).max(lease),
                false => lease,
            };
            let kind = match ask.mode {
                Mode::Plain => Kind::Plain,
                Mode::Read | Mode::Write => Kind::Shared,
                Mode::Permits => Kind::Permits,
            };
            self.keys.entry(place).or_insert(Slot {
                kind,
                ends,
                by_hand: false,
                known: true,
            });
            if ask.mode == Mode::Permits {
                let asked = ask.share.limit;
                self.limits
                    .entry(place)
                    .or_insert(Limit { asked, now: asked });
            }
            self.add_holds(&ask, place, lease, &mut ids);
            self.share_watches(place, ask.owner);
            self.begin_hints((place, ask.owner), ask.lease, ask.wanted);
            self.set_lease(place, ask.owner, ends);
            self.tell(place, Event::Acquired, true);
            let upgrade =
                held && ask.mode == Mode::Write && self.count(place, ask.owner, Mode::Write) == 1;
            if !held || upgrade || ask.mode == Mode::Permits {
                self.tokens.insert((place, ask.owner), token);
            }
            self.give_token(&ask, place, token);
        }
        for place in ask.keys {
            if self.queue.iter().any(|w| w.ask.keys.contains(&place)) {
                self.judged.insert(ask.owner);
            }
        }
        (tokens, ids)
    }

    fn add_holds(&mut self, ask: &Ask, place: Place, lease: i64, ids: &mut Vec<u64>) {
        let since = self.now_ms();
        let watch = ask.watch.then_some(Watch {
            lease: ask.lease,
            longest: ask.lease,
            since,
            asked: lease,
        });
        for _ in 0..ask.share.count {
            let hold = Hold {
                client: Some(ask.client),
                watch,
                notify: ask.notify,
                wanted: ask.wanted,
                ..self.found(place, ask.owner, ask.mode)
            };
            ids.push(hold.id);
            self.holds.push(hold);
        }
    }

    /// Its hold has the token of the hold under way, or this one where that is not known.
    fn give_token(&mut self, ask: &Ask, place: Place, new: Token) {
        let token = *self.tokens.entry((place, ask.owner)).or_insert(new);
        let given = self.given.entry((place, ask.owner, ask.mode)).or_default();
        if given.last() != Some(&token) {
            given.push(token);
        }
    }

    /// The owner holds the key in this mode, and asks with ONCE.
    fn is_again(&self, ask: &Ask, place: Place) -> bool {
        ask.once && self.count(place, ask.owner, ask.mode) > 0
    }

    /// No hold more: its lease is at least the new one, and what the request names it is
    /// bound to. Its owner knows of it, whatever becomes of the reply to an earlier grant.
    fn hold_again(&mut self, ask: &Ask, place: Place) {
        let ends = self.now_ms() + ask.lease;
        if self.ends(place, ask.owner) < ends {
            self.set_lease(place, ask.owner, ends);
        }
        self.tell(place, Event::Renewed, true);
        let its = |hold: &Hold| (hold.place, hold.owner, hold.mode) == (place, ask.owner, ask.mode);
        self.bind_address((ask.notify, ask.wanted), its);
        self.begin_hints((place, ask.owner), ask.lease, ask.wanted);
        let since = self.now_ms();
        for hold in &mut self.holds {
            if (hold.place, hold.owner, hold.mode) != (place, ask.owner, ask.mode) {
                continue;
            }
            for grant in &mut self.grants {
                grant.holds.retain(|id| *id != hold.id);
            }
            if ask.watch {
                let before = hold.watch.map_or(0, |watch| watch.longest);
                let lease = before.max(ask.lease);
                let asked = hold.watch.map_or(0, |watch| watch.asked);
                hold.client = Some(ask.client);
                hold.watch = Some(Watch {
                    lease,
                    longest: lease,
                    since,
                    asked: asked.max(since + ask.lease),
                });
            }
        }
        self.share_watches(place, ask.owner);
    }

    /// A nested acquisition has the token of the hold under way, any other a new
    /// one; one for all keys. Which it is, where all are held already, is left open.
    fn tokens_for(&mut self, ask: &Ask) -> Vec<Token> {
        let (places, owner, mode, once) = (&ask.keys, ask.owner, ask.mode, ask.once);
        let nests = |place: &Place| {
            let under_write = mode == Mode::Read && self.count(*place, owner, Mode::Write) > 0;
            let again = mode != Mode::Permits || once;
            under_write || again && self.count(*place, owner, mode) > 0
        };
        let known = |place: &Place| self.tokens.get(&(*place, owner)).copied();
        let under_way: Option<Vec<Token>> = places.iter().filter(|p| nests(p)).map(known).collect();
        match under_way {
            Some(mut tokens) if tokens.len() == places.len() => {
                tokens.sort_unstable();
                tokens.dedup();
                tokens
            }
            _ => vec![self.next_token()],
        }
    }

    /// All the owner's holds on the key end then.
    pub fn set_lease(&mut self, place: Place, owner: Owner, ends: i64) {
        if self.count(place, owner, Mode::Permits) > 0 {
            self.permit_ends.insert((place, owner), ends);
            let slot = self.keys.get_mut(&place).unwrap();
            // The key stays for the owner that stays longest.
            slot.ends = slot.ends.max(ends);
            return;
        }
        let reads = self.count(place, owner, Mode::Read);
        for i in 1..=reads {
            self.leases.insert((place, owner, i), ends);
        }
        let only_reads = self.holds_at(place).all(|hold| hold.mode == Mode::Read);
        let slot = self.keys.get_mut(&place).unwrap();
        // A read lock's hash covers the longest lease.
        slot.ends = if only_reads {
            ends.max(slot.ends)
        } else {
            ends
        };
    }
}

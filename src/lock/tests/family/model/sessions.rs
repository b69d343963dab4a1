//! What connections are told: how their waits end and that holds are lost, by their own
//! names for them. CANCEL, connections that hear nothing, and a server that is demoted.

use std::collections::BTreeSet;

use super::{Answer, Ask, Client, Hold, Kind, Mode, Model, Owner, Place, Reason, Why, NEVER};

/// Where a connection is told something, and its name for the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    pub client: Client,
    pub channel: u8,
    pub tag: u8,
}

impl Address {
    /// What a message says, whoever listens.
    pub fn words(self) -> (u8, u8) {
        (self.channel, self.tag)
    }
}

/// A hold is lost, and an address is told of it, for one of these reasons.
#[derive(Clone, Debug)]
pub struct Loss {
    pub place: Place,
    pub owner: Owner,
    pub address: Address,
    pub reasons: Vec<Reason>,
}

impl Model {
    /// A hold that nobody is known to have taken.
    pub fn found(&mut self, place: Place, owner: Owner, mode: Mode) -> Hold {
        Hold {
            id: self.next_hold(),
            place,
            owner,
            mode,
            client: None,
            watch: None,
            notify: None,
            wanted: false,
        }
    }

    /// These holds are not bound any more to what they were bound to. Each name is told once.
    pub fn tell_losses(&mut self, holds: &[Hold], reasons: &[Reason]) {
        let mut known = BTreeSet::new();
        for hold in holds {
            let watcher = hold.client.filter(|_| hold.watch.is_some());
            // Whoever cannot be told of any of them learns of it by the close.
            let theirs = |h: &&Hold| (h.place, h.owner) == (hold.place, hold.owner);
            let told = holds.iter().filter(theirs).filter_map(|h| h.notify);
            let mut heard = told.filter(|a| !self.deaf.contains(&a.client));
            let closes = watcher.filter(|client| !heard.any(|a| a.client == *client));
            self.lost.extend(closes);
            if let Some(address) = hold.notify.filter(|_| known.insert(hold.name())) {
                self.losses.push(Loss {
                    place: hold.place,
                    owner: hold.owner,
                    address,
                    reasons: reasons.to_vec(),
                });
            }
        }
    }

    /// What they were bound to they have lost, though they are there still.
    pub fn unbind(&mut self, reason: Reason, which: impl Fn(&Hold) -> bool) {
        let all: Vec<Hold> = self.holds.iter().copied().filter(|h| which(h)).collect();
        self.tell_losses(&all, &[reason]);
        for hold in self.holds.iter_mut().filter(|hold| which(hold)) {
            (hold.watch, hold.notify) = (None, None);
        }
    }

    /// A connection releases these holds: others that were to be told of their loss are.
    pub fn release_holds(&mut self, ids: &[u64], client: Client) {
        let before = self.holds.clone();
        self.end(ids);
        self.tell_released(&before, client);
    }

    /// Of these holds some are released by this connection.
    pub fn tell_released(&mut self, before: &[Hold], client: Client) {
        let left: BTreeSet<_> = self.holds.iter().map(Hold::name).collect();
        let of_others = |hold: &&Hold| hold.notify.is_some_and(|a| a.client != client);
        let gone = before.iter().filter(|hold| !left.contains(&hold.name()));
        let gone = gone.filter(of_others).map(|hold| Hold {
            watch: None,
            ..*hold
        });
        let gone: Vec<Hold> = gone.collect();
        self.tell_losses(&gone, &[Reason::Released]);
    }

    /// Whether another wait or hold of the connection has the tag of a request. One that
    /// is said again with ONCE may have the one that it had.
    pub fn is_tag_in_use(&self, ask: &Ask) -> bool {
        let Some(address) = ask.notify else {
            return false;
        };
        // The request itself is in the queue already.
        if !self.is_tag_known(address, Some(self.arrivals)) {
            return false;
        }
        let mut others = self.queue.iter().filter(|w| w.id != self.arrivals);
        let first = others.find(|w| w.ask.is_same(ask));
        let waits = first.is_some_and(|w| w.ask.told_at() == Some(address));
        let holds = self.holds.iter().any(|hold| {
            let same = (hold.owner, hold.mode, hold.notify) == (ask.owner, ask.mode, Some(address));
            same && ask.keys.contains(&hold.place)
        });
        !(ask.once && (waits || holds))
    }

    /// Whether a wait or hold of the connection has the tag, but for the request `own`.
    pub fn is_tag_known(&self, address: Address, own: Option<usize>) -> bool {
        let is_its = |other: Address| (other.client, other.tag) == (address.client, address.tag);
        let others = self.queue.iter().filter(|w| Some(w.id) != own);
        let mut waits = others.filter_map(|w| w.ask.told_at());
        let mut holds = self.holds.iter().filter_map(|hold| hold.notify);
        waits.any(is_its) || holds.any(is_its)
    }

    /// The owner has these already, and asks for them with ONCE, or renews them: they go by
    /// the name that the request gives. What the connection of an old one watched goes with it.
    pub fn bind_address(
        &mut self,
        (notify, wanted): (Option<Address>, bool),
        its: impl Fn(&Hold) -> bool,
    ) {
        let Some(address) = notify else {
            return;
        };
        let renamed = |hold: &&Hold| its(hold) && hold.notify != Some(address);
        let was = self.holds.iter().copied().filter(|hold| renamed(&hold));
        let was = was.map(|hold| Hold {
            watch: None,
            ..hold
        });
        let was: Vec<Hold> = was.collect();
        self.tell_losses(&was, &[Reason::Rebound]);
        for hold in self.holds.iter_mut().filter(|hold| its(hold)) {
            let told = hold.notify.filter(|to| *to != address);
            if hold.watch.is_some() && told.is_some_and(|to| Some(to.client) == hold.client) {
                hold.client = Some(address.client);
            }
            (hold.notify, hold.wanted) = (Some(address), wanted);
        }
    }

    /// All of the owner's holds there belong to a connection from now on, and go by the
    /// names that they have. Those that have one are the newer ones.
    pub fn bind_all(&mut self, place: Place, owner: Owner, client: Client) {
        let theirs = |hold: &mut Hold| (hold.place, hold.owner) == (place, owner);
        let mut all: Vec<Hold> = self.holds.extract_if(.., theirs).collect();
        all.sort_by_key(|hold| hold.notify.is_some());
        for hold in &mut all {
            hold.client = Some(client);
            // It is that connection's now, whatever becomes of a reply.
            for grant in self.grants.iter_mut().filter(|g| g.client != client) {
                grant.holds.retain(|id| *id != hold.id);
            }
        }
        self.holds.append(&mut all);
    }

    /// The connection is closed: nothing is told to it any more.
    pub fn tell_no_more(&mut self, client: Client) {
        for hold in &mut self.holds {
            hold.notify = hold.notify.filter(|address| address.client != client);
        }
    }

    /// CANCEL: how many requests of the owner for the key it has ended.
    pub fn cancel(&mut self, place: Place, owner: Owner, mode: Option<Mode>) -> i64 {
        let over = self.dequeue(|waiter| {
            let ask = &waiter.ask;
            let meant = mode.is_none_or(|mode| mode == ask.mode);
            ask.owner == owner && ask.keys.contains(&place) && meant
        });
        self.kept.retain(|kept| {
            let meant = mode.is_none_or(|mode| mode == kept.ask.mode);
            !(meant && kept.ask.owner == owner && kept.ask.keys.contains(&place))
        });
        let ended = over.iter().map(|waiter| (waiter.id, Answer::TimedOut));
        self.answers.extend(ended);
        self.settle();
        over.len() as i64
    }

    /// The server is a replica now: all waits end, and what it knew of holds is void. The
    /// keys stay.
    pub fn demoted(&mut self) {
        self.unbind(Reason::Demoted, |_| true);
        for waiter in std::mem::take(&mut self.queue) {
            self.unblocked(&waiter);
            // The server itself sends blocked clients away.
            if waiter.ask.queue {
                self.answers
                    .push((waiter.id, Answer::Refused(Why::SentAway)));
            }
        }
        self.tokens.clear();
        self.given.clear();
        self.grants.clear();
        for hold in &mut self.holds {
            hold.client = None;
        }
        // Without a TTL it may be somebody's data.
        for (place, slot) in &mut self.keys {
            slot.known = false;
            if slot.ends == NEVER && slot.kind != Kind::Text {
                let kind = std::mem::replace(&mut slot.kind, Kind::Text);
                let holds = self.holds.extract_if(.., |hold| hold.place == *place);
                self.aside.insert(*place, (kind, holds.collect()));
            }
        }
    }
}

impl Hold {
    /// What a connection calls it: a name of its owner's holds in one mode there.
    pub fn name(&self) -> (Place, Owner, Mode, Option<Address>) {
        (self.place, self.owner, self.mode, self.notify)
    }
}

impl Ask {
    /// The same owner asks for the same keys in the same mode.
    pub fn is_same(&self, other: &Self) -> bool {
        let set = |keys: &[Place]| keys.iter().copied().collect::<BTreeSet<Place>>();
        let what = |ask: &Self| (ask.owner, ask.mode, ask.share);
        what(self) == what(other) && set(&self.keys) == set(&other.keys)
    }
}

//! What clients ask for.

use super::kept::arrived;
use super::waiting::Status;
use super::{
    Address, Answer, Client, Event, Hold, Kind, Mode, Model, Owner, Place, Reason, Reply, Share,
    Token, Waiter, Why,
};

/// A request for one key, or (in plain mode) for many.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ask {
    pub keys: Vec<Place>,
    pub owner: Owner,
    pub client: Client,
    pub mode: Mode,
    pub share: Share,
    pub lease: i64,
    pub once: bool,
    pub watch: bool,
    /// For how many ms; 0: for ever; `None`: not at all.
    pub block: Option<i64>,
    /// It waits by QUEUE, not by BLOCK.
    pub queue: bool,
    /// By NOTIFY, with WANTED or without.
    pub notify: Option<Address>,
    pub wanted: bool,
}

impl Ask {
    /// Where it is told how the wait ends.
    pub fn told_at(&self) -> Option<Address> {
        self.notify.filter(|_| self.queue)
    }
}

/// What RELEASE asks of the holds that it is to end.
#[derive(Clone, Copy, Debug)]
pub enum Only {
    Held,
    Token(Token),
}

/// Whose lock FORCE is to free.
#[derive(Clone, Copy, Debug)]
pub enum Aim {
    Owner(Owner),
    Token(Token),
}

impl Model {
    pub fn acquire(&mut self, ask: &Ask) -> Reply {
        let id = self.arrivals;
        let place = ask.keys[0];
        self.know([&place]);
        let upgrades = ask.mode == Mode::Write
            && self.count(place, ask.owner, Mode::Read) > 0
            && self.count(place, ask.owner, Mode::Write) == 0;
        let until = ask.block.filter(|ms| *ms > 0);
        let before = self.queue.clone();
        self.queue.push(Waiter {
            id,
            ask: ask.clone(),
            until: until.map(|ms| self.mono_us + ms * 1000),
            upgrades,
            rank: Some(arrived(id)),
        });
        if upgrades {
            self.put_ahead(id);
        }
        let mut status = self.status(self.waiter(id));
        if self.is_tag_in_use(ask) {
            status = match status {
                // In a request for many keys their state is looked at first.
                Status::Refused(mut reasons) => {
                    reasons.push(Why::TagInUse);
                    Status::Refused(reasons)
                }
                Status::Granted | Status::Stays => Status::Refused(vec![Why::TagInUse]),
            };
        }
        let mut before = before;
        if status == Status::Stays && ask.block.is_some() {
            if let Some(old) = self.take_place(id) {
                before.retain(|waiter| waiter.id != old);
            } else if self.take_kept(id) {
                status = self.status(self.waiter(id));
                if status == Status::Stays && self.detect_deadlocks && self.in_cycle(ask.owner) {
                    self.stand(id, arrived(id));
                }
            }
            if status == Status::Stays {
                status = self.would_wait(id);
            }
        }
        let reply = match status {
            Status::Refused(reasons) => {
                self.queue = before;
                Reply::Refused(reasons)
            }
            Status::Granted => {
                self.is_granted(ask);
                Reply::Token(self.take(id).0)
            }
            Status::Stays if ask.block.is_none() => {
                self.queue = before;
                self.know(&ask.keys);
                Reply::Null
            }
            Status::Stays => {
                self.arrivals += 1;
                Reply::Waits(id)
            }
        };
        self.settle();
        reply
    }

    /// With ONCE a request takes the place of its owner's first that waits for the same.
    fn take_place(&mut self, id: usize) -> Option<usize> {
        let ask = self.waiter(id).ask.clone();
        let same = |w: &Waiter| w.id != id && w.ask.is_same(&ask);
        let at = self.queue.iter().position(same).filter(|_| ask.once)?;
        let new = self.queue.iter().position(|waiter| waiter.id == id)?;
        let upgrades = self.queue[at].upgrades;
        let mut waiter = self.queue.remove(new);
        let at = at - usize::from(new < at);
        waiter.upgrades = upgrades;
        waiter.rank = self.queue[at].rank;
        let old = std::mem::replace(&mut self.queue[at], waiter);
        // The same request, sent again, be it by another connection.
        let words = |ask: &Ask| ask.told_at().map(|address| address.words());
        let is_resent = words(&ask).is_some() && words(&ask) == words(&old.ask);
        if !is_resent {
            self.answers
                .push((old.id, Answer::Refused(Why::Superseded)));
        }
        Some(old.id)
    }

    pub fn release(
        &mut self,
        place: Place,
        owner: Owner,
        client: Client,
        mode: Mode,
        // `None`: all.
        by: Option<usize>,
        only: Option<Only>,
    ) -> Reply {
        self.know([&place]);
        match (self.held(place, owner, mode), only) {
            (Err(Why::NotHeld), Some(_)) => return self.unchanged(Reply::Count(0)),
            (Err(why), _) => return Reply::Refused(vec![why]),
            (Ok(()), Some(Only::Token(token))) => {
                let given = self.given.get(&(place, owner, mode));
                if !given.is_some_and(|given| given.contains(&token)) {
                    return self.unchanged(Reply::Count(0));
                }
            }
            (Ok(()), Some(Only::Held) | None) => {}
        }
        let has = self.count(place, owner, mode);
        let by = by.unwrap_or(has);
        if by > has {
            self.settle();
            return Reply::Refused(vec![Why::NotHeld]);
        }
        let before = self.holds.clone();
        for _ in 0..by {
            let newest = self.newest(place, owner, client, mode);
            self.end(&[newest]);
        }
        self.tell_released(&before, client);
        self.tell(place, Event::Released, true);
        let left = self.count(place, owner, mode);
        self.settle();
        Reply::Count(left as i64)
    }

    /// The newest hold that this connection took; if it took none, the newest
    /// without WATCHDOG; else the newest.
    fn newest(&self, place: Place, owner: Owner, client: Client, mode: Mode) -> u64 {
        let same = |h: &&Hold| (h.place, h.owner, h.mode) == (place, owner, mode);
        let theirs: Vec<&Hold> = self.holds.iter().filter(same).collect();
        let own = theirs.iter().rfind(|hold| hold.client == Some(client));
        let plain = theirs.iter().rfind(|hold| hold.watch.is_none());
        own.or(plain).or(theirs.last()).unwrap().id
    }

    pub fn release_many(&mut self, places: &[Place], owner: Owner, client: Client) -> Reply {
        if places
            .iter()
            .any(|place| self.kind(*place) == Some(Kind::Text))
        {
            return Reply::Refused(vec![Why::WrongType]);
        }
        self.know(places);
        let mut released = 0;
        for place in places {
            if self.count(*place, owner, Mode::Plain) > 0 {
                let newest = self.newest(*place, owner, client, Mode::Plain);
                self.release_holds(&[newest], client);
                self.tell(*place, Event::Released, true);
                released += 1;
            }
        }
        self.settle();
        Reply::Count(released)
    }

    pub fn force(&mut self, place: Place, client: Client, aim: Option<Aim>) -> Reply {
        self.know([&place]);
        match self.kind(place) {
            None => return self.unchanged(Reply::Forced(false)),
            Some(Kind::Text) => return Reply::Refused(vec![Why::WrongType]),
            Some(Kind::Plain | Kind::Shared | Kind::Permits) => {}
        }
        let is_meant = match aim {
            None => true,
            Some(Aim::Owner(owner)) => self.holds_any(place, owner),
            Some(Aim::Token(token)) => self.tokens_at(place).any(|of_it| of_it == token),
        };
        if !is_meant {
            return self.unchanged(Reply::Forced(false));
        }
        for hold in &mut self.holds {
            // Who sends FORCE knows.
            if hold.place == place && hold.client == Some(client) {
                hold.watch = None;
            }
        }
        for owner in self.owners_at(place) {
            for index in 1..=self.count(place, owner, Mode::Read) {
                self.leases.remove(&(place, owner, index));
            }
        }
        self.lose(Reason::Forced, |hold| hold.place == place);
        self.tell(place, Event::Forced, true);
        self.settle();
        Reply::Forced(true)
    }

    /// All tokens of holds under way there.
    pub fn tokens_at(&self, place: Place) -> impl Iterator<Item = Token> + '_ {
        let newest = self.tokens.iter().filter(move |((at, _), _)| *at == place);
        let given = self.given.iter().filter(move |((at, ..), _)| *at == place);
        let given = given.flat_map(|(_, tokens)| tokens);
        newest.map(|(_, token)| token).chain(given).copied()
    }

    fn unchanged(&mut self, reply: Reply) -> Reply {
        self.settle();
        reply
    }

    /// The connection closed: its waits are dropped, and exactly its watchdog holds
    /// end.
    pub fn closed(&mut self, client: Client) {
        self.hearing.beats.remove(&client);
        self.cut_off(client);
        self.tell_no_more(client);
        let watched = |h: &&Hold| h.client == Some(client) && h.watch.is_some();
        let holds: Vec<Hold> = self.holds.iter().filter(watched).copied().collect();
        let before = self.holds.clone();
        self.end_and_tell(&holds);
        self.tell_released(&before, client);
        self.settle();
        self.listen();
    }

    /// The client of a waiter went, or was unblocked.
    pub fn leave(&mut self, id: usize) {
        self.dequeue(|waiter| waiter.id == id);
        self.settle();
        self.listen();
    }

    pub fn confirm(&mut self, id: usize) {
        self.grants.retain(|grant| grant.waiter != id);
    }

    /// The reply of a grant never left: its holds end as if released.
    pub fn take_back(&mut self, id: usize) {
        let at = self.grants.iter().position(|grant| grant.waiter == id);
        let grant = self.grants.remove(at.unwrap());
        let made = |h: &&Hold| grant.holds.contains(&h.id);
        let holds: Vec<Hold> = self.holds.iter().filter(made).copied().collect();
        self.end_and_tell(&holds);
        self.settle();
        self.listen();
    }

    /// One event for a key, or one for each hold.
    pub fn end_and_tell(&mut self, holds: &[Hold]) {
        let mut told = Vec::new();
        for hold in holds {
            self.tell(hold.place, Event::Released, !told.contains(&hold.place));
            told.push(hold.place);
        }
        let ids: Vec<u64> = holds.iter().map(|hold| hold.id).collect();
        self.end(&ids);
    }

    /// The timer: what ran out ends, and so do waits.
    pub fn tick(&mut self) {
        let now = self.mono_us;
        let over = self.dequeue(|waiter| waiter.until.is_some_and(|until| until <= now));
        let timed_out = over.iter().map(|waiter| (waiter.id, Answer::TimedOut));
        self.answers.extend(timed_out);
        self.settle();
        self.listen();
    }

    /// Whether the owner holds the key in this mode, or why it is refused.
    pub fn held(&self, place: Place, owner: Owner, mode: Mode) -> Result<(), Why> {
        if self.kind(place) == Some(Kind::Text) {
            return Err(Why::WrongType);
        }
        match self.count(place, owner, mode) {
            0 => Err(Why::NotHeld),
            _ => Ok(()),
        }
    }
}

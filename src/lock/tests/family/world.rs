//! A random run: each step is taken by the core and by the model.

use std::collections::{BTreeMap, BTreeSet};

use super::changes::may_be_unread;
use super::compare::Tokens;
use super::model::{Address, Ask, Client, Grant, Hold, Mode, Model, Owner, Place, Reply};
use super::ops::{Aim, Only, Op, Other, Seat, Whose, NAMES, OWNERS, SEATS};
use super::shell::{at, Shell};
use crate::lock::{Cause, Note, Refusal, Rules, Token, Verdict, WaiterId};

/// What the core replied.
#[derive(Clone, Debug)]
pub enum Got {
    Token(Token),
    Null,
    Waits,
    Count(i64),
    Done,
    Forced(bool),
    Refused(Refusal),
}

#[derive(Clone)]
pub struct World {
    pub shell: Shell,
    pub model: Model,
    /// All names that anything is done to.
    pub places: Vec<Place>,
    /// The core's numbers of the model's waiters.
    pub ids: Vec<WaiterId>,
    /// Where each of them is told how its wait ends.
    pub told_at: Vec<Option<Address>>,
    /// The request for a lock in this step, as it was made.
    pub asked: Option<Ask>,
    /// Where the step has bound a hold by RENEW.
    pub renamed: Option<Address>,
    pub tokens: Tokens,
    /// The reply to the step, by the core and by the model.
    pub replies: Option<(Got, Reply)>,
    /// The connections now open, one in each seat.
    pub seats: [Client; SEATS],
    pub last_client: u64,
    /// Until when each connection may be silent at least that has said that it is alive.
    pub heard: BTreeMap<Client, i64>,
    /// Others changed something, and rlock has not heard of it yet.
    pub unread: bool,
    /// They have exchanged the databases, of which nothing comes: a request may come before the
    /// timer.
    exchanged: bool,
    /// Time has passed, and the timer fires only after the next step.
    pub overdue: bool,
    /// Then, the holds of which the core knows before that timer.
    known: Option<Vec<u64>>,
}

impl World {
    pub fn new(rules: Rules, places: &[Place]) -> Self {
        let mut shell = Shell::new();
        shell.core.rules = rules;
        let model = Model::new(shell.now, rules);
        Self {
            shell,
            model,
            places: places.to_vec(),
            ids: Vec::new(),
            told_at: Vec::new(),
            asked: None,
            renamed: None,
            tokens: Tokens::default(),
            replies: None,
            seats: std::array::from_fn(|seat| nth_client(seat as u64 + 1)),
            last_client: SEATS as u64,
            heard: BTreeMap::new(),
            unread: false,
            exchanged: false,
            overdue: false,
            known: None,
        }
    }

    /// The core has done all that the model has.
    pub fn slot_stays(&self) -> bool {
        !self.unread && !self.overdue
    }

    pub fn act(&mut self, op: &Op) {
        (self.replies, self.asked, self.renamed) = (None, None, None);
        let exchanged = std::mem::take(&mut self.exchanged);
        let is_first = exchanged && matches!(op, Op::Acquire(_));
        if !is_first && (!may_be_unread(op) || self.overdue || exchanged) {
            self.read();
        }
        // The model's timer is never late.
        let overdue = std::mem::take(&mut self.overdue);
        if overdue {
            self.known = Some(self.model.holds.iter().map(|hold| hold.id).collect());
            self.model.tick();
        }
        self.take_step(op);
        if is_first {
            self.read();
        }
        if overdue {
            self.known = None;
            self.shell.tick();
            self.model.settle();
            self.unread = false;
        }
        if !self.shell.core.rules.observes_all && self.slot_stays() {
            self.look_at_all_keys();
        }
    }

    /// The model knows at once what rlock finds out by a look. Not before a late timer: the
    /// look would do what is due, and renew what nothing is compared with yet.
    fn look_at_all_keys(&mut self) {
        for key in self.shell.core.locks.keys() {
            let note = Note::Changed(key, Cause::Unknown);
            self.shell.notes.push(note);
        }
        self.shell.read_notes();
        self.model.listen();
    }

    /// The late timer fires, but for a step that has to do without it. What is unread is read
    /// before another hears no more: who is told is asked when it is.
    pub fn catch_up(&mut self, op: &Op) -> bool {
        let goes_first = matches!(
            op,
            Op::Acquire(_)
                | Op::Again { .. }
                | Op::Release { .. }
                | Op::ReleaseMany { .. }
                | Op::Renew(_)
                | Op::RenewMany { .. }
                | Op::Force { .. }
                | Op::Other {
                    what: Other::Take(..),
                    ..
                }
        );
        let fires = self.overdue && !goes_first;
        let reads = self.unread && matches!(op, Op::Hears { .. });
        if fires {
            self.tick();
        } else if reads {
            self.read();
        }
        fires || reads
    }

    /// The model has seen to all that was due, and the core not yet.
    pub fn is_late(&self) -> bool {
        self.known.is_some()
    }

    fn take_step(&mut self, op: &Op) {
        match op {
            Op::Acquire(call) => self.acquire(self.ask(call), call.seat),
            Op::Again { which, seat } => self.say_again(*which, *seat),
            Op::Cancel {
                which,
                at,
                owner,
                mode,
            } => self.cancel(*which, (*at, *owner), *mode),
            Op::Hears { which, seat, hears } => self.set_hearing(*which, *seat, *hears),
            Op::Demote => self.demote(),
            Op::Release { whose, by, only } => self.release(*whose, *by, *only),
            Op::Limit { at, limit } => self.limit(*at, *limit),
            Op::Renew(words) => self.renew(*words),
            Op::ReleaseMany { keys, whose } => self.release_many(keys, *whose),
            Op::RenewMany { keys, whose, lease } => self.renew_many(keys, *whose, *lease),
            Op::Force { at, seat, aim } => self.force(*at, *seat, *aim),
            Op::Presume(place) => self.shell.take_stock(&at(*place)),
            Op::Close(seat) => self.close(self.seats[*seat]),
            Op::Resend(seat) => self.resend(*seat),
            Op::Heartbeat(seat, patience) => self.heartbeat(*seat, *patience),
            Op::Leave(which) => self.leave(*which),
            Op::Lose { which, closes } => self.lose(*which, *closes),
            Op::Confirm => self.confirm(|_| true),
            Op::Pass { us, cycle, fires } => self.let_pass(*us, *cycle, *fires),
            Op::Shut(us) => self.shut(*us),
            Op::Set(ms) => self.set_clock(*ms),
            Op::Other { what, late } => {
                self.change(*what);
                self.unread = true;
                self.exchanged = *late && matches!(what, Other::Swap) && self.is_settled();
                if !late || !may_be_unread(op) && !self.exchanged {
                    self.read();
                }
            }
        }
    }

    fn release_many(&mut self, keys: &[Place], whose: Whose) {
        let (_, owner, _, seat) = self.who(whose);
        if let Some(client) = self.gives_up(owner, seat) {
            let got = self.shell.release_many(keys, owner, client);
            let got = got.map_or_else(Got::Refused, Got::Count);
            self.replies = Some((got, self.model.release_many(keys, owner, client)));
        }
    }

    fn force(&mut self, at: Place, seat: Seat, aim: Option<Aim>) {
        let Ok((said, meant)) = self.aim(at, aim) else {
            return;
        };
        if let Some(client) = self.speaks(seat) {
            let got = self.shell.force(at, client, said);
            let got = got.map_or_else(Got::Refused, Got::Forced);
            self.replies = Some((got, self.model.force(at, client, meant)));
        }
    }

    fn limit(&mut self, at: Place, limit: usize) {
        let got = self.shell.limit(at, limit);
        let got = got.map_or_else(Got::Refused, Got::Count);
        self.replies = Some((got, self.model.limit(at, limit)));
        self.model.listen();
    }

    fn leave(&mut self, which: usize) {
        let blocked = self.model.queue.iter().filter(|w| !w.ask.queue);
        let waiting: Vec<usize> = blocked.map(|waiter| waiter.id).collect();
        let waiting = waiting.into_iter();
        if let Some(id) = waiting.clone().nth(which % waiting.len().max(1)) {
            self.shell.leave(self.ids[id]);
            self.model.leave(id);
        }
    }

    /// A connection that is blocked, or was just granted, says nothing.
    pub fn speaks(&mut self, seat: Seat) -> Option<Client> {
        let client = self.seats[seat];
        if self.known.is_some() && self.model.grants.iter().any(|g| g.client == client) {
            return None;
        }
        // A message may be on its way while the connection goes on.
        self.confirm(|grant| grant.client == client && !grant.queue);
        let mut blocked = self.model.queue.iter().filter(|w| !w.ask.queue);
        let waits = blocked.any(|w| w.ask.client == client);
        (!waits).then_some(client)
    }

    pub fn confirm(&mut self, which: impl Fn(&Grant) -> bool) {
        for grant in self.model.grants.clone() {
            if which(&grant) {
                self.shell.core.confirm(self.ids[grant.waiter]);
                self.model.confirm(grant.waiter);
            }
        }
    }

    /// Whose hold, in which mode, and from which seat the request comes.
    pub fn who(&self, whose: Whose) -> (Place, Owner, Mode, Seat) {
        let known = |hold: &&Hold| self.known.as_ref().is_none_or(|ids| ids.contains(&hold.id));
        let holds: Vec<&Hold> = self.model.holds.iter().filter(known).collect();
        let of = |which: usize| holds.get(which % holds.len().max(1));
        let Some(hold) = whose.held.and_then(of) else {
            return (whose.at, whose.owner, whose.mode, whose.seat);
        };
        let its_own = self.seats.iter().position(|c| hold.client == Some(*c));
        let seat = its_own.filter(|_| whose.own_seat).unwrap_or(whose.seat);
        (hold.place, hold.owner, hold.mode, seat)
    }

    pub fn acquire(&mut self, ask: Ask, seat: Seat) {
        if self.speaks(seat).is_none() {
            return;
        }
        let got = match self.shell.acquire(&ask) {
            Ok(Verdict::Granted(token)) => Got::Token(token),
            Ok(Verdict::Refused) => Got::Null,
            Ok(Verdict::Waits(id)) => {
                self.ids.push(id);
                self.told_at.push(ask.told_at());
                Got::Waits
            }
            Err(refusal) => Got::Refused(refusal),
        };
        // A request that waits for its own owner's: see `Model::between`.
        let mut other = self.model.clone();
        other.between = true;
        let mut reply = self.model.acquire(&ask);
        // What ended elsewhere the core may not have come to yet.
        if !self.same_order(&ask.keys) {
            reply = other.acquire(&ask);
            other.between = false;
            self.model = other;
        }
        self.replies = Some((got, reply));
        self.same_beat(ask.client);
        self.asked = Some(ask);
    }

    /// Whether those who wait for these keys stand in the same order in the core and the
    /// model.
    pub fn same_order(&self, places: &[Place]) -> bool {
        places.iter().all(|place| {
            let got = self.shell.core.queues.line(&at(*place)).queue.ids();
            let queue = self.model.queue.iter();
            let queue = queue.filter(|w| w.ask.keys.contains(place));
            got.eq(queue.map(|w| self.ids[w.id]))
        })
    }

    /// As [`World::speaks`], to give up a hold of this owner's. Left out: one of a
    /// grant under way whose connection has another one there in the same mode.
    fn gives_up(&mut self, owner: Owner, seat: Seat) -> Option<Client> {
        let model = &self.model;
        let twice = |client: Client| {
            let theirs = |hold: &&Hold| hold.client == Some(client) && hold.owner == owner;
            let mut known = BTreeSet::new();
            let mut theirs = model.holds.iter().filter(theirs);
            theirs.any(|hold| !known.insert((hold.place, hold.mode)))
        };
        let doubtful = model.grants.iter().map(|grant| grant.client);
        let doubtful: Vec<Client> = doubtful.filter(|client| twice(*client)).collect();
        if self.known.is_some() && !doubtful.is_empty() {
            return None;
        }
        self.confirm(|grant| doubtful.contains(&grant.client));
        self.speaks(seat)
    }

    fn release(&mut self, whose: Whose, by: Option<usize>, only: Option<Only>) {
        let (place, owner, mode, seat) = self.who(whose);
        // Of what is no permit one is given back, or all.
        let by = by.map(|by| if mode == Mode::Permits { by } else { 1 });
        let Ok((said, meant)) = self.only(place, only) else {
            return;
        };
        if let Some(client) = self.gives_up(owner, seat) {
            let count = by.map(|by| i64::try_from(by).unwrap());
            let got = self
                .shell
                .release(place, owner, client, (mode, count, said));
            let got = got.map_or_else(Got::Refused, Got::Count);
            let expected = self.model.release(place, owner, client, mode, by, meant);
            self.replies = Some((got, expected));
        }
    }

    /// First its waits and its watchdog holds end; the server tells later that the
    /// reply of its grant is lost.
    pub fn close(&mut self, client: Client) {
        self.shell.closed(client);
        self.model.closed(client);
        self.take_back(|grant| grant == client);
        self.shell.ks.deaf.remove(&client);
        self.model.deaf.remove(&client);
        if let Some(seat) = self.seats.iter().position(|open| *open == client) {
            self.last_client += 1;
            self.seats[seat] = nth_client(self.last_client);
        }
    }

    fn lose(&mut self, which: usize, closes: bool) {
        let open = &self.model.grants;
        if let Some(grant) = open.get(which % open.len().max(1)).cloned() {
            match closes {
                true => self.close(grant.client),
                false => self.take_back(|client| client == grant.client),
            }
        }
    }

    fn take_back(&mut self, which: impl Fn(Client) -> bool) {
        for grant in self.model.grants.clone() {
            if which(grant.client) {
                self.shell.lose(self.ids[grant.waiter]);
                self.model.take_back(grant.waiter);
            }
        }
    }

    pub fn places() -> impl Iterator<Item = Place> {
        [0, 1]
            .into_iter()
            .flat_map(|db| NAMES.map(|name| (db, name)))
    }

    pub fn is_owner(name: &[u8]) -> Option<Owner> {
        OWNERS.into_iter().find(|owner| owner.as_bytes() == name)
    }
}

/// The connection with this number, which is not 0.
fn nth_client(number: u64) -> Client {
    Client::new(number).unwrap()
}

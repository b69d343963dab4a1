//! What befalls sessions in a random run: many waits of one connection, a request that is
//! said again, CANCEL, connections that hear nothing, a server that is demoted.

use proptest::prelude::*;

use super::model::{Address, Ask, Client, Hold, Mode, Owner, Place, Share};
use super::ops::{Call, Seat};
use super::world::{Got, World};
use crate::lock::WaiterId;

/// NOTIFY: one of the channels of the connection, and a tag; with WANTED or without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words {
    pub channel: u8,
    pub tag: u8,
    pub wanted: bool,
}

pub fn words() -> impl Strategy<Value = Option<Words>> {
    let channel = prop::bool::weighted(0.1).prop_map(u8::from);
    let wanted = prop::bool::weighted(0.4);
    let words = (channel, 0..6u8, wanted);
    let words = words.prop_map(|(channel, tag, wanted)| Words {
        channel,
        tag,
        wanted,
    });
    prop::option::weighted(0.6, words)
}

impl World {
    /// The request that is made. The server refuses NOTIFY where nobody listens, and QUEUE
    /// without NOTIFY.
    pub fn ask(&self, call: &Call) -> Ask {
        let client = self.seats[call.seat];
        let notify = self.address(client, call.notify);
        Ask {
            keys: call.keys.clone(),
            owner: call.owner,
            client,
            mode: call.mode,
            share: call.share,
            lease: call.lease,
            once: call.once,
            watch: call.watch,
            block: call.block,
            queue: call.queue && call.block.is_some() && notify.is_some(),
            notify,
            wanted: wants_hints(call.notify, notify),
        }
    }

    /// Where a connection may ask to be told.
    pub fn address(&self, client: Client, words: Option<Words>) -> Option<Address> {
        let notify = words.map(|Words { channel, tag, .. }| Address {
            client,
            channel,
            tag,
        });
        notify.filter(|to| self.may_be_told(*to))
    }

    /// Left out: a tag of a hold that has ended, if the core does not know that yet.
    fn may_be_told(&self, to: Address) -> bool {
        let is_free = || !self.shell.core.sessions.has(&self.shell.address(to));
        !self.model.deaf.contains(&to.client) && (!self.is_late() || is_free())
    }

    /// A request that waits, or the last one for a hold, comes once more.
    pub fn say_again(&mut self, which: usize, seat: Option<Seat>) {
        let waits = self.model.queue.iter().map(|waiter| waiter.ask.clone());
        let holds = self.model.holds.iter().filter_map(|hold| self.again(hold));
        let kept = self.model.kept.iter().map(|kept| kept.ask.clone());
        let all: Vec<Ask> = waits.chain(holds).chain(kept).collect();
        let Some(ask) = all.get(which % all.len().max(1)) else {
            return;
        };
        let its_own = self.seats.iter().position(|open| *open == ask.client);
        if let Some(seat) = seat.or(its_own) {
            self.send_again(ask, seat);
        }
    }

    /// A request whose connection was closed is sent again by another.
    pub fn resend(&mut self, seat: Seat) {
        if let Some(ask) = self.model.kept.last().map(|kept| kept.ask.clone()) {
            self.send_again(&ask, seat);
        }
    }

    fn send_again(&mut self, ask: &Ask, seat: Seat) {
        let call = Call {
            keys: ask.keys.clone(),
            owner: ask.owner,
            seat,
            mode: ask.mode,
            share: ask.share,
            lease: ask.lease,
            once: true,
            watch: ask.watch,
            block: ask.block,
            queue: ask.queue,
            notify: ask.notify.map(|Address { channel, tag, .. }| Words {
                channel,
                tag,
                wanted: ask.wanted,
            }),
        };
        self.acquire(self.ask(&call), seat);
    }

    /// The waits of an owner for a key: of one that waits, or these words exactly.
    pub fn cancel(
        &mut self,
        which: Option<usize>,
        (place, owner): (Place, Owner),
        mode: Option<Mode>,
    ) {
        let queue = &self.model.queue;
        let one = which.and_then(|which| queue.get(which % queue.len().max(1)));
        let (place, owner) = one.map_or((place, owner), |w| (w.ask.keys[0], w.ask.owner));
        let mode = mode.and_then(|mode| one.map_or(Some(mode), |w| Some(w.ask.mode)));
        let got = Got::Count(self.shell.cancel(place, owner, mode));
        let expected = self.model.cancel(place, owner, mode);
        self.model.listen();
        self.replies = Some((got, super::model::Reply::Count(expected)));
    }

    pub fn set_hearing(&mut self, which: Option<usize>, seat: Seat, hears: bool) {
        let waiting = self.model.queue.iter().filter(|w| w.ask.queue);
        let waiting: Vec<Client> = waiting.map(|waiter| waiter.ask.client).collect();
        let one = which.and_then(|which| waiting.get(which % waiting.len().max(1)));
        let client = one.copied().unwrap_or(self.seats[seat]);
        if hears {
            self.shell.ks.deaf.remove(&client);
            self.model.deaf.remove(&client);
        } else {
            self.shell.ks.deaf.insert(client);
            self.model.deaf.insert(client);
        }
    }

    pub fn heartbeat(&mut self, seat: Seat, patience: i64) {
        if let Some(client) = self.speaks(seat) {
            self.shell.heard(client, patience);
            self.model.heard(client, patience);
            self.heard
                .insert(client, self.model.mono_us + patience * 1000);
        }
    }

    /// Left open: a request that stands in a queue for no time may count as a wait.
    pub fn same_beat(&mut self, client: Client) {
        let until = self.shell.core.heartbeats.until(client);
        if let (Some(until), Some(beat)) = (until, self.model.hearing.beats.get_mut(&client)) {
            if until.0 > beat.until
                && until.0 <= self.model.hearing.listened + 150_000 + beat.patience * 1000
            {
                beat.until = until.0;
            }
        }
    }

    pub fn demote(&mut self) {
        let blocked = self.model.queue.iter().filter(|w| !w.ask.queue);
        let blocked: Vec<WaiterId> = blocked.map(|w| self.ids[w.id]).collect();
        self.shell.demoted(&blocked);
        self.model.demoted();
        self.model.listen();
    }

    /// The request that made a hold, as far as it matters.
    fn again(&self, hold: &Hold) -> Option<Ask> {
        let client = hold.notify.map(|to| to.client).or(hold.client)?;
        let limit = self.model.limits.get(&hold.place);
        let share = limit.map_or(Share::HOLD, |limit| Share {
            limit: limit.asked,
            count: self.model.count(hold.place, hold.owner, Mode::Permits),
        });
        Some(Ask {
            keys: vec![hold.place],
            owner: hold.owner,
            client,
            mode: hold.mode,
            share,
            lease: 100,
            once: true,
            watch: hold.watch.is_some(),
            block: Some(0),
            queue: true,
            notify: hold.notify,
            wanted: hold.wanted,
        })
    }
}

/// Whether whoever is told there asks with WANTED.
pub fn wants_hints(words: Option<Words>, notify: Option<Address>) -> bool {
    notify.is_some() && words.is_some_and(|words| words.wanted)
}

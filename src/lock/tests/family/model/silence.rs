//! Connections that say that they are alive (HEARTBEAT), and are silent then. Only time in which
//! the server could hear them counts: it is told here by turns.

use std::collections::{BTreeMap, BTreeSet};

use super::{Client, Hold, Mode, Model, Owner, Place, Reason, Waiter, Watch};

/// As a rule a turn comes so often, us; if none came for so long, the server stood still.
const TURN: i64 = 100_000;
const STALL: i64 = 150_000;

/// Then turns come so far apart for a while, and nobody is taken for silent in so many of them, or
/// in the one before.
const READS: i64 = 25_000;
const TO_READ: u8 = 3;

/// No turn comes sooner after another one.
const LEAST: i64 = 5_000;

/// What a connection has said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Beat {
    pub patience: i64,
    /// It is silent from then on.
    pub until: i64,
}

/// How far the server has come in hearing them.
#[derive(Clone, Debug, Default)]
pub struct Hearing {
    /// Connections that have said that they are alive.
    pub beats: BTreeMap<Client, Beat>,
    /// In how much time the server could hear, us,
    pub listened: i64,
    /// and when it came to listen last.
    pub last_turn: i64,
    /// It stood still: how often it is to listen yet, after the next time.
    pub stood_still: Option<u8>,
    /// What was lost by silence in this step: one of the owner's watches there.
    pub fell_silent: BTreeMap<(Place, Owner), Watch>,
}

impl Model {
    /// The connection is alive, and may be silent for so many ms.
    pub fn heard(&mut self, client: Client, patience: i64) {
        if self.hearing.beats.is_empty() {
            (self.hearing.last_turn, self.hearing.stood_still) = (self.mono_us, None);
        }
        let passed = (self.mono_us - self.hearing.last_turn).min(STALL);
        let until = self.hearing.listened + passed + patience * 1000;
        self.hearing.beats.insert(client, Beat { patience, until });
    }

    /// A request has left its queues. Of a client that was blocked nothing could be heard.
    pub fn unblocked(&mut self, waiter: &Waiter) {
        if !waiter.ask.queue && waiter.id < self.arrivals {
            self.may_speak(waiter.ask.client);
        }
    }

    fn may_speak(&mut self, client: Client) {
        if let Some(beat) = self.hearing.beats.get_mut(&client) {
            beat.until = self.hearing.listened + STALL + beat.patience * 1000;
        }
    }

    /// It says so, and is not silent.
    pub fn is_heard(&self, client: Client) -> bool {
        self.hearing.beats.contains_key(&client) && !self.is_silent(client)
    }

    pub fn is_silent(&self, client: Client) -> bool {
        let beat = self.hearing.beats.get(&client);
        beat.is_some_and(|beat| beat.until <= self.hearing.listened)
    }

    /// The server comes to listen, and may write.
    pub fn listen(&mut self) {
        self.end_silent_if_due();
        self.hint_again();
    }

    fn end_silent_if_due(&mut self) {
        let watches = self.holds.iter().any(|hold| hold.watch.is_some());
        if self.hearing.beats.is_empty() || !watches {
            return;
        }
        let ends = self
            .hearing
            .beats
            .values()
            .map(|beat| beat.until - self.hearing.listened);
        let next = ends.filter(|left| *left > 0).min().unwrap_or(TURN);
        let due = match self.hearing.stood_still {
            Some(_) => READS,
            None => next.clamp(LEAST, TURN),
        };
        let passed = self.mono_us - self.hearing.last_turn;
        if passed < due {
            return;
        }
        self.hearing.last_turn = self.mono_us;
        self.hearing.listened += if passed > STALL { TURN } else { passed };
        self.hearing.stood_still = match self.hearing.stood_still {
            None if passed > STALL => Some(TO_READ),
            None | Some(0) => None,
            Some(left) => Some(left - 1),
        };
        if self.hearing.stood_still.is_none() {
            self.end_silent();
        }
    }

    /// Who is silent loses what it watches, as far as it keeps somebody waiting: first who has
    /// been silent for longest. After each of them those who wait are served.
    fn end_silent(&mut self) {
        let silent = self
            .hearing
            .beats
            .iter()
            .filter(|(_, beat)| beat.until <= self.hearing.listened);
        let silent: BTreeSet<(i64, Client)> =
            silent.map(|(client, b)| (b.until, *client)).collect();
        let mut bonds: Vec<(Client, Place, Owner)> = Vec::new();
        for (_, client) in silent {
            let mut queue = self.queue.iter();
            if queue.any(|w| w.ask.client == client && !w.ask.queue) {
                self.may_speak(client);
                continue;
            }
            let its = self.holds.iter().filter(|hold| watches(hold, client));
            let its: BTreeSet<(Place, Owner)> = its.map(|h| (h.place, h.owner)).collect();
            bonds.extend(its.into_iter().map(|(place, owner)| (client, place, owner)));
        }
        for (client, place, owner) in bonds {
            if self.is_silent(client) {
                while self.is_in_the_way(place, owner) {
                    let Some(id) = self.deaf_first(place) else {
                        self.lose_silent(client, place, owner);
                        break;
                    };
                    self.dequeue(|waiter| waiter.id == id);
                }
                self.settle();
            }
        }
    }

    /// Whether the owner keeps out who is first in the queue, and the lease that it has asked for is
    /// over.
    fn is_in_the_way(&self, place: Place, owner: Owner) -> bool {
        let theirs = self.holds_at(place).filter(|hold| hold.owner == owner);
        let asked = theirs
            .filter_map(|hold| hold.watch)
            .map(|watch| watch.asked);
        let is_over = asked.max().is_some_and(|asked| asked < self.now_ms());
        is_over && self.kept_out_by(place, owner).is_some()
    }

    /// Who is first in the queue, if nobody would hear of its grant.
    fn deaf_first(&self, place: Place) -> Option<usize> {
        let first = self.first_at(place)?;
        self.is_deaf(first).then_some(first.id)
    }

    fn first_at(&self, place: Place) -> Option<&Waiter> {
        self.queue.iter().find(|w| w.ask.keys.contains(&place))
    }

    /// Who is first in the queue, if the owner keeps that one out.
    pub fn kept_out_by(&self, place: Place, owner: Owner) -> Option<&Waiter> {
        let first = self.first_at(place)?;
        let reads = self.count(place, owner, Mode::Read) > 0;
        let reads_alone = reads && self.count(place, owner, Mode::Write) == 0;
        let together = first.ask.mode == Mode::Read && reads_alone;
        (first.ask.owner != owner && !together).then_some(first)
    }

    fn lose_silent(&mut self, client: Client, place: Place, owner: Owner) {
        let its =
            |hold: &&Hold| watches(hold, client) && (hold.place, hold.owner) == (place, owner);
        let gone: Vec<Hold> = self.holds.iter().filter(its).copied().collect();
        let watches = gone.iter().filter_map(|hold| hold.watch);
        let watches = watches.map(|watch| ((place, owner), watch));
        self.hearing.fell_silent.extend(watches);
        self.end_and_tell(&gone);
        // Of others that are left with its name nothing is told.
        let left: BTreeSet<_> = self.holds.iter().map(Hold::name).collect();
        let named = |hold: &Hold| Hold {
            notify: hold.notify.filter(|_| !left.contains(&hold.name())),
            ..*hold
        };
        let gone: Vec<Hold> = gone.iter().map(named).collect();
        self.tell_losses(&gone, &[Reason::Silent]);
    }
}

fn watches(hold: &Hold, client: Client) -> bool {
    hold.client == Some(client) && hold.watch.is_some()
}

//! The shell of the core's tests in the words of the model.

use std::ops::{Deref, DerefMut};

use super::model::{
    Address as To, Ask as Words, Client, Mode as Way, Owner, Place, Renew, Share as HowMuch,
};
use crate::lock::{
    self, Address, Aim, Ask, Cause, Ended, Fence, Gate, Key, Mode, Note, Once, Only, Refusal,
    Renewal, Share, Token, Verdict, Wait, WaiterId,
};

pub fn at(place: Place) -> Key {
    Key::new(place.0, place.1.as_bytes())
}

pub fn mode(way: Way) -> Mode {
    match way {
        Way::Plain => Mode::Exclusive,
        Way::Read => Mode::Read,
        Way::Write => Mode::Write,
        Way::Permits => Mode::Permits,
    }
}

fn share(words: HowMuch) -> Share {
    let number = |number| u32::try_from(number).unwrap();
    Share::new(number(words.count), number(words.limit))
}

/// The shell of the tests, spoken to in the words of the model.
#[derive(Clone)]
pub struct Shell(crate::lock::tests::shell::Shell);

impl Deref for Shell {
    type Target = crate::lock::tests::shell::Shell;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Shell {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl Shell {
    pub fn new() -> Self {
        Self(crate::lock::tests::shell::Shell::new())
    }

    // Clients.

    pub fn acquire(&mut self, words: &Words) -> Result<Verdict, Refusal> {
        let names: Vec<&[u8]> = words.keys.iter().map(|key| key.1.as_bytes()).collect();
        let notify = words.notify.map(|to| self.told_at(to, words.wanted));
        let ask = Ask {
            db: words.keys[0].0,
            owner: words.owner.as_bytes(),
            client: Some(words.client),
            mode: mode(words.mode),
            share: share(words.share),
            lease: words.lease,
            once: if words.once {
                Once::IsTheSame
            } else {
                Once::Nests
            },
            notify: notify.as_ref(),
            watch: words.watch,
            wait: words.block.map(if words.queue {
                Wait::queued
            } else {
                Wait::blocked
            }),
        };
        match names[..] {
            [name] => self.asks(|with| lock::acquire(with, name, &ask)),
            _ => self.request(|d| lock::acquire_many(d, &names, &ask)),
        }
    }

    pub fn release(
        &mut self,
        (db, name): Place,
        owner: Owner,
        client: Client,
        (way, by, only): (Way, Option<i64>, Option<Only>),
    ) -> Result<i64, Refusal> {
        let ended = Ended {
            db,
            owner: owner.as_bytes(),
            client: Some(client),
            mode: mode(way),
            count: by,
            only,
        };
        self.asks(|with| lock::release(with, name.as_bytes(), &ended))
    }

    pub fn release_many(
        &mut self,
        places: &[Place],
        owner: Owner,
        client: Client,
    ) -> Result<i64, Refusal> {
        let names: Vec<&[u8]> = places.iter().map(|place| place.1.as_bytes()).collect();
        let ended = Ended {
            db: places[0].0,
            owner: owner.as_bytes(),
            client: Some(client),
            mode: Mode::Exclusive,
            count: Some(1),
            only: None,
        };
        self.step(|d| lock::release_many(d, &names, &ended))
    }

    pub fn renew(&mut self, words: &Renew) -> Result<Option<Token>, Refusal> {
        let notify = words.notify.map(|to| self.told_at(to, words.wanted));
        let (db, name) = words.place;
        let renewal = Renewal {
            db,
            owner: words.owner.as_bytes(),
            mode: mode(words.mode),
            lease: words.lease,
            watch: words.bind,
            notify: notify.as_ref(),
            fence: words.anew.then_some(Fence::New),
        };
        self.step(|d| lock::renew(d, name.as_bytes(), &renewal))
    }

    pub fn renew_many(
        &mut self,
        places: &[Place],
        owner: Owner,
        lease: i64,
    ) -> Result<(), Refusal> {
        let names: Vec<&[u8]> = places.iter().map(|place| place.1.as_bytes()).collect();
        let renewal = Renewal {
            db: places[0].0,
            owner: owner.as_bytes(),
            mode: Mode::Exclusive,
            lease,
            watch: None,
            notify: None,
            fence: None,
        };
        self.step(|d| lock::renew_many(d, &names, &renewal))
    }

    pub fn force(
        &mut self,
        (db, name): Place,
        client: Client,
        aim: Option<Aim<'_>>,
    ) -> Result<bool, Refusal> {
        self.step(|d| lock::force(d, db, name.as_bytes(), Some(client), aim.as_ref()))
    }

    pub fn limit(&mut self, (db, name): Place, limit: usize) -> Result<i64, Refusal> {
        let limit = i64::try_from(limit).unwrap();
        let was = self.step(|d| lock::limit(d, db, name.as_bytes(), limit));
        self.tick();
        was
    }

    pub fn address(&self, to: To) -> Address {
        self.told_at(to, false)
    }

    fn told_at(&self, to: To, wanted: bool) -> Address {
        let (channel, tag) = (to.channel.to_string(), to.tag.to_string());
        let (channel, tag) = (channel.as_bytes(), tag.as_bytes());
        self.core.address(to.client, channel, tag, wanted)
    }

    pub fn cancel(&mut self, (db, name): Place, owner: Owner, way: Option<Way>) -> i64 {
        let (name, owner) = (name.as_bytes(), owner.as_bytes());
        let ended = self.note(|d| lock::cancel(d, db, name, owner, way.map(mode)));
        self.read_notes();
        ended
    }

    /// The server turns replica: blocked clients are sent away by it, the others by the
    /// timer. Later it is a master again.
    pub fn demoted(&mut self, blocked: &[WaiterId]) {
        self.gate = Gate::Shut;
        lock::demoted(&mut self.core);
        for id in blocked {
            lock::leave(&mut self.core, *id);
        }
        self.tick();
        self.gate = Gate::Open;
        if !self.core.is_idle() {
            self.notes.push(Note::Replaced(None, Cause::Unknown));
        }
        self.read_notes();
    }

    pub fn closed(&mut self, client: Client) {
        self.notes.push(Note::Closed(client));
        self.read_notes();
    }

    pub fn heard(&mut self, client: Client, patience: i64) {
        let now = self.now;
        lock::heartbeat(&mut self.core, client, patience, now);
    }

    pub fn leave(&mut self, id: WaiterId) {
        crate::lock::leave(&mut self.core, id);
        self.read_notes();
    }

    /// A lease key of a reader changed.
    pub fn lease_changed(&mut self, key: &Key, owner: Owner, cause: Cause) {
        if self.core.knows(key.db, &key.name) {
            let owner = owner.as_bytes().into();
            self.notes.push(Note::Reader(key.clone(), owner, cause));
        }
    }
}

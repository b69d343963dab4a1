//! The shell of the core's tests in the words of the model.

use std::ops::{Deref, DerefMut};

use super::model::{Ask as Words, Client, Mode as Way, Owner, Place};
use crate::lock::{
    self, Aim, Ask, Cause, Ended, Key, Mode, Note, Once, Only, Refusal, Renewal, Verdict, Wait,
    WaiterId,
};

pub fn at(place: Place) -> Key {
    Key::new(place.0, place.1.as_bytes())
}

pub fn mode(way: Way) -> Mode {
    match way {
        Way::Plain => Mode::Exclusive,
        Way::Read => Mode::Read,
        Way::Write => Mode::Write,
    }
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
        let ask = Ask {
            db: words.keys[0].0,
            owner: words.owner.as_bytes(),
            client: Some(words.client),
            mode: mode(words.mode),
            lease: words.lease,
            once: if words.once {
                Once::IsTheSame
            } else {
                Once::Nests
            },
            notify: None,
            watch: words.watch,
            wait: words.block.map(Wait::blocked),
        };
        match names[..] {
            [name] => self.request(|d| lock::acquire(d, name, &ask)),
            _ => self.request(|d| lock::acquire_many(d, &names, &ask)),
        }
    }

    pub fn release(
        &mut self,
        (db, name): Place,
        owner: Owner,
        client: Client,
        (way, all, only): (Way, bool, Option<Only>),
    ) -> Result<i64, Refusal> {
        let ended = Ended {
            db,
            owner: owner.as_bytes(),
            client: Some(client),
            mode: mode(way),
            all,
            only,
        };
        self.step(|d| lock::release(d, name.as_bytes(), &ended))
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
            all: false,
            only: None,
        };
        self.step(|d| lock::release_many(d, &names, &ended))
    }

    pub fn renew(
        &mut self,
        (db, name): Place,
        owner: Owner,
        client: Client,
        way: Way,
        lease: i64,
        watch: bool,
    ) -> Result<(), Refusal> {
        let renewal = Renewal {
            db,
            owner: owner.as_bytes(),
            mode: mode(way),
            lease,
            watch: watch.then_some(client),
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

    pub fn closed(&mut self, client: Client) {
        self.notes.push(Note::Closed(client));
        self.read_notes();
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

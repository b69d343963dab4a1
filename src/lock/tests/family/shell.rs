//! The shell in miniature: calls the core as `crate::server` does, on a keyspace
//! in memory and with clocks that the test moves. What happens to keys by others'
//! hands is noted and read later.

use super::model::{Ask as Words, Client, Mode as Way, Owner, Place};
use crate::lock::memory::Memory;
use crate::lock::{
    self, Ask, Cause, Core, Decision, Ended, Key, Mode, MonoUs, Note, Notices, Now, Refusal,
    Renewal, Verdict, Wait, WaiterId, WallUs,
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

#[derive(Clone)]
pub struct Shell {
    pub core: Core,
    pub ks: Memory,
    pub now: Now,
    /// The effects that nobody has asked about yet.
    pub told: Notices,
    notes: Vec<Note>,
}

impl Shell {
    pub fn new() -> Self {
        let mut shell = Self {
            core: Core::new(),
            ks: Memory::default(),
            now: Now {
                wall: WallUs(1_700_000_000_000_000),
                mono: MonoUs(50_000_000_000),
            },
            told: Notices::new(),
            notes: Vec::new(),
        };
        shell.pass_us(0, 0);
        shell
    }

    /// Whatever was noted is heard before anything is decided, as in the server.
    fn take_in(&mut self) {
        let notes = std::mem::take(&mut self.notes);
        self.note(|d| lock::hear(d, notes));
    }

    fn step<T>(&mut self, act: impl FnOnce(&mut Decision<'_>) -> T) -> T {
        self.take_in();
        lock::decide(&mut self.core, &mut self.ks, self.now, &mut self.told, act)
    }

    fn note<T>(&mut self, act: impl FnOnce(&mut Decision<'_>) -> T) -> T {
        lock::note(&mut self.core, &mut self.ks, self.now, &mut self.told, act)
    }

    fn request(
        &mut self,
        act: impl FnOnce(&mut Decision<'_>) -> Result<Verdict, Refusal>,
    ) -> Result<Verdict, Refusal> {
        self.take_in();
        lock::request(&mut self.core, &mut self.ks, self.now, &mut self.told, act)
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
            once: words.once,
            watch: words.watch,
            wait: words.block.map(Wait::of),
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
        way: Way,
        all: bool,
    ) -> Result<i64, Refusal> {
        let ended = Ended {
            db,
            owner: owner.as_bytes(),
            client: Some(client),
            mode: mode(way),
            all,
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

    pub fn force(&mut self, (db, name): Place, client: Client) -> Result<bool, Refusal> {
        self.step(|d| lock::force(d, db, name.as_bytes(), Some(client)))
    }

    pub fn closed(&mut self, client: Client) {
        self.hear([Note::Closed(client)]);
    }

    pub fn leave(&mut self, id: WaiterId) {
        self.core.leave(id);
        self.hear([]);
    }

    /// The reply of a grant will never reach its client.
    pub fn take_back(&mut self, id: WaiterId) {
        self.hear([Note::Lost(id)]);
    }

    // Time.

    pub fn pass_us(&mut self, wall: i64, mono: i64) {
        self.now.wall.0 += wall;
        self.now.mono.0 += mono;
        self.ks.now_ms = self.now.wall_ms();
    }

    /// The module's timer fires.
    pub fn tick(&mut self) {
        self.note(|d| lock::time_out(d, 500));
        self.read_notes();
        let due = self.core.due_renewals(self.now, 500);
        while self.step(|d| lock::renew_watched(d, &due)) {}
        let due = self.core.due(self.now, 500);
        while self.step(|d| lock::expire(d, &due)) {}
    }

    /// It fires behind the gate, again and again.
    pub fn lapse(&mut self) {
        while self.note(|d| lock::let_lapse(d, 1)) {}
    }

    // Notes.

    pub fn changed(&mut self, key: &Key, cause: Cause) {
        if self.core.knows(key.db, &key.name) {
            match self.notes.last_mut() {
                Some(Note::Changed(last, heard)) if last == key => *heard = cause.max(*heard),
                _ => self.notes.push(Note::Changed(key.clone(), cause)),
            }
        }
    }

    /// A lease key of a reader changed.
    pub fn lease_changed(&mut self, key: &Key, owner: Owner, cause: Cause) {
        if self.core.knows(key.db, &key.name) {
            let owner = owner.as_bytes().into();
            self.notes.push(Note::Reader(key.clone(), owner, cause));
        }
    }

    pub fn renamed(&mut self, from: &Key, to: &Key) {
        if self.core.knows(from.db, &from.name) {
            self.notes.push(Note::Renamed(from.clone(), to.clone()));
        } else {
            self.changed(to, Cause::Removed);
        }
    }

    pub fn swapped(&mut self, one: i32, other: i32) {
        if !self.core.is_idle() {
            self.notes.push(Note::Swapped(one, other));
        }
    }

    pub fn replaced(&mut self, db: Option<i32>) {
        if !self.core.is_idle() {
            self.notes.push(Note::Replaced(db, Cause::Removed));
        }
    }

    pub fn read_notes(&mut self) {
        let notes = std::mem::take(&mut self.notes);
        self.hear(notes);
    }

    fn hear(&mut self, notes: impl IntoIterator<Item = Note>) {
        self.note(|d| lock::hear(d, notes));
        loop {
            let keys = self.core.heard_of(usize::MAX);
            self.step(|d| lock::review(d, &keys, usize::MAX));
            if !self.core.is_unsettled() {
                break;
            }
        }
    }
}

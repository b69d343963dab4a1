//! The shell in miniature: calls the core as `crate::server` does, on a keyspace
//! in memory and with clocks that the test moves.
//!
//! As in the server, each step is written before the next one looks, and what
//! happens to keys by others' hands is noted and read later. What is due is done by
//! the core's own loop.

pub use super::request::{by, Request};
use super::server::Server;
pub use super::told::{answers, events};
use crate::lock::memory::Memory;
use crate::lock::{
    self, Ask, Cause, ClientId, Core, Decider, Decision, Ended, Event, Fence, Gate, Key, Listening,
    Mode, MonoUs, Note, Notice, Notices, Now, Occasion, Outcome, Refusal, Renewal, Token, Verdict,
    Wait, WaiterId, WallUs,
};

pub fn key(db: i32, name: &str) -> Key {
    Key::new(db, name.as_bytes())
}

#[derive(Clone)]
pub struct Shell {
    pub core: Core,
    pub ks: Memory,
    pub now: Now,
    pub gate: Gate,
    /// The server does not tell of keys that are overwritten.
    pub misses_overwrites: bool,
    /// So long a piece of the loop's work takes, us.
    pub piece_us: i64,
    /// The notices that nobody has asked about yet.
    pub told: Notices,
    pub notes: Vec<Note>,
    /// Each request has a connection of its own.
    clients: u64,
}

impl Shell {
    pub fn new() -> Self {
        let mut shell = Self {
            core: Core::default(),
            ks: Memory::default(),
            now: Now {
                wall: WallUs(1_700_000_000_000_000),
                mono: MonoUs(50_000_000_000),
                ends_early: false,
            },
            gate: Gate::Open,
            misses_overwrites: false,
            piece_us: 0,
            told: Notices::new(),
            notes: Vec::new(),
            clients: 0,
        };
        shell.pass_us(0, 0);
        shell
    }

    // Clients.

    pub fn acquire(&mut self, request: Request<'_>) -> Result<Verdict, Refusal> {
        self.clients += 1;
        let client = ClientId::new(request.client.unwrap_or(self.clients));
        let (tag, hints) = (request.tag.map(str::as_bytes), request.wants_hints);
        let notify = client.zip(tag);
        let notify = notify.map(|(client, tag)| self.core.address(client, b"channel", tag, hints));
        let wait = if request.queue {
            Wait::queued
        } else {
            Wait::blocked
        };
        let ask = Ask {
            db: request.db,
            owner: request.owner.as_bytes(),
            client,
            mode: request.mode,
            share: request.share,
            lease: request.lease,
            once: request.once,
            notify: notify.as_ref(),
            watch: request.watch,
            wait: request.block.map(wait),
        };
        let names: Vec<&[u8]> = request.name.split(' ').map(str::as_bytes).collect();
        match names[..] {
            [name] => self.asks(|with| lock::acquire(with, name, &ask)),
            _ => self.request(|d| lock::acquire_many(d, &names, &ask)),
        }
    }

    /// Acquires a lock that is to be had now; its token.
    pub fn get(&mut self, request: Request<'_>) -> Token {
        match self.acquire(request) {
            Ok(Verdict::Granted(token)) => token,
            other => panic!("{request:?} was to be granted: {other:?}"),
        }
    }

    /// Queues for a lock that is held now.
    pub fn wait(&mut self, request: Request<'_>) -> WaiterId {
        match self.acquire(request.block(request.block.unwrap_or(0))) {
            Ok(Verdict::Waits(id)) => id,
            other => panic!("{request:?} was to wait: {other:?}"),
        }
    }

    pub fn release_on(&mut self, at: &Key, owner: &str, all: bool) -> Result<i64, Refusal> {
        self.release_as(at, owner, Mode::Exclusive, all)
    }

    /// An MRELEASE.
    pub fn release_many(&mut self, names: &str, owner: &str) -> Result<i64, Refusal> {
        let ended = Ended {
            db: 0,
            owner: owner.as_bytes(),
            client: None,
            mode: Mode::Exclusive,
            count: Some(1),
            only: None,
        };
        let names: Vec<&[u8]> = names.split(' ').map(str::as_bytes).collect();
        self.step(|d| lock::release_many(d, &names, &ended))
    }

    pub fn release_as(
        &mut self,
        at: &Key,
        owner: &str,
        mode: Mode,
        all: bool,
    ) -> Result<i64, Refusal> {
        let ended = Ended {
            db: at.db,
            owner: owner.as_bytes(),
            client: None,
            mode,
            count: (!all).then_some(1),
            only: None,
        };
        self.asks(|with| lock::release(with, &at.name, &ended))
    }

    pub fn release(&mut self, owner: &str) -> Result<i64, Refusal> {
        self.release_on(&key(0, "k"), owner, false)
    }

    pub fn release_all(&mut self, owner: &str) -> Result<i64, Refusal> {
        self.release_on(&key(0, "k"), owner, true)
    }

    pub fn renew_on(&mut self, at: &Key, owner: &str, lease: i64) -> Result<(), Refusal> {
        self.renew_as(at, owner, Mode::Exclusive, lease)
    }

    pub fn renew_as(
        &mut self,
        at: &Key,
        owner: &str,
        mode: Mode,
        lease: i64,
    ) -> Result<(), Refusal> {
        self.renew_to(at, owner, (mode, lease), None).map(|_| ())
    }

    /// With FENCE or TOKEN: what the token is then.
    pub fn renew_to(
        &mut self,
        at: &Key,
        owner: &str,
        (mode, lease): (Mode, i64),
        fence: Option<Fence>,
    ) -> Result<Option<Token>, Refusal> {
        let renewal = Renewal {
            db: at.db,
            owner: owner.as_bytes(),
            mode,
            lease,
            watch: None,
            notify: None,
            fence,
        };
        self.step(|d| lock::renew(d, &at.name, &renewal))
    }

    pub fn renew(&mut self, owner: &str, lease: i64) -> Result<(), Refusal> {
        self.renew_on(&key(0, "k"), owner, lease)
    }

    pub fn force_on(&mut self, at: &Key) -> Result<bool, Refusal> {
        self.step(|d| lock::force(d, at.db, &at.name, None, None))
    }

    pub fn force(&mut self) -> Result<bool, Refusal> {
        self.force_on(&key(0, "k"))
    }

    /// The client of a grant went before its reply did.
    pub fn lose(&mut self, id: WaiterId) {
        self.notes.push(Note::Lost(id));
        self.read_notes();
    }

    // Time.

    /// So many ms go by on both clocks, and no timer fires.
    pub fn pass(&mut self, ms: i64) {
        self.pass_us(ms * 1000, ms * 1000);
    }

    pub fn pass_us(&mut self, wall: i64, mono: i64) {
        self.now.wall.0 += wall;
        self.now.mono.0 += mono;
        self.ks.now_ms = self.now.wall_ms();
    }

    /// The module's timer fires.
    pub fn tick(&mut self) {
        self.run(Occasion::Timer);
    }

    /// It fires behind the gate.
    pub fn lapse(&mut self) {
        self.gate = Gate::Shut;
        self.tick();
        self.gate = Gate::Open;
    }

    /// The server turns replica, and the timer fires.
    pub fn demoted(&mut self) {
        lock::demoted(&mut self.core);
        self.lapse();
    }

    pub fn pass_and_tick(&mut self, ms: i64) {
        self.pass(ms);
        self.tick();
    }

    // Notes.

    pub fn changed(&mut self, key: &Key, cause: Cause) {
        if self
            .core
            .observes(key.db, &key.name, self.core.rules.observes_all)
        {
            match self.notes.last_mut() {
                Some(Note::Changed(last, heard)) if last == key => *heard = cause.max(*heard),
                _ => self.notes.push(Note::Changed(key.clone(), cause)),
            }
        }
    }

    pub fn renamed(&mut self, from: &Key, to: &Key) {
        if self
            .core
            .observes(from.db, &from.name, self.core.rules.observes_all)
        {
            self.notes.push(Note::Renamed(from.clone(), to.clone()));
        } else {
            self.changed(to, Cause::Overwritten);
        }
    }

    pub fn swapped(&mut self, one: i32, other: i32) {
        if !self.core.is_idle() {
            self.notes.push(Note::Swapped(one, other));
        }
    }

    pub fn replaced(&mut self, db: Option<i32>) {
        if !self.core.is_idle() {
            self.notes.push(Note::Replaced(db, Cause::Flushed));
        }
    }

    /// All of them, and what comes of them.
    pub fn read_notes(&mut self) {
        loop {
            self.run(Occasion::Timer);
            if !self.core.has_due() {
                break;
            }
        }
    }

    // Who waits by subscription.

    /// Finds out whether somebody does, wherever the core asks.
    pub fn find_subscribers(&mut self, listens: bool) {
        let (mut read, shared) = (0, false);
        loop {
            let told = self.told[read..].iter();
            let found = told.filter_map(|notice| match notice {
                Notice::Wake { key, .. } if listens => Some((key, Listening::Woken { shared })),
                Notice::WhoListens { key, .. } if listens => {
                    Some((key, Listening::Waiting { shared }))
                }
                Notice::Wake { key, .. } | Notice::WhoListens { key, .. } => {
                    Some((key, Listening::Nobody))
                }
                _ => None,
            });
            let found: Vec<_> = found.map(|(key, found)| (key.clone(), found)).collect();
            if found.is_empty() {
                return;
            }
            read = self.told.len();
            lock::attend(&mut self.decider(), found);
        }
    }

    pub fn decider(&mut self) -> Decider<'_> {
        Decider {
            core: &mut self.core,
            ks: &mut self.ks,
            now: self.now,
            out: &mut self.told,
        }
    }

    /// Does what is due.
    pub fn run(&mut self, occasion: Occasion) {
        let server = Server {
            now: self.now.into(),
            gate: self.gate,
            misses_overwrites: self.misses_overwrites,
            piece_us: self.piece_us,
            notes: std::mem::take(&mut self.notes).into(),
        };
        lock::run(&mut self.decider(), &server, occasion);
        self.notes = server.notes.into_inner();
    }

    /// A request, for which the notes are heard before.
    pub fn step<T>(&mut self, act: impl FnOnce(&mut Decision<'_>) -> T) -> T {
        self.asks(|with| with.decide(act))
    }

    /// The same for one decision or none.
    pub fn asks<T>(&mut self, act: impl FnOnce(&mut Decider<'_>) -> T) -> T {
        self.run(Occasion::Command);
        act(&mut self.decider())
    }

    /// As CANCEL, which hands nothing on by itself.
    pub fn note<T>(&mut self, act: impl FnOnce(&mut Decision<'_>) -> T) -> T {
        self.asks(|with| with.note(act))
    }

    /// One that may have to wait.
    pub fn request(
        &mut self,
        act: impl FnOnce(&mut Decision<'_>) -> Result<Verdict, Refusal>,
    ) -> Result<Verdict, Refusal> {
        self.asks(|with| with.request(act))
    }

    // What came of it.

    /// The replies to waiters since somebody last asked for anything told.
    pub fn answers(&mut self) -> Vec<(WaiterId, Outcome)> {
        answers(&std::mem::take(&mut self.told))
    }

    /// The events since somebody last asked for anything told.
    pub fn events(&mut self) -> Vec<(Key, Event)> {
        events(&std::mem::take(&mut self.told))
    }

    /// The token of the owner's plain hold, where it is known, and for how many ms it
    /// has been held.
    pub fn known(&self, key: &Key, owner: &str) -> Option<(Token, i64)> {
        let owner = owner.as_bytes();
        let known = self.core.hold_of(self.now, key, owner, Mode::Exclusive);
        Some((known.token?, known.held_ms?))
    }

    /// Who holds the key `k`, how often, and until when, in ms from now.
    pub fn held(&mut self) -> Option<(String, i64, Option<i64>)> {
        self.held_on(&key(0, "k"))
    }

    pub fn held_on(&mut self, key: &Key) -> Option<(String, i64, Option<i64>)> {
        use crate::lock::Keyspace;
        let holder = self.ks.holders(key).pop()?;
        let left = self.ks.look(key, b"").expires;
        let owner = String::from_utf8(holder.owner.to_vec()).unwrap();
        let left = left.map(|at| at.since(self.now.wall_ms()));
        Some((owner, holder.holds, left))
    }
}

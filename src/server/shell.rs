//! The one mutable state of the module, and who may touch it when.
//!
//! The server runs all of our code on its main thread, but it may call back into
//! us while we call it: opening a key can expire it, and its notification runs in
//! the middle of our own command. So the state lies in cells of its own for each
//! purpose, none is borrowed for longer than one step, and callbacks that can
//! come at any time only record what they saw (`inbox`, `blocked`).

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, VecDeque};
use std::ptr;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::blocking::Blocked;
use super::ffi::Text;
use super::inbox::Inbox;
use super::pending::Pending;
use super::pulse::Pulse;
use super::timer::Timer;
use super::version::Server;
use crate::lock::{Bond, Core, Effect, Effects, Key, Listening, Now};

pub struct Shell {
    pub core: RefCell<Core>,
    pub inbox: RefCell<Inbox>,
    pub blocked: RefCell<Blocked>,
    pub timer: Timer,
    pub pending: Pending,
    pub pulse: Pulse,
    pub server: Server,
    /// Our own writes are under way, and the events they cause are known to us.
    pub writing: Cell<bool>,
    /// A look of the core's has found a key that had run out.
    pub expired_here: Cell<bool>,
    /// The database that the last key left by MOVE.
    pub moved_from: Cell<i32>,
    /// Key events are subscribed to, for good: from the first lock on.
    pub watching_keys: Cell<bool>,
    /// So are changes of hashes: from the first wait for a read/write lock on.
    pub watching_hashes: Cell<bool>,
    /// Overwritten keys are told of: while there is a watchdog hold.
    pub watching_overwrites: Cell<bool>,
    /// Somebody has used WATCHDOG since the module was loaded.
    pub watchdog_used: Cell<bool>,
    /// When watched keys were last looked at without being told to, monotonic us.
    pub checked_us: Cell<i64>,
    /// And which of them was the last.
    pub checked: RefCell<Option<(u64, Bond)>>,
    /// Client and event-loop events are subscribed to: while anybody waits or a hold
    /// belongs to a connection.
    pub watching_clients: Cell<bool>,
    /// A data set is loaded: what its keys tell of is history.
    pub loading: Cell<bool>,
    /// This server is a master. On a replica nothing comes of what happens to keys:
    /// once it is promoted, all of them are looked at.
    pub listening: Cell<bool>,
    /// No other module is loaded that could hear a key event.
    pub alone: Cell<bool>,
    /// A replica may be attached, or on its way.
    pub replicas: Cell<bool>,
    /// A command of ours is under way.
    pub in_command: Cell<bool>,
    /// Whether anybody keeps a record of writes, if that is known (`records`).
    pub records: Cell<Option<bool>>,
    /// The strings `0` and `1`, made once.
    pub zero: Text,
    pub one: Text,
    /// A list of effects to use again.
    pub spare: Cell<Effects>,
    /// Writes that changed nothing or were refused: nobody is told of them.
    pub unwritten: RefCell<VecDeque<Effect>>,
    /// What was found out about those who wait by subscription, for the core to know
    /// when the command under way is done.
    pub heard: RefCell<Vec<(Key, Listening)>>,
    /// Clients whose connection is to be closed.
    pub closing: RefCell<BTreeSet<u64>>,
    /// The event loop is known to come to its end of a turn before it sleeps.
    pub awake: Cell<bool>,
    /// The uuid of this load of the module, for the owner `*`.
    pub uuid: String,
    start: Instant,
}

/// The server calls modules on its main thread only.
struct MainThread<T>(T);

// SAFETY: everything in it is touched from callbacks of the server, which run on
// its main thread, one at a time.
unsafe impl<T> Sync for MainThread<T> {}

static SHELL: MainThread<Cell<*mut Shell>> = MainThread(Cell::new(ptr::null_mut()));

/// The module's state; `None` before it is loaded.
pub fn shell() -> Option<&'static Shell> {
    // SAFETY: null, or what `install` made and `uninstall` has not taken back.
    unsafe { SHELL.0.get().as_ref() }
}

/// Sets up a fresh state at load.
pub fn install(server: Server, replicas: bool) -> Option<&'static Shell> {
    let shell = Box::into_raw(Box::new(Shell {
        core: RefCell::new(Core::new()),
        inbox: RefCell::default(),
        blocked: RefCell::default(),
        timer: Timer::default(),
        pending: Pending::default(),
        pulse: Pulse::new(),
        server,
        writing: Cell::new(false),
        expired_here: Cell::new(false),
        moved_from: Cell::new(0),
        watching_keys: Cell::new(false),
        watching_hashes: Cell::new(false),
        watching_overwrites: Cell::new(false),
        watchdog_used: Cell::new(false),
        checked_us: Cell::new(0),
        checked: RefCell::default(),
        watching_clients: Cell::new(false),
        loading: Cell::new(false),
        listening: Cell::new(true),
        alone: Cell::new(false),
        replicas: Cell::new(replicas),
        in_command: Cell::new(false),
        records: Cell::new(None),
        zero: Text::new(b"0")?,
        one: Text::new(b"1")?,
        spare: Cell::default(),
        unwritten: RefCell::default(),
        heard: RefCell::default(),
        closing: RefCell::default(),
        awake: Cell::new(false),
        uuid: uuid::Uuid::new_v4().to_string(),
        start: Instant::now(),
    }));
    SHELL.0.set(shell);
    self::shell()
}

/// Gives the state back at unload. Nothing of ours runs from then on.
pub fn uninstall() {
    let shell = SHELL.0.replace(ptr::null_mut());
    if !shell.is_null() {
        // SAFETY: it was a box in `install`, and no callback that could hold it is
        // under way: the server unloads a module from a command of its own.
        drop(unsafe { Box::from_raw(shell) });
    }
}

impl Shell {
    /// Whether an event is news: not our own doing, and not history.
    pub fn listens(&self) -> bool {
        !self.writing.get() && !self.loading.get() && self.listening.get()
    }

    /// After a fault: nothing of ours is under way any more.
    pub fn recover(&self) {
        self.writing.set(false);
        self.in_command.set(false);
        self.timer.recover();
    }

    /// Reads both clocks, once for a request or a tick.
    pub fn now(&self) -> Now {
        Now {
            mono_us: i64::try_from(self.start.elapsed().as_micros()).unwrap_or(i64::MAX),
            ..self.now_by_wall()
        }
    }

    /// Reads the wall clock alone, for a request that neither waits nor finds
    /// anybody waiting: reading clocks is a good part of what it costs.
    pub fn now_by_wall(&self) -> Now {
        let wall = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Now {
            wall_us: i64::try_from(wall.as_micros()).unwrap_or(i64::MAX),
            mono_us: 0,
        }
    }
}

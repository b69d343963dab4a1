//! All who play: programs by the drivers, and beside them those who ask the server without a
//! client of ours.

use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use fastrand::Rng;

use crate::backend::{Backend, Servers};
use crate::book::Book;
use crate::driver::Driver;
use crate::library::Library;
use crate::options::Options;
use crate::player::Player;
use crate::raw::{Raw, Way};
use crate::redisson::{Redisson, Thread};

/// With each driver so many programs that use one session.
const PLAYERS: usize = 4;
/// And of these so many who hold for long.
const QUIET: usize = 3;
const REDISSON: usize = 3;
/// The history calls them by numbers behind those of the drivers, in this order.
pub const BESIDE: [&str; 3] = ["raw by functions", "raw by script", "redisson"];

pub struct Crowd<'a> {
    pub options: &'a Options,
    pub drivers: &'a [Arc<Driver>],
    pub server: u16,
    pub redisson: Option<&'a Redisson>,
    pub book: &'a Arc<Book>,
    pub stop: &'a Arc<AtomicBool>,
}

impl Crowd<'_> {
    pub fn play(&self, rng: &mut Rng) -> io::Result<Vec<JoinHandle<()>>> {
        let mut threads = Vec::new();
        for driver in self.drivers {
            for number in 0..PLAYERS + QUIET {
                let player = Player {
                    driver: Arc::clone(driver),
                    number,
                    quiet: number >= PLAYERS,
                    life: 0,
                    rng: rng.fork(),
                    stop: Arc::clone(self.stop),
                };
                threads.push(thread::spawn(|| player.play()));
            }
        }
        let beside = self.drivers.len() + 1;
        for (number, backend) in raws(self.options.servers).iter().enumerate() {
            let library = |by| Library::read(&self.options.root, by).map(Way::Library);
            let (driver, way) = match backend {
                Backend::Module => (0, Way::Commands),
                Backend::Functions => (beside, library(*backend)?),
                Backend::Script => (beside + 1, library(*backend)?),
            };
            let raw = Raw {
                number,
                driver,
                way,
                server: self.server,
                rng: rng.fork(),
                book: Arc::clone(self.book),
                stop: Arc::clone(self.stop),
            };
            threads.push(thread::spawn(|| raw.play()));
        }
        let lines = self.redisson.iter();
        for line in lines.flat_map(|redisson| (0..REDISSON).map(|number| redisson.line(number))) {
            let thread = Thread {
                line,
                driver: beside + 2,
                rng: rng.fork(),
                book: Arc::clone(self.book),
                stop: Arc::clone(self.stop),
            };
            threads.push(thread::spawn(|| thread.play()));
        }
        Ok(threads)
    }
}

/// By what those without a client ask. Where the module is the library is a front for it.
fn raws(servers: Servers) -> Vec<Backend> {
    match servers {
        Servers::WithModule => vec![
            Backend::Module,
            Backend::Module,
            Backend::Functions,
            Backend::Script,
        ],
        Servers::Plain(backend) => vec![backend; 3],
        Servers::Mixed => vec![
            Backend::Functions,
            Backend::Script,
            Backend::Functions,
            Backend::Script,
        ],
    }
}

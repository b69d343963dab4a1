//! What is done to the drivers, their wires and the server. What takes a while goes on while other
//! things are done, and is written down when it is over.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fastrand::Rng;
use rlock_torture::clock::now_us;
use rlock_torture::saw::{Fault, Left, Record};

use crate::book::Book;
use crate::driver::Driver;
use crate::library::Library;
use crate::locks;
use crate::proxy::Rule;
use crate::server::Server;

pub struct Faults {
    pub rng: Rng,
    pub server: Server,
    pub drivers: Vec<Arc<Driver>>,
    /// Where the server has no module.
    pub plain: Option<Library>,
    pub book: Arc<Book>,
    pub under_way: Vec<UnderWay>,
    /// Nothing more is done until then.
    pub calm_until: Instant,
}

/// Something that ends at a moment, by this.
pub struct UnderWay {
    due: Instant,
    end: End,
    fault: Fault,
}

#[derive(Clone, Copy, PartialEq)]
enum End {
    ContinueDriver(usize),
    ContinueServer,
    StartServer,
    Bury(usize),
    Nothing,
}

impl Faults {
    /// The next one, drawn.
    pub fn strike(&mut self) -> io::Result<()> {
        if Instant::now() < self.calm_until {
            return Ok(());
        }
        let at = self.rng.usize(0..self.drivers.len());
        let driver = Arc::clone(&self.drivers[at]);
        let proxy = &driver.proxy;
        // Longer than a lease at times.
        let most = if self.rng.u32(0..4) > 0 { 400 } else { 4500 };
        let long = self.rng.u64(20..most);
        let words = match self.plain {
            Some(_) => ["rlock1_acquire", "rlock1_release", "rlock1_renew"],
            None => ["RLOCK.ACQUIRE", "RLOCK.RELEASE", "RLOCK.RENEW"],
        };
        let word = words[[0, 0, 1, 2][self.rng.usize(0..4)]];
        let time = Duration::from_millis(long);
        match self.rng.u32(0..100) {
            0..14 => {
                let fault = self.now("cut", Some(at));
                proxy.cut(false);
                self.book.write(&Record::Fault(fault));
            }
            14..28 => proxy.rule(Rule::Cut(word)),
            28..35 => proxy.rule(Rule::Lose(word)),
            35..41 => {
                let fault = self.now("orphan", Some(at));
                proxy.cut(true);
                self.later(End::Bury(at), long, fault);
            }
            41..48 => {
                let fault = self.now("hold-back", Some(at));
                proxy.hold_back(time);
                self.later(End::Nothing, long, fault);
            }
            48..55 => {
                let fault = self.now("freeze", Some(at));
                proxy.freeze(time);
                self.later(End::Nothing, long, fault);
            }
            55..59 => proxy.dribble(time),
            59..65 => {
                let fault = self.now("refuse", Some(at));
                proxy.refuse(time);
                self.later(End::Nothing, long, fault);
            }
            65..75 => {
                // Mostly until some of its leases are over. At times nothing else happens, so that it can
                // be told what becomes of those who wait.
                let calm = driver.patience.is_some() && self.rng.u32(0..3) == 0;
                let least = if calm { 3000 } else { 20 };
                let ms = self.rng.u64(least..4500);
                if calm {
                    self.heal()?;
                    self.calm_until = Instant::now() + Duration::from_millis(ms);
                }
                self.stop_driver(at, ms);
            }
            75..78 => self.kill_driver(at)?,
            78..81 => self.kill_server(long / 4),
            81..85 => self.stop_server(long),
            85..88 => self.close_one()?,
            88..91 => self.forget_library()?,
            _ => self.throw_out()?,
        }
        Ok(())
    }

    fn now(&self, kind: &str, driver: Option<usize>) -> Fault {
        Fault {
            kind: kind.to_owned(),
            driver: driver.map(|at| self.drivers[at].number),
            key: None,
            begin: now_us(),
            end: 0,
        }
    }

    fn later(&mut self, end: End, ms: u64, mut fault: Fault) {
        let due = Instant::now() + Duration::from_millis(ms);
        fault.end = fault.begin + ms * 1000;
        self.under_way.push(UnderWay { due, end, fault });
    }

    fn is_under_way(&self, one: End) -> bool {
        self.under_way.iter().any(|other| other.end == one)
    }

    fn stop_driver(&mut self, at: usize, ms: u64) {
        let end = End::ContinueDriver(at);
        if !self.is_under_way(end) {
            let fault = self.now("stop-driver", Some(at));
            self.drivers[at].signal(libc::SIGSTOP);
            self.later(end, ms, fault);
        }
    }

    fn kill_driver(&mut self, at: usize) -> io::Result<()> {
        let mut fault = self.now("kill-driver", Some(at));
        // The next one is not to be taken for the one that was stopped.
        let stopped = End::ContinueDriver(at);
        let ends: Vec<UnderWay> = self.under_way.extract(|one| one.end == stopped);
        self.drivers[at].kill();
        for mut end in ends {
            end.end = End::Nothing;
            self.end(end)?;
        }
        if self.is_under_way(End::StartServer) || self.is_under_way(End::ContinueServer) {
            self.calm_server()?;
        }
        self.drivers[at].proxy.heal();
        self.drivers[at].start()?;
        fault.end = now_us();
        self.book.write(&Record::Fault(fault));
        Ok(())
    }

    fn kill_server(&mut self, ms: u64) {
        if self.is_under_way(End::StartServer) || self.is_under_way(End::ContinueServer) {
            return;
        }
        let fault = self.now("kill-server", None);
        self.server.kill();
        self.later(End::StartServer, ms, fault);
    }

    fn stop_server(&mut self, ms: u64) {
        if self.is_under_way(End::StartServer) || self.is_under_way(End::ContinueServer) {
            return;
        }
        let fault = self.now("stop-server", None);
        self.server.signal(libc::SIGSTOP);
        self.later(End::ContinueServer, ms, fault);
    }

    fn server_is_well(&self) -> bool {
        !self.is_under_way(End::StartServer) && !self.is_under_way(End::ContinueServer)
    }

    /// The server closes one of its connections.
    fn close_one(&mut self) -> io::Result<()> {
        if !self.server_is_well() {
            return Ok(());
        }
        let mut link = self.server.link()?;
        let list = link.must("CLIENT LIST")?;
        let list = list.text().unwrap_or_default().to_owned();
        let ids = list.lines().filter_map(|line| line.split(' ').next());
        let ids: Vec<&str> = ids.filter_map(|word| word.strip_prefix("id=")).collect();
        if let Some(id) = self.rng.choice(ids) {
            let mut fault = self.now("client-kill", None);
            link.say(&format!("CLIENT KILL ID {id} SKIPME yes"))?;
            fault.end = now_us();
            self.book.write(&Record::Fault(fault));
        }
        Ok(())
    }

    /// The server loses its functions and scripts. Who calls them has to load them once more.
    fn forget_library(&mut self) -> io::Result<()> {
        if !self.server_is_well() {
            return Ok(());
        }
        let mut link = self.server.link()?;
        let mut fault = self.now("forget-library", None);
        // Redis before 7.0 has no functions.
        link.say("FUNCTION FLUSH")?;
        link.must("SCRIPT FLUSH")?;
        fault.end = now_us();
        self.book.write(&Record::Fault(fault));
        Ok(())
    }

    /// Whoever holds the lock loses it.
    fn throw_out(&mut self) -> io::Result<()> {
        if !self.server_is_well() {
            return Ok(());
        }
        let mut link = self.server.link()?;
        let key = locks::forced(&mut self.rng);
        let forces = self.rng.bool();
        let mut fault = self.now("throw-out", None);
        let forced = match &mut self.plain {
            _ if !forces => link.must(&format!("DEL {key}")),
            Some(library) => library.must(&mut link, "rlock1_force", key),
            None => link.must(&format!("RLOCK.FORCE {key}")),
        };
        if let Err(error) = forced {
            // The judge is to say so, with what else there is to say.
            self.book.write(&Record::Left(Left {
                when: format!("somebody was to be thrown out, at {}", fault.begin),
                what: vec![error.to_string()],
                looked_at: 1,
            }));
            link.must(&format!("DEL {key}"))?;
        }
        fault.end = now_us();
        fault.key = Some(key.to_owned());
        self.book.write(&Record::Fault(fault));
        Ok(())
    }

    /// Ends what is due.
    pub fn tend(&mut self) -> io::Result<()> {
        let now = Instant::now();
        for one in self.under_way.extract(|one| one.due <= now) {
            self.end(one)?;
        }
        Ok(())
    }

    fn calm_server(&mut self) -> io::Result<()> {
        let of_server = |one: &UnderWay| [End::StartServer, End::ContinueServer].contains(&one.end);
        for one in self.under_way.extract(of_server) {
            self.end(one)?;
        }
        Ok(())
    }

    fn end(&mut self, mut one: UnderWay) -> io::Result<()> {
        match one.end {
            End::ContinueDriver(at) => {
                self.drivers[at].probe();
                self.drivers[at].signal(libc::SIGCONT);
            }
            End::ContinueServer => self.server.signal(libc::SIGCONT),
            End::StartServer => self.server.launch()?,
            End::Bury(at) => self.drivers[at].proxy.bury(),
            End::Nothing => (),
        }
        one.fault.end = match one.end {
            // The proxy ends it on time, however late that is written down.
            End::Nothing => now_us().min(one.fault.end),
            _ => now_us(),
        };
        self.book.write(&Record::Fault(one.fault));
        Ok(())
    }

    /// All goes on as it should.
    pub fn heal(&mut self) -> io::Result<()> {
        for driver in &self.drivers {
            driver.proxy.heal();
        }
        for one in self.under_way.extract(|_| true) {
            self.end(one)?;
        }
        Ok(())
    }
}

trait Extract<T> {
    fn extract(&mut self, which: impl Fn(&T) -> bool) -> Vec<T>;
}

impl<T> Extract<T> for Vec<T> {
    fn extract(&mut self, which: impl Fn(&T) -> bool) -> Vec<T> {
        let (taken, left) = self.drain(..).partition(which);
        *self = left;
        taken
    }
}

//! The master is replaced by Sentinel: it dies, stands still, is cut off, or is to go. The
//! clients learn of it one process after the other, so that some of them go on asking the
//! old one.

use std::fmt;
use std::io::{self, Error};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rlock_torture::clock::now_us;
use rlock_torture::history::{Fault, Record};

use crate::sentinel::{in_step, role, Watch};
use crate::world::{eventually, World};

/// A Sentinel that a busy machine kept back for some seconds does nothing for 30 s more (tilt).
const FAILOVER: Duration = Duration::from_secs(120);
const ASKED_AGAIN: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    Kill,
    Stop,
    /// Clients reach the old master, replicas and sentinels do not.
    Partition,
    Failover,
}

impl fmt::Display for Switch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kill => "sentinel-kill",
            Self::Stop => "sentinel-stop",
            Self::Partition => "sentinel-partition",
            Self::Failover => "sentinel-failover",
        })
    }
}

impl World {
    fn watch(&self) -> io::Result<&Watch> {
        let none = || Error::other("nobody watches");
        self.watch.as_ref().ok_or_else(none)
    }

    /// `gap` ms between two client processes that learn of it. An old master that lives is
    /// told by hand if Sentinel has not told it `patience` ms later.
    pub fn switch(&mut self, how: Switch, gap: u64, patience: u64) -> io::Result<()> {
        self.follow()?;
        if self.crashed()? {
            return Ok(());
        }
        let fault = self.fault(&how.to_string());
        let old = self.master;
        match how {
            Switch::Kill => {
                let run = self.servers[old].end();
                self.to.write(&Record::Run(run))?;
            }
            Switch::Stop => self.servers[old].signal(libc::SIGSTOP),
            Switch::Partition => self.watch()?.wires[old].cut(),
            Switch::Failover => {
                let watch = self.watch()?;
                eventually("Sentinel replaces it", FAILOVER, || watch.failover())?;
            }
        }
        let new = self.replaced(how, old)?;
        self.make_known(new, gap)?;
        self.bring_back(how, old)?;
        self.come_together(fault, patience)
    }

    /// Waits until another one is master. Sentinel gives up a failover that takes too long, and
    /// is asked for it again then.
    fn replaced(&self, how: Switch, old: usize) -> io::Result<usize> {
        let watch = self.watch()?;
        let mut new = old;
        let mut again = Instant::now() + ASKED_AGAIN;
        eventually("there is a new master", FAILOVER, || {
            new = watch.master()?;
            if new == old && how == Switch::Failover && Instant::now() > again {
                again = Instant::now() + ASKED_AGAIN;
                watch.failover()?;
            }
            Ok(new != old && role(&self.servers[new])? == "master")
        })?;
        Ok(new)
    }

    fn make_known(&mut self, new: usize, gap: u64) -> io::Result<()> {
        self.master = new;
        self.switched = true;
        let line = format!("master {}", self.servers[new].port);
        for client in &mut self.clients {
            client.tell(&line)?;
            sleep(Duration::from_millis(gap));
        }
        Ok(())
    }

    fn bring_back(&mut self, how: Switch, old: usize) -> io::Result<()> {
        let line = self.watch()?.replicaof(self.master);
        match how {
            Switch::Kill => {
                // As who starts it anew would: it is no master any more.
                let port = line.rsplit(' ').next().unwrap_or_default();
                let as_replica = ["--replicaof", "127.0.0.1", port].map(str::to_owned);
                let server = &mut self.servers[old];
                let before = server.options.len();
                server.options.extend(as_replica);
                let launched = server.launch();
                server.options.truncate(before);
                launched
            }
            Switch::Stop => {
                self.servers[old].signal(libc::SIGCONT);
                Ok(())
            }
            Switch::Partition => {
                self.watch()?.wires[old].heal();
                Ok(())
            }
            Switch::Failover => Ok(()),
        }
    }

    /// Waits until all others follow the master.
    fn come_together(&mut self, fault: Fault, patience: u64) -> io::Result<()> {
        let line = self.watch()?.replicaof(self.master);
        let by_hand = Instant::now() + Duration::from_millis(patience);
        for at in self.others() {
            let server = &self.servers[at];
            eventually("it is a replica", FAILOVER, || {
                let is = role(server)? == "slave";
                if !is && Instant::now() > by_hand {
                    server.link()?.must(&line)?;
                }
                Ok(is)
            })?;
            in_step(server)?;
        }
        self.checked = now_us();
        self.done(fault)
    }

    /// All servers but the master.
    pub fn others(&self) -> Vec<usize> {
        let all = 0..self.servers.len();
        all.filter(|at| *at != self.master).collect()
    }

    /// Sentinel may have replaced a master that was too slow, though nobody told it to.
    pub fn follow(&mut self) -> io::Result<()> {
        if self.watch.is_none() || self.crashed()? {
            return Ok(());
        }
        let mut now = self.master;
        eventually("a sentinel answers", FAILOVER, || {
            now = self.watch()?.master()?;
            Ok(true)
        })?;
        if now == self.master {
            self.checked = now_us();
            return Ok(());
        }
        let mut fault = self.fault("sentinel-by-itself");
        fault.begin = self.checked;
        self.make_known(now, 0)?;
        self.come_together(fault, 3_000)
    }
}

//! A disk that is full for a while. A server that writes before it replies ends with its
//! first write, and is started again when there is room; one that writes once a second
//! refuses what would write.

use std::io;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rlock_torture::history::Record;

use crate::plan::Topology;
use crate::world::{eventually, named, World};

/// For a server to notice, also where hardly anybody writes.
const NOTICED: Duration = Duration::from_secs(3);
const RECOVERED: Duration = Duration::from_secs(20);

impl World {
    pub fn fill_disk(&mut self, at: usize, time: u64, everysec: bool) -> io::Result<()> {
        let writable = self.writable();
        let at = writable[at % writable.len()];
        // One that was a replica has rewritten its AOF, which a full disk spoils then.
        if self.servers[at].disk.is_none() || self.switched || self.crashed()? {
            return Ok(());
        }
        match everysec {
            true => self.refuses(at, time),
            false => self.exits(at, time),
        }
    }

    fn disk(&self, at: usize, full: bool) -> io::Result<()> {
        match (&self.servers[at].disk, full) {
            (Some(disk), true) => disk.fill(),
            (Some(disk), false) => disk.free(),
            _ => Ok(()),
        }
    }

    fn refuses(&mut self, at: usize, time: u64) -> io::Result<()> {
        let mut fault = self.fault("disk-full");
        fault.server = self.servers[at].port;
        let mut link = named(self.servers[at].link()?)?;
        link.must("CONFIG SET appendfsync everysec")?;
        self.disk(at, true)?;
        let mut status = |wanted: &str, bound| {
            eventually("the disk is noticed", bound, || {
                let now = link.info_field("persistence", "aof_last_write_status")?;
                Ok(now.as_deref() == Some(wanted))
            })
        };
        if status("err", NOTICED).is_err() {
            fault.note = "nobody wrote".to_owned();
        }
        sleep(Duration::from_millis(time));
        self.disk(at, false)?;
        status("ok", RECOVERED)?;
        link.must("CONFIG SET appendfsync always")?;
        self.done(fault)
    }

    fn exits(&mut self, at: usize, time: u64) -> io::Result<()> {
        let mut fault = self.fault("disk-exit");
        fault.server = self.servers[at].port;
        self.disk(at, true)?;
        let end = Instant::now() + NOTICED;
        while !self.servers[at].is_gone() && Instant::now() < end {
            sleep(Duration::from_millis(2));
        }
        if !self.servers[at].is_gone() {
            self.disk(at, false)?;
            fault.kind = "disk-full".to_owned();
            fault.note = "nobody wrote".to_owned();
            return self.done(fault);
        }
        if !self.servers[at].log().contains("AOF write error") {
            // It ended for another reason.
            return self.crashed().map(drop);
        }
        let run = self.servers[at].end();
        self.to.write(&Record::Run(run))?;
        sleep(Duration::from_millis(time));
        self.disk(at, false)?;
        self.servers[at].launch()?;
        if self.plan.topology == Topology::Cluster {
            let mut link = self.servers[at].link()?;
            eventually("the node is back", RECOVERED, || {
                let info = link.must("CLUSTER INFO")?;
                Ok(info.text().unwrap_or_default().contains("cluster_state:ok"))
            })?;
        }
        self.done(fault)
    }
}

//! Two connections with sessions that ask in turn, and the control that looks.

use std::io::{self, ErrorKind};
use std::time::Duration;

use super::snapshot::{self, Snapshot};
use crate::args;
use crate::draw::{Args, SESSION};
use crate::figures::shown;
use crate::link::Link;
use crate::resp::Value;

/// Who takes longer is a blocked waiter, and is left alone.
const PATIENCE: Duration = Duration::from_millis(300);

/// A command of one of the connections.
#[derive(Clone)]
pub struct Step {
    pub by: usize,
    pub args: Args,
}

impl Step {
    pub fn told(&self) -> String {
        format!("  {}> {}", self.by, shown(&self.args))
    }
}

pub struct World {
    pub control: Link,
    pub links: Vec<Link>,
    ids: Vec<i64>,
    /// What there was, if nothing has happened since.
    pub seen: Option<Snapshot>,
}

impl World {
    /// Empty databases, and nobody who holds or waits.
    pub fn new(port: u16) -> io::Result<Self> {
        let mut control = Link::open(port)?;
        for line in [
            "HELLO 3",
            "CONFIG SET rlock.redisson-yield 0",
            "CONFIG SET rlock.watchdog-lost keep",
        ] {
            control.must(line)?;
        }
        until_all_are_closed(&mut control)?;
        control.must("FLUSHALL")?;
        until_all_are_over(&mut control, "rlock_held")?;
        let mut world = Self {
            control,
            links: Vec::new(),
            ids: Vec::new(),
            seen: None,
        };
        for number in 0..2 {
            let mut link = Link::open(port)?;
            link.must("HELLO 3")?;
            link.must(&format!("SUBSCRIBE {}", channel(number)))?;
            world.ids.push(link.must("CLIENT ID")?.int().unwrap_or(0));
            link.set_patience(PATIENCE)?;
            world.links.push(link);
        }
        Ok(world)
    }

    /// Carries out a step; `None`: its connection was closed.
    pub fn take(&mut self, step: &Step) -> io::Result<Option<Value>> {
        self.seen = None;
        let link = &mut self.links[step.by];
        if link.send(&step.args).is_err() {
            return Ok(None);
        }
        for _ in 0..40 {
            match link.reply() {
                Ok(reply) => return Ok(Some(reply)),
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    let id = self.ids[step.by].to_string();
                    self.control.ask(&["CLIENT", "UNBLOCK", &id])?;
                }
                Err(_) => return Ok(None),
            }
        }
        Err(io::Error::other(format!(
            "no answer to {}",
            shown(&step.args)
        )))
    }

    /// What is due on keys has happened: each is looked at by a request that asks for nothing.
    pub fn settle(&mut self) -> io::Result<()> {
        for db in ["0", "1"] {
            let names = snapshot::names(&mut self.control, db)?;
            let asked: Vec<Args> = names
                .iter()
                .map(|key| args!["RLOCK.RELEASE", key, "nobody", "IFHELD"])
                .collect();
            self.control.ask_all(&asked)?;
        }
        Ok(())
    }

    /// What there is, once it does not change by itself.
    pub fn at_rest(&mut self) -> io::Result<Snapshot> {
        let mut last = snapshot::of_all(&mut self.control)?;
        for _ in 0..20 {
            let now = snapshot::of_all(&mut self.control)?;
            if now == last {
                break;
            }
            last = now;
        }
        Ok(last)
    }
}

pub fn channel(number: usize) -> String {
    format!("{SESSION}{number}")
}

/// Waits and watched holds of those who left are over.
pub fn until_all_are_closed(control: &mut Link) -> io::Result<()> {
    until_all_are_over(control, "rlock_waiting")?;
    until_all_are_over(control, "rlock_watchdog_holds")
}

fn until_all_are_over(control: &mut Link, name: &str) -> io::Result<()> {
    for _ in 0..5000 {
        if crate::rest::gauge(control, "rlock", name)? == 0 {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Err(io::Error::other(format!(
        "nobody is left, and {name} is not 0"
    )))
}

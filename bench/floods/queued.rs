//! Waits by QUEUE of one connection.

use std::net::Shutdown;
use std::thread;
use std::time::Duration;

use super::{ours, until_in, LONG};
use crate::held;
use crate::load::{Connection, Outcome, Server, Session};
use crate::options::Options;
use crate::waits::{beside, Waits};

/// Requests of which each waits for as long.
const BATCH: usize = 500;

/// All for one lock.
pub mod one {
    use super::*;

    pub fn time_out(options: &Options, count: usize) -> Outcome<Waits> {
        super::time_out(options, count, |_| 0)
    }

    pub fn demoted(options: &Options, count: usize) -> Outcome<Waits> {
        super::demoted(options, count, |_| 0)
    }
}

/// Each for a lock of its own.
pub mod many {
    use super::*;

    pub fn time_out(options: &Options, count: usize) -> Outcome<Waits> {
        super::time_out(options, count, |number| number)
    }

    pub fn demoted(options: &Options, count: usize) -> Outcome<Waits> {
        super::demoted(options, count, |number| number)
    }

    /// All locks go, and each to who waits for it.
    pub fn flushed(options: &Options, count: usize) -> Outcome<Waits> {
        let server = ours(options)?;
        let mut control = server.connect()?;
        let session = wait(&server, count, |number| number, || 0)?;
        listening(session, || {
            beside(&server, || {
                control.call(&["FLUSHALL"])?;
                until_none(&mut control)
            })
        })
    }
}

/// So many waits, each for the lock with this number, for so many ms.
fn wait(
    server: &Server,
    count: usize,
    lock: fn(usize) -> usize,
    ms: impl Fn() -> i64,
) -> Outcome<Session> {
    held::hold(&mut server.connect()?, lock(count - 1) + 1)?;
    let mut session = Session::on(server.connect()?)?;
    for from in (0..count).step_by(BATCH) {
        let ms = ms().to_string();
        let wait = |number| {
            let (key, owner) = (held::name(lock(number)), format!("waiter:{number}"));
            session.wait(&key, &owner, [LONG, &ms], number)
        };
        let waits: Vec<Vec<u8>> = (from..count.min(from + BATCH)).map(wait).collect();
        session.queue(&waits)?;
    }
    Ok(session)
}

/// Does this while the session reads what it is told.
fn listening(session: Session, work: impl FnOnce() -> Outcome<Waits>) -> Outcome<Waits> {
    let mut connection = session.connection;
    let close = connection.closer()?;
    thread::scope(|scope| {
        scope.spawn(move || while connection.reply().is_ok() {});
        let waits = work();
        close.shutdown(Shutdown::Both)?;
        waits
    })
}

fn until_none(control: &mut Connection) -> Outcome<()> {
    while control.info_number("rlock", "rlock_waiting")? > 0.0 {
        thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

fn time_out(options: &Options, count: usize, lock: fn(usize) -> usize) -> Outcome<Waits> {
    let server = ours(options)?;
    // They are queued sooner than this.
    let left = until_in(2_000 + count as i64 / 10);
    let session = wait(&server, count, lock, left)?;
    let mut control = server.connect()?;
    listening(session, || beside(&server, || until_none(&mut control)))
}

fn demoted(options: &Options, count: usize, lock: fn(usize) -> usize) -> Outcome<Waits> {
    let server = ours(options)?;
    let session = wait(&server, count, lock, || 0)?;
    let mut control = server.connect()?;
    listening(session, || {
        beside(&server, || {
            // Nobody is there.
            control.call(&["REPLICAOF", "127.0.0.1", "1"])?;
            until_none(&mut control)
        })
    })
}

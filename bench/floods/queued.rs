//! Queued waiters of one connection.

use std::net::Shutdown;
use std::ops::Range;
use std::thread;
use std::time::Duration;

use super::{ours, until_in, LONG};
use crate::held;
use crate::load::{Connection, Outcome, Server, Session};
use crate::options::Options;
use crate::waits::{beside, Waits};

/// Requests of which each waits for as long.
const BATCH: usize = 500;

/// The locks of each request, by its number.
type Locks = fn(usize) -> Range<usize>;

/// All for one lock.
pub mod one {
    use super::*;

    const ONE: Locks = |_| 0..1;

    pub fn time_out(options: &Options, count: usize) -> Outcome<Waits> {
        super::time_out(options, count, ONE)
    }

    pub fn demoted(options: &Options, count: usize) -> Outcome<Waits> {
        super::demoted(options, count, ONE)
    }
}

/// Each for all of the same 1,024 locks, as many as a request may have.
pub mod several {
    use super::*;

    const ALL: Locks = |_| 0..1024;

    pub fn time_out(options: &Options, count: usize) -> Outcome<Waits> {
        super::time_out(options, count, ALL)
    }

    pub fn demoted(options: &Options, count: usize) -> Outcome<Waits> {
        super::demoted(options, count, ALL)
    }

    pub fn close(options: &Options, count: usize) -> Outcome<Waits> {
        let server = ours(options)?;
        let session = wait(&server, count, ALL, || 0)?;
        let mut control = server.connect()?;
        beside(&server, || {
            drop(session);
            until_none(&mut control)
        })
    }
}

/// Each for a lock of its own.
pub mod many {
    use super::*;

    const OWN: Locks = |number| number..number + 1;

    pub fn time_out(options: &Options, count: usize) -> Outcome<Waits> {
        super::time_out(options, count, OWN)
    }

    pub fn demoted(options: &Options, count: usize) -> Outcome<Waits> {
        super::demoted(options, count, OWN)
    }

    /// All locks go, and each to who waits for it.
    pub fn flushed(options: &Options, count: usize) -> Outcome<Waits> {
        let server = ours(options)?;
        let mut control = server.connect()?;
        let session = wait(&server, count, OWN, || 0)?;
        listening(session, || {
            beside(&server, || {
                control.call(&["FLUSHALL"])?;
                until_none(&mut control)
            })
        })
    }
}

/// So many waits, each for the locks with these numbers, for so many ms.
fn wait(server: &Server, count: usize, locks: Locks, ms: impl Fn() -> i64) -> Outcome<Session> {
    held::hold(&mut server.connect()?, locks(count - 1).end)?;
    let mut session = Session::on(server.connect()?)?;
    for from in (0..count).step_by(BATCH) {
        let ms = ms().to_string();
        let wait = |number| {
            let keys: Vec<String> = locks(number).map(held::name).collect();
            let owner = format!("waiter:{number}");
            match &keys[..] {
                [key] => session.wait(key, &owner, [LONG, &ms], number),
                keys => session.wait_for_all(keys, &owner, [LONG, &ms], number),
            }
        };
        let waits: Vec<Vec<u8>> = (from..count.min(from + BATCH)).map(wait).collect();
        session.queue(&waits)?;
    }
    Ok(session)
}

/// Does this while the session reads its messages.
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

fn time_out(options: &Options, count: usize, locks: Locks) -> Outcome<Waits> {
    let server = ours(options)?;
    // They are queued sooner than this.
    let keys = count * locks(0).len();
    let left = until_in(2_000 + (count / 10 + keys / 100) as i64);
    let session = wait(&server, count, locks, left)?;
    let mut control = server.connect()?;
    listening(session, || beside(&server, || until_none(&mut control)))
}

fn demoted(options: &Options, count: usize, locks: Locks) -> Outcome<Waits> {
    let server = ours(options)?;
    let session = wait(&server, count, locks, || 0)?;
    let mut control = server.connect()?;
    listening(session, || {
        beside(&server, || {
            // Nobody is there.
            control.call(&["REPLICAOF", "127.0.0.1", "1"])?;
            until_none(&mut control)
        })
    })
}

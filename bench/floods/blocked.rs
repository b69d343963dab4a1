//! Connections of blocked waiters.

use super::{ours, until_in, LONG};
use crate::held;
use crate::load::{command, Connection, Outcome, Server};
use crate::options::Options;
use crate::stalls::{blocked, outstanding, until_blocked};
use crate::waits::{beside, Waits};

/// All on one lock.
pub mod one {
    use super::*;

    pub fn time_out(options: &Options, count: usize) -> Outcome<Waits> {
        super::time_out(options, count, |_| 0)
    }

    pub fn close(options: &Options, count: usize) -> Outcome<Waits> {
        super::close(options, count, |_| 0)
    }

    pub fn demoted(options: &Options, count: usize) -> Outcome<Waits> {
        super::demoted(options, count, |_| 0)
    }
}

/// Each on a lock of its own.
pub mod many {
    use super::*;

    pub fn time_out(options: &Options, count: usize) -> Outcome<Waits> {
        super::time_out(options, count, |number| number)
    }

    pub fn close(options: &Options, count: usize) -> Outcome<Waits> {
        super::close(options, count, |number| number)
    }

    pub fn demoted(options: &Options, count: usize) -> Outcome<Waits> {
        super::demoted(options, count, |number| number)
    }

    /// All locks go, and each to who waits for it.
    pub fn flushed(options: &Options, count: usize) -> Outcome<Waits> {
        let server = ours(options)?;
        let mut control = server.connect()?;
        let _clients = wait(&server, count, |number| number, || 0)?;
        beside(&server, || {
            control.call(&["FLUSHALL"])?;
            until_none(&mut control)
        })
    }
}

/// So many who wait, each for the lock with this number, for so many ms.
fn wait(
    server: &Server,
    count: usize,
    lock: fn(usize) -> usize,
    ms: impl Fn() -> i64,
) -> Outcome<Vec<Connection>> {
    let mut control = server.connect()?;
    held::hold(&mut control, lock(count - 1) + 1)?;
    let mut clients = Vec::with_capacity(count);
    for number in 0..count {
        let (key, owner) = (held::name(lock(number)), format!("waiter:{number}"));
        let ms = ms().to_string();
        let request = command(&["RLOCK.ACQUIRE", &key, &owner, LONG, "BLOCK", &ms]);
        clients.extend(outstanding(server, 1, |_| request.clone())?);
    }
    until_blocked(&mut control, count)?;
    Ok(clients)
}

fn until_none(control: &mut Connection) -> Outcome<()> {
    while blocked(control)? > 0 {}
    Ok(())
}

fn time_out(options: &Options, count: usize, lock: fn(usize) -> usize) -> Outcome<Waits> {
    let server = ours(options)?;
    // They take a while to connect.
    let left = until_in(2_000 + count as i64 / 2);
    let _clients = wait(&server, count, lock, left)?;
    let mut control = server.connect()?;
    beside(&server, || until_none(&mut control))
}

fn close(options: &Options, count: usize, lock: fn(usize) -> usize) -> Outcome<Waits> {
    let server = ours(options)?;
    let clients = wait(&server, count, lock, || 0)?;
    let mut control = server.connect()?;
    beside(&server, || {
        drop(clients);
        until_none(&mut control)
    })
}

fn demoted(options: &Options, count: usize, lock: fn(usize) -> usize) -> Outcome<Waits> {
    let server = ours(options)?;
    let _clients = wait(&server, count, lock, || 0)?;
    let mut control = server.connect()?;
    beside(&server, || {
        // Nobody is there.
        control.call(&["REPLICAOF", "127.0.0.1", "1"])?;
        until_none(&mut control)
    })
}

//! The like of each flood on a server without the module.

use std::thread;
use std::time::Duration;

use super::held::{ends_in, hashes, in_batches, until_empty};
use super::{now_ms, until_in};
use crate::held;
use crate::load::{command, Connection, Outcome, Server};
use crate::options::Options;
use crate::stalls::{blocked, outstanding, until_blocked};
use crate::waits::{beside, Waits};

/// How long a server at rest is looked at.
const REST: Duration = Duration::from_secs(1);

fn start(options: &Options) -> Outcome<Server> {
    Server::start(&options.server, None)
}

/// So many who wait for as many lists, for so many ms.
fn wait(server: &Server, count: usize, ms: impl Fn() -> i64) -> Outcome<Vec<Connection>> {
    let wait = |number| {
        let seconds = ms() as f64 / 1000.0;
        command(&["BLPOP", &held::name(number), &seconds.to_string()])
    };
    let clients = outstanding(server, count, wait)?;
    until_blocked(&mut server.connect()?, count)?;
    Ok(clients)
}

fn until_none(control: &mut Connection) -> Outcome<()> {
    while blocked(control)? > 0 {}
    Ok(())
}

pub fn time_out(options: &Options, count: usize) -> Outcome<Waits> {
    let server = start(options)?;
    let _clients = wait(&server, count, until_in(2_000 + count as i64 / 2))?;
    let mut control = server.connect()?;
    beside(&server, || until_none(&mut control))
}

pub fn close(options: &Options, count: usize) -> Outcome<Waits> {
    let server = start(options)?;
    let clients = wait(&server, count, || 0)?;
    let mut control = server.connect()?;
    beside(&server, || {
        drop(clients);
        until_none(&mut control)
    })
}

pub fn demoted(options: &Options, count: usize) -> Outcome<Waits> {
    let server = start(options)?;
    let _clients = wait(&server, count, || 0)?;
    let mut control = server.connect()?;
    beside(&server, || {
        control.call(&["REPLICAOF", "127.0.0.1", "1"])?;
        until_none(&mut control)
    })
}

pub fn served(options: &Options, count: usize) -> Outcome<Waits> {
    let server = start(options)?;
    let _clients = wait(&server, count, || 0)?;
    let mut control = server.connect()?;
    beside(&server, || {
        control.call(&["MULTI"])?;
        for number in 0..count {
            control.call(&["LPUSH", &held::name(number), "1"])?;
        }
        control.send(&command(&["EXEC"]))?;
        until_none(&mut server.connect()?)
    })
}

pub fn rest(options: &Options, _: usize) -> Outcome<Waits> {
    let server = start(options)?;
    beside(&server, || {
        thread::sleep(REST);
        Ok(())
    })
}

pub fn demoted_hashes(options: &Options, count: usize) -> Outcome<Waits> {
    let server = start(options)?;
    hashes(&server, count)?;
    let mut control = server.connect()?;
    beside(&server, || {
        control.call(&["REPLICAOF", "127.0.0.1", "1"])?;
        thread::sleep(REST);
        Ok(())
    })
}

/// One hash of so many fields that expires.
pub fn hash_ends(options: &Options, count: usize) -> Outcome<Waits> {
    let server = start(options)?;
    let mut control = server.connect()?;
    in_batches(&mut control, count, |number| {
        command(&["HSET", "permits", &format!("holder:{number}"), "1"])
    })?;
    control.call(&["PEXPIRE", "permits", "1000"])?;
    beside(&server, || until_empty(&mut server.connect()?))
}

pub fn flush(options: &Options, count: usize) -> Outcome<Waits> {
    let server = start(options)?;
    hashes(&server, count)?;
    let mut control = server.connect()?;
    beside(&server, || control.call(&["FLUSHALL"]).map(drop))
}

pub fn swap(options: &Options, count: usize) -> Outcome<Waits> {
    let server = start(options)?;
    hashes(&server, count)?;
    let mut control = server.connect()?;
    beside(&server, || control.call(&["SWAPDB", "0", "1"]).map(drop))
}

pub fn end_at_random(options: &Options, count: usize) -> Outcome<Waits> {
    let server = start(options)?;
    hashes(&server, count)?;
    let mut control = server.connect()?;
    let from = now_ms() + 15 * count as i64 / 1_000;
    in_batches(&mut control, count, |number| {
        let at = (from + ends_in(number)).to_string();
        command(&["PEXPIREAT", &held::name(number), &at])
    })?;
    beside(&server, || until_empty(&mut control))
}

//! Very many locks that are held.

use std::thread;
use std::time::Duration;

use super::{now_ms, ours, until_in, LONG};
use crate::held;
use crate::load::{command, Connection, Expect, Load, Outcome, Server, Session};
use crate::options::Options;
use crate::waits::{beside, Waits};

/// All end within this, ms.
const WITHIN: i64 = 20_000;

/// So many at a time.
const BATCH: usize = 50_000;

/// When something ends, a multiple of a prime apart, so that it looks like at random.
pub fn ends_in(number: usize) -> i64 {
    (number as i64).wrapping_mul(7_919).rem_euclid(WITHIN)
}

pub fn end_at_random(options: &Options, count: usize) -> Outcome<Waits> {
    let server = ours(options)?;
    let mut control = server.connect()?;
    held::hold(&mut control, count)?;
    let from = now_ms() + 15 * count as i64 / 1_000;
    let end = |number| {
        let at = (from + ends_in(number)).to_string();
        command(&["PEXPIREAT", &held::name(number), &at])
    };
    in_batches(&mut control, count, end)?;
    beside(&server, || until_empty(&mut control))
}

pub fn flush(options: &Options, count: usize) -> Outcome<Waits> {
    let server = ours(options)?;
    let mut control = server.connect()?;
    held::hold(&mut control, count)?;
    beside(&server, || {
        control.call(&["FLUSHALL"])?;
        until_none_held(&mut control)
    })
}

pub fn swap(options: &Options, count: usize) -> Outcome<Waits> {
    let server = ours(options)?;
    let mut control = server.connect()?;
    held::hold(&mut control, count)?;
    let last = held::name(count - 1);
    beside(&server, || {
        control.call(&["SWAPDB", "0", "1"])?;
        control.call(&["SELECT", "1"])?;
        control.call(&["RLOCK.RELEASE", &last, "holder"])?;
        thread::sleep(Duration::from_secs(2));
        Ok(())
    })
}

/// Who holds each is notified of its loss.
pub fn flush_notified(options: &Options, count: usize) -> Outcome<Waits> {
    let server = ours(options)?;
    let mut control = server.connect()?;
    let session = Session::on(server.connect()?)?;
    let channel = session.channel().to_owned();
    let mut connection = session.connection;
    in_batches(&mut connection, count, |number| {
        let (key, tag) = (held::name(number), number.to_string());
        command(&[
            "RLOCK.ACQUIRE",
            &key,
            "holder",
            LONG,
            "NOTIFY",
            &channel,
            &tag,
        ])
    })?;
    let close = connection.closer()?;
    thread::scope(|scope| {
        scope.spawn(move || while connection.reply().is_ok() {});
        let waits = beside(&server, || {
            control.call(&["FLUSHALL"])?;
            until_none_held(&mut control)
        });
        close.shutdown(std::net::Shutdown::Both)?;
        waits
    })
}

pub fn close(options: &Options, count: usize) -> Outcome<Waits> {
    let server = ours(options)?;
    let mut control = server.connect()?;
    let mut holder = server.connect()?;
    in_batches(&mut holder, count, |number| {
        let key = held::name(number);
        command(&["RLOCK.ACQUIRE", &key, "holder", LONG, "WATCHDOG"])
    })?;
    beside(&server, || {
        drop(holder);
        until_empty(&mut control)
    })
}

/// One lock that very many hold.
pub fn permits_end(options: &Options, count: usize) -> Outcome<Waits> {
    let server = ours(options)?;
    let mut control = server.connect()?;
    let left = until_in(3_000 + 20 * count as i64 / 1_000);
    let limit = count.to_string();
    in_batches(&mut control, count, |number| {
        let (owner, lease) = (format!("holder:{number}"), left().to_string());
        command(&["RLOCK.ACQUIRE", "permits", &owner, &lease, "LIMIT", &limit])
    })?;
    beside(&server, || until_empty(&mut control))
}

/// Sends such commands, each with a number for its reply.
pub fn in_batches(
    connection: &mut Connection,
    count: usize,
    request: impl Fn(usize) -> Vec<u8>,
) -> Outcome<()> {
    for from in (0..count).step_by(BATCH) {
        let requests: Vec<Vec<u8>> = (from..count.min(from + BATCH)).map(&request).collect();
        Load::new(64, &requests, &[Expect::Integer]).run_once(connection)?;
    }
    Ok(())
}

pub fn until_empty(control: &mut Connection) -> Outcome<()> {
    while control.call(&["DBSIZE"])? != b":0\r\n" {
        thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

fn until_none_held(control: &mut Connection) -> Outcome<()> {
    while control.info_number("rlock", "rlock_held")? > 0.0 {
        thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

/// A server with so many hashes.
pub fn hashes(server: &Server, count: usize) -> Outcome<()> {
    held::hashes(&mut server.connect()?, count)
}

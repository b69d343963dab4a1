//! Long pieces of work with the module: the longest PING beside each, in ms.

use super::{beside, blocked, like_a_lease_key, outstanding, pipeline, until_blocked};
use crate::held;
use crate::load::{command, Expect, Load, Outcome, Server};
use crate::options::Options;

/// Long enough for everything here.
pub const LEASE: &str = "600000";

fn start(options: &Options) -> Outcome<Server> {
    Server::start(&options.server, options.module.as_deref())
}

fn waits(key: &str, owner: &str, mode: &[&str]) -> Vec<u8> {
    let wait = ["RLOCK.ACQUIRE", key, owner, LEASE, "BLOCK", "0"];
    command(&[&wait[..], mode].concat())
}

/// One owner waits for n locks, and gets one of them.
pub fn one_owner(options: &Options, count: usize) -> Outcome<f64> {
    let server = start(options)?;
    let mut control = server.connect()?;
    held::hold(&mut control, count)?;
    let wait = |number| waits(&held::name(number), "process", &[]);
    let _clients = outstanding(&server, count, wait)?;
    until_blocked(&mut control, count)?;
    let release = ["RLOCK.RELEASE", &held::name(count / 2), "holder"];
    beside(
        &server,
        |control| control.call(&release).map(drop),
        |control| Ok(blocked(control)? < count),
    )
}

/// A lock is held, and a name of n bytes goes.
pub fn long_name(options: &Options, length: usize) -> Outcome<f64> {
    let server = start(options)?;
    let mut control = server.connect()?;
    held::hold(&mut control, 1)?;
    let name = like_a_lease_key(length);
    control.call(&["SET", &name, "1"])?;
    let del = command(&["DEL", &name]);
    beside(
        &server,
        |control| control.exchange(&del).map(drop),
        |_| Ok(true),
    )
}

/// Locks are deleted by hand on a replica that may be written.
pub fn replica(options: &Options, count: usize) -> Outcome<f64> {
    let (master, server) = (start(options)?, start(options)?);
    // A replica gives no locks: it has them from its master.
    held::hold(&mut master.connect()?, count + 1)?;
    let mut control = server.connect()?;
    control.call(&["CONFIG", "SET", "replica-read-only", "no"])?;
    server.follow(&master)?;
    let last = held::name(count);
    control.call(&["RENAME", &last, "elsewhere"])?;
    let del = |number| command(&["DEL", &held::name(number)]);
    let dels: Vec<Vec<u8>> = (0..count).map(del).collect();
    beside(
        &server,
        |control| {
            Load::new(64, &dels, &[Expect::Integer]).run_once(control)?;
            Ok(())
        },
        |_| Ok(true),
    )
}

/// A connection with n watchdog holds closes.
pub fn close(options: &Options, count: usize) -> Outcome<f64> {
    let server = start(options)?;
    let mut holder = server.connect()?;
    let acquire = |number| {
        let key = held::name(number);
        command(&["RLOCK.ACQUIRE", &key, "holder", LEASE, "WATCHDOG"])
    };
    let acquires: Vec<Vec<u8>> = (0..count).map(acquire).collect();
    Load::new(64, &acquires, &[Expect::Integer]).run_once(&mut holder)?;
    beside(
        &server,
        |_| {
            drop(holder);
            Ok(())
        },
        |control| Ok(control.call(&["DBSIZE"])? == b":0\r\n"),
    )
}

/// n locks go at once. The last of all has somebody who waits.
pub fn flush(options: &Options, count: usize) -> Outcome<f64> {
    let server = start(options)?;
    let mut control = server.connect()?;
    held::hold(&mut control, count)?;
    let wait = |_| waits(&held::name(count - 1), "next", &[]);
    let _clients = outstanding(&server, 1, wait)?;
    until_blocked(&mut control, 1)?;
    beside(
        &server,
        |control| control.call(&["FLUSHALL"]).map(drop),
        |control| Ok(blocked(control)? == 0),
    )
}

/// Two databases change places.
pub fn swap(options: &Options, count: usize) -> Outcome<f64> {
    let server = start(options)?;
    let mut control = server.connect()?;
    held::hold(&mut control, count)?;
    let wait = |_| waits(&held::name(count - 1), "next", &[]);
    let _clients = outstanding(&server, 1, wait)?;
    until_blocked(&mut control, 1)?;
    beside(
        &server,
        |control| control.call(&["SWAPDB", "0", "1"]).map(drop),
        |control| Ok(blocked(control)? == 0),
    )
}

/// n leases end in one ms, and each lock goes to one who waits.
pub fn leases(options: &Options, count: usize) -> Outcome<f64> {
    let server = start(options)?;
    let mut control = server.connect()?;
    held::hold(&mut control, count)?;
    let wait = |number| waits(&held::name(number), &format!("waiter:{number}"), &[]);
    let _clients = outstanding(&server, count, wait)?;
    until_blocked(&mut control, count)?;
    let time = control.text(&["EVAL", "return redis.call('TIME')[1]", "0"])?;
    let seconds: i64 = time.lines().nth(1).unwrap_or_default().parse()?;
    let at = ((seconds + 2) * 1000).to_string();
    let end = |number| command(&["PEXPIREAT", &held::name(number), &at]);
    let ends: Vec<Vec<u8>> = (0..count).map(end).collect();
    Load::new(64, &ends, &[Expect::Integer]).run_once(&mut control)?;
    beside(&server, |_| Ok(()), |control| Ok(blocked(control)? == 0))
}

/// n leases end behind a stop of the server.
pub fn behind_a_stop(options: &Options, count: usize) -> Outcome<f64> {
    let server = start(options)?;
    let mut control = server.connect()?;
    held::hold(&mut control, count)?;
    super::behind_a_stop(&server, &mut control, count)
}

/// n readers wait behind a writer that is forced out.
pub fn readers(options: &Options, count: usize) -> Outcome<f64> {
    let server = start(options)?;
    let mut control = server.connect()?;
    control.call(&["RLOCK.ACQUIRE", "lock", "writer", LEASE, "WRITE"])?;
    let wait = |number| waits("lock", &format!("reader:{number}"), &["READ"]);
    let _clients = outstanding(&server, count, wait)?;
    until_blocked(&mut control, count)?;
    beside(
        &server,
        |control| control.call(&["RLOCK.FORCE", "lock"]).map(drop),
        |control| Ok(blocked(control)? == 0),
    )
}

/// n requests for 1,024 keys each, each for other ones.
pub fn many_keys(options: &Options, count: usize) -> Outcome<f64> {
    let server = start(options)?;
    let request = |number: usize| {
        let keys: Vec<String> = (0..1024).map(|key| format!("{number}:{key}")).collect();
        let mut parts = vec!["RLOCK.MACQUIRE", "1024"];
        parts.extend(keys.iter().map(String::as_str));
        parts.extend(["holder", LEASE]);
        command(&parts)
    };
    let requests: Vec<Vec<u8>> = (0..count).map(request).collect();
    let mut client = server.connect()?;
    beside(&server, |_| pipeline(&mut client, &requests), |_| Ok(true))
}

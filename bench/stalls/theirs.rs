//! The like of each piece of work on a server without the module: the longest PING
//! beside it, in ms.

use super::ours::LEASE;
use super::{beside, blocked, like_a_lease_key, outstanding, pipeline, until_blocked};
use crate::held;
use crate::load::{command, Expect, Load, Outcome, Server};
use crate::options::Options;

fn start(options: &Options) -> Outcome<Server> {
    Server::start(&options.server, None)
}

fn waits(key: &str) -> Vec<u8> {
    command(&["BLPOP", key, "0"])
}

pub fn one_of_many(options: &Options, count: usize) -> Outcome<f64> {
    let server = start(options)?;
    let mut control = server.connect()?;
    let _clients = outstanding(&server, count, |number| waits(&held::name(number)))?;
    until_blocked(&mut control, count)?;
    beside(
        &server,
        |control| {
            control
                .call(&["LPUSH", &held::name(count / 2), "1"])
                .map(drop)
        },
        |control| Ok(blocked(control)? < count),
    )
}

pub fn long_name(options: &Options, length: usize) -> Outcome<f64> {
    let server = start(options)?;
    let name = like_a_lease_key(length);
    server.connect()?.call(&["SET", &name, "1"])?;
    let del = command(&["DEL", &name]);
    beside(
        &server,
        |control| control.exchange(&del).map(drop),
        |_| Ok(true),
    )
}

pub fn replica(options: &Options, count: usize) -> Outcome<f64> {
    let (master, server) = (start(options)?, start(options)?);
    held::hashes(&mut master.connect()?, count + 1)?;
    let mut control = server.connect()?;
    control.call(&["CONFIG", "SET", "replica-read-only", "no"])?;
    server.follow(&master)?;
    control.call(&["RENAME", &held::name(count), "elsewhere"])?;
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

pub fn unlink(options: &Options, count: usize) -> Outcome<f64> {
    let server = start(options)?;
    held::hashes(&mut server.connect()?, count)?;
    let names: Vec<String> = (0..count).map(held::name).collect();
    let mut parts = vec!["UNLINK"];
    parts.extend(names.iter().map(String::as_str));
    let unlink = command(&parts);
    beside(
        &server,
        |control| control.exchange(&unlink).map(drop),
        |_| Ok(true),
    )
}

pub fn flush(options: &Options, count: usize) -> Outcome<f64> {
    let server = start(options)?;
    held::hashes(&mut server.connect()?, count)?;
    beside(
        &server,
        |control| control.call(&["FLUSHALL"]).map(drop),
        |_| Ok(true),
    )
}

pub fn swap(options: &Options, count: usize) -> Outcome<f64> {
    let server = start(options)?;
    held::hashes(&mut server.connect()?, count)?;
    beside(
        &server,
        |control| control.call(&["SWAPDB", "0", "1"]).map(drop),
        |_| Ok(true),
    )
}

pub fn behind_a_stop(options: &Options, count: usize) -> Outcome<f64> {
    let server = start(options)?;
    let mut control = server.connect()?;
    held::hashes(&mut control, count)?;
    super::behind_a_stop(&server, &mut control, count)
}

pub fn many_of_many(options: &Options, count: usize) -> Outcome<f64> {
    let server = start(options)?;
    let mut control = server.connect()?;
    let _clients = outstanding(&server, count, |number| waits(&held::name(number)))?;
    until_blocked(&mut control, count)?;
    let push = |number| command(&["LPUSH", &held::name(number), "1"]);
    let pushes: Vec<Vec<u8>> = (0..count).map(push).collect();
    beside(
        &server,
        |control| {
            control.call(&["MULTI"])?;
            pipeline(control, &pushes)?;
            control.send(&command(&["EXEC"]))
        },
        |_| {
            Ok(server
                .connect()?
                .info_number("clients", "blocked_clients")?
                == 0.0)
        },
    )
}

pub fn all_of_many(options: &Options, count: usize) -> Outcome<f64> {
    let server = start(options)?;
    let mut control = server.connect()?;
    let _clients = outstanding(&server, count, |_| waits("list"))?;
    until_blocked(&mut control, count)?;
    let mut parts = vec!["LPUSH", "list"];
    parts.extend(std::iter::repeat_n("1", count));
    let push = command(&parts);
    beside(
        &server,
        |control| control.exchange(&push).map(drop),
        |control| Ok(blocked(control)? == 0),
    )
}

/// Hashes with a TTL, as locks are: the server makes room in two tables for each key.
const LOCK_ALL: &str = "\
for _, key in ipairs(KEYS) do
  if redis.call('exists', key) == 1 then return 0 end
end
for _, key in ipairs(KEYS) do
  redis.call('hset', key, ARGV[1], 1)
  redis.call('pexpire', key, ARGV[2])
end
return 1";

pub fn many_keys(options: &Options, count: usize) -> Outcome<f64> {
    let server = start(options)?;
    let request = |number: usize| {
        let keys: Vec<String> = (0..1024).map(|key| format!("{number}:{key}")).collect();
        let mut parts = vec!["EVAL", LOCK_ALL, "1024"];
        parts.extend(keys.iter().map(String::as_str));
        parts.extend(["holder", LEASE]);
        command(&parts)
    };
    let requests: Vec<Vec<u8>> = (0..count).map(request).collect();
    let mut client = server.connect()?;
    beside(&server, |_| pipeline(&mut client, &requests), |_| Ok(true))
}

//! The recovery scan: locks that were there before the module was, or before this server was
//! master, end as any other, and what only looks like one goes without a word.

mod by_hand;
mod cluster;
mod found;
mod listed;
mod settings;
mod silent;
mod walk;

use crate::support::{eventually, now_ms, Ask, RawClient, Server};

/// So long before it ends nothing here is over yet, ms.
const SOON: i64 = 8000;

/// Ends no test lives to see.
const LATE: i64 = 1_000_000;

/// The walk is over, and so many keys are presumed to be locks.
#[track_caller]
fn presumed(client: &mut RawClient, count: i64) {
    eventually("the walk is over", || {
        client.counter("rlock_recovery_running") == 0
    });
    eventually("all is known", || {
        client.counter("rlock_recovery_presumed") == count
    });
}

/// A server that only expires a key when somebody looks at it.
#[track_caller]
fn expires_nothing(client: &mut RawClient) {
    client.ok("DEBUG SET-ACTIVE-EXPIRE 0");
}

/// A running server, with these commands carried out before the module is loaded.
#[track_caller]
fn loaded_after(options: &[&str], lines: &[String]) -> Server {
    let server = Server::start_with(options);
    let mut client = server.raw();
    let path = client.module_path();
    client.unload_module();
    client.succeed(lines);
    client.ok(&format!("MODULE LOAD {path}"));
    server
}

/// A plain lock as Redisson lays it out, until then.
fn plain(key: &str, until: i64) -> Vec<String> {
    vec![
        format!("HSET {key} someone:1 1"),
        format!("PEXPIREAT {key} {until}"),
    ]
}

/// A read/write lock of one writer.
fn written(key: &str, until: i64) -> Vec<String> {
    vec![
        format!("HSET {key} mode write someone:1:write 1"),
        format!("PEXPIREAT {key} {until}"),
    ]
}

fn soon() -> i64 {
    now_ms() + SOON
}

fn late() -> i64 {
    now_ms() + LATE
}

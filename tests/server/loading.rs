//! Loading and unloading the module.

use std::env;
use std::fs;
use std::panic;
use std::process::{Command, Stdio};

use redis::Value;

use crate::support::{bulk, eventually, wait_for, Ask, Process, Server, Waiter};

#[test]
fn the_server_lists_the_module() {
    let server = Server::start();
    server.raw().module_path();
    server.alive();
}

#[test]
fn it_cannot_be_unloaded_while_a_lease_runs() {
    let server = Server::start();
    let mut client = server.raw();
    client.int("RLOCK.ACQUIRE job alice 3600000");
    let line = client.error("MODULE UNLOAD rlock");
    assert!(line.starts_with("ERR "), "{line}");
    assert_eq!(client.int("RLOCK.RENEW job alice 3600000"), 1);
    let mut waiter = Waiter::with(&server, "job bob 60000 BLOCK 0");
    assert_eq!(client.waiters("job"), 1);
    client.error("MODULE UNLOAD rlock");
    client.int("RLOCK.RELEASE job alice");
    waiter.token();
    client.error("MODULE UNLOAD rlock");
    assert_eq!(client.int("RLOCK.RELEASE job bob"), 0);
    server.alive();
}

#[test]
fn an_idle_one_can_be_unloaded_and_loaded_again() {
    let server = Server::start();
    let mut client = server.raw();
    let path = client.module_path();
    let mut last = 0;
    let mut uuids = Vec::new();
    for round in 0..3 {
        let token = client.int("RLOCK.ACQUIRE job alice 3600000");
        assert!(token > last, "round {round}: {token} after {last}");
        let mut waiter = Waiter::with(&server, "job bob 60000 BLOCK 0");
        assert_eq!(client.waiters("job"), 1);
        client.int("RLOCK.RELEASE job alice");
        let new = waiter.token();
        assert!(new > token);
        last = client.int("RLOCK.ACQUIRE job bob 60000");
        assert_eq!(client.int("RLOCK.RELEASE job bob ALL"), 0);
        uuids.push(client.text("RLOCK.OWNER"));

        client.unload_module();
        let line = client.error("RLOCK.INFO job");
        assert!(line.starts_with("ERR unknown command"), "{line}");
        client.int("HSET data a 1");
        client.int("DEL data job");
        client.ok(&format!("MODULE LOAD {path}"));
    }
    uuids.dedup();
    assert_eq!(uuids.len(), 3, "{uuids:?}");
    server.alive();
}

/// As a server does whose configuration has `loadmodule` twice: there it does not start.
#[test]
fn the_log_says_why_it_is_not_loaded_a_second_time() {
    let server = Server::start();
    let mut client = server.raw();
    let path = client.module_path();
    client.error(&format!("MODULE LOAD {path}"));
    assert!(
        server.log().contains("it is loaded already"),
        "{}",
        server.log()
    );
    client.token("RLOCK.ACQUIRE job alice 60000");
    server.alive();
}

#[test]
fn locks_outlive_an_unload() {
    let server = Server::start();
    let mut client = server.raw();
    let path = client.module_path();
    client.unload_module();
    client.int("HSET job alice 2");
    client.int("PEXPIRE job 3600000");
    client.ok(&format!("MODULE LOAD {path}"));
    assert!(client.refused("RLOCK.ACQUIRE job bob 60000"));
    assert_eq!(client.int("RLOCK.RELEASE job alice"), 1);
    assert_eq!(client.texts("HGETALL job"), ["alice", "1"]);
}

#[test]
fn settings_can_be_given_at_load() {
    let server = Server::start_with(&["--rlock.redisson-compat", "no"]);
    let mut client = server.raw();
    let pair = client.ask("CONFIG GET rlock.redisson-compat");
    let expected = [bulk("rlock.redisson-compat"), bulk("no")];
    assert_eq!(pair, Value::Array(expected.into()));
    let line = client.error("CONFIG SET rlock.redisson-compat maybe");
    assert!(line.starts_with("ERR "), "{line}");
}

#[test]
fn a_setting_that_is_none_keeps_the_module_from_loading() {
    let server = Server::start();
    let mut client = server.raw();
    let module = client.module_path();
    eventually("it is unloaded", || {
        client.ask("MODULE UNLOAD rlock") == Value::Okay
    });
    for (args, why) in [
        ("foo", "there is no setting 'foo'"),
        (
            "redisson-compat",
            "redisson-compat is yes or no, got nothing",
        ),
        (
            "redisson-compat maybe",
            "redisson-compat is yes or no, got 'maybe'",
        ),
        ("redisson-compat no x", "there is no setting 'x'"),
        ("fencing counter fencing clock", "fencing is given twice"),
        (
            "watchdog-max abc",
            "watchdog-max is 0 or a number of ms from 1000 to 9007199254740991, got 'abc'",
        ),
        (
            "watchdog-max 5",
            "watchdog-max is 0 or a number of ms from 1000 to 9007199254740991, got '5'",
        ),
        (
            "keep-place 15",
            "keep-place is 0 or a number of ms from 1000 to 600000, got '15'",
        ),
        (
            "recovery-scan-max",
            "recovery-scan-max is a number from 0 to 1000000000, got nothing",
        ),
    ] {
        client.error(&format!("MODULE LOAD {module} {args}"));
        assert!(server.log().contains(why), "{args}: {}", server.log());
    }
    let line = format!("MODULE LOAD {module} redisson-compat no");
    client.ok(&line);
}

/// What is said of a value that makes no sense: what was wrong, and what is right.
#[test]
fn a_value_that_makes_no_sense_is_refused_and_changes_nothing() {
    let server = Server::start();
    let mut client = server.raw();
    for (setting, value, why) in [
        (
            "watchdog-max",
            "5",
            "rlock.watchdog-max is 0 or a number of ms from 1000",
        ),
        (
            "keep-place",
            "15",
            "rlock.keep-place is 0 or a number of ms from 1000",
        ),
        (
            "grant-after",
            "30",
            "rlock.grant-after is 0 or a number of ms from 1000",
        ),
        ("watchdog-max", "abc", "integer"),
        ("max-waiters", "-1", "between 0 and 1000000000"),
        ("redisson-yield", "10001", "between 0 and 10000"),
        ("recovery-scan", "perhaps", "'yes' or 'no'"),
        ("fencing", "yes", "clock"),
        ("watchdog-lost", "", "close"),
    ] {
        let name = format!("rlock.{setting}");
        let before = client.ask(&["CONFIG", "GET", &name]);
        let line = client.error(&["CONFIG", "SET", &name, value]);
        assert!(line.contains(&name) && line.contains(why), "{line}");
        assert_eq!(client.ask(&["CONFIG", "GET", &name]), before);
    }
}

#[test]
fn a_line_of_redis_conf_that_makes_no_sense_is_named_in_the_log() {
    for (setting, value, why) in [
        (
            "watchdog-max",
            "5",
            "rlock.watchdog-max is 0 or a number of ms from 1000",
        ),
        ("watchdog-max", "abc", "integer"),
        ("grant-after", "-1", "between 0 and"),
    ] {
        let name = format!("--rlock.{setting}");
        let started = panic::catch_unwind(|| Server::start_with(&[&name, value]));
        let log = started.err().and_then(|why| why.downcast::<String>().ok());
        let log = log.expect("it does not start");
        let named = log.contains(&format!("rlock.{setting}"));
        assert!(named && log.contains(why), "{setting} {value}: {log}");
    }
}

/// To whom key events are told, as the module says in its log.
fn key_events_are_for(server: &Server) -> Option<String> {
    let log = server.log();
    let line = log
        .lines()
        .rev()
        .find(|line| line.contains("key events are for"))?;
    Some(line.split("for ").last()?.to_owned())
}

/// No event is emitted that nobody can hear: what a server brought along hears none.
#[test]
fn what_the_server_brought_along_is_no_other_module() {
    let server = Server::start_with(&["--loglevel", "verbose"]);
    eventually("it is alone", || {
        key_events_are_for(&server).as_deref() == Some("clients only")
    });
}

#[test]
fn it_refuses_a_server_whose_commands_were_renamed() {
    // A server to learn from where the module is, and to have a directory.
    let server = Server::start();
    let module = server.raw().module_path();
    for command in [
        "RESTORE",
        "HSET",
        "HDEL",
        "PEXPIREAT",
        "DEL",
        "PUBLISH",
        "SETRANGE",
    ] {
        let log = server.dir().join(format!("{command}.log"));
        let conf = server.dir().join(format!("{command}.conf"));
        let lines = format!(
            "port 0\nunixsocket {}/{command}.sock\ndir {}\nlogfile {}\n\
             rename-command {command} \"\"\nloadmodule {module}\n",
            server.dir().display(),
            server.dir().display(),
            log.display()
        );
        fs::write(&conf, lines).expect("a config file");
        let program = env::var_os("RLOCK_SERVER").unwrap_or("redis-server".into());
        let child = Command::new(program)
            .arg(&conf)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let mut attempt = Process(child.expect("the server starts"));
        let status = wait_for("the server gives up", || {
            attempt.0.try_wait().expect("wait")
        });
        assert!(!status.success(), "{command}: {status}");
        let log = fs::read_to_string(&log).expect("a log");
        let why = format!("rlock: the command \"{command}\", which rlock relies on, is renamed");
        assert!(log.contains(&why), "{command}:\n{log}");
    }
}

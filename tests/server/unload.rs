//! Unloading the module: refused while it has something to do, clean when not.

use std::collections::HashMap;

use redis::Value;

use crate::support::locks::{code, token, Say, Waiter};
use crate::support::{eventually, Server};

#[test]
fn the_module_cannot_be_unloaded_while_a_lease_runs_or_somebody_waits() {
    let server = Server::start();
    let mut control = server.raw();
    control.say("RLOCK.ACQUIRE k a 100000");
    assert_eq!(code(&control.say("MODULE UNLOAD rlock")), "ERR");
    control.say("PERSIST k");
    let mut waiter = Waiter::new(&server, "k", "b");
    assert_eq!(code(&control.say("MODULE UNLOAD rlock")), "ERR");
    assert_eq!(control.say("RLOCK.RELEASE k a"), Value::Int(0));
    waiter.token();
    server.alive();
}

/// Asks in one transaction for something and then for the module to be unloaded. The
/// server itself refuses while a timer runs, and then it is asked again. What the module
/// logged.
#[track_caller]
fn is_refused_behind(server: &Server, request: &str, then: &[&str]) -> String {
    let mut control = server.raw();
    eventually("no timer runs", || {
        let mut lines = vec!["MULTI", request, "MODULE UNLOAD rlock"];
        lines.extend(then);
        lines.push("EXEC");
        let replies = control.say_all(&lines);
        let Some(Value::Array(replies)) = replies.last() else {
            panic!("{replies:?}");
        };
        let refusal = format!("{:?}", replies[1]);
        assert_eq!(code(&replies[1]), "ERR", "{refusal}");
        server.alive();
        !refusal.contains("timer")
    });
    let log = server.log();
    let line = log.lines().rev().find(|line| line.contains("not unloaded"));
    line.expect("the log says why").to_owned()
}

#[test]
fn it_is_not_unloaded_while_it_has_yet_to_look_at_a_key() {
    let server = Server::start();
    let mut control = server.raw();
    // Without a TTL: no timer.
    control.say("RLOCK.ACQUIRE k o 100000");
    control.say("PERSIST k");
    is_refused_behind(&server, "PEXPIRE k 100000 GT", &[]);
    is_refused_behind(&server, "DEL k", &[]);
    eventually("it is unloaded", || {
        control.say("MODULE UNLOAD rlock") == Value::Okay
    });
    server.alive();
}

#[test]
fn it_is_not_unloaded_in_a_transaction_whose_next_command_is_its_own() {
    let server = Server::start();
    let why = is_refused_behind(&server, "PING", &["RLOCK.OWNER", "RLOCK.INFO k"]);
    assert!(why.contains("transaction"), "{why}");
    let mut control = server.raw();
    assert_eq!(control.say("MODULE UNLOAD rlock"), Value::Okay);
    server.alive();
}

#[test]
fn the_module_is_unloaded_and_loaded_again_between_locks() {
    let server = Server::start();
    let mut control = server.raw();
    let modules: Vec<HashMap<String, Value>> =
        redis::from_redis_value(control.say("MODULE LIST")).expect("a list of maps");
    let name = Value::BulkString(b"rlock".to_vec());
    let rlock = modules.iter().find(|module| module["name"] == name);
    let path = &rlock.expect("it is loaded")["path"];
    let path: String = redis::from_redis_value(path.clone()).expect("a path");
    let mut last = 0;
    for _ in 0..3 {
        let granted = token(control.say("RLOCK.ACQUIRE k a 100000"));
        assert!(granted > last);
        last = granted;
        let mut waiter = Waiter::new(&server, "k", "b");
        control.say("RLOCK.RELEASE k a");
        waiter.token();
        control.say("RLOCK.RELEASE k b");
        // The timer runs out within a second.
        eventually("it is unloaded", || {
            control.say("MODULE UNLOAD rlock") == Value::Okay
        });
        assert_eq!(code(&control.say("RLOCK.INFO k")), "ERR");
        // Events that it listened to come to nobody.
        control.say_all(&[
            "SET x 1 PX 1",
            "DEL x",
            "SELECT 1",
            "SWAPDB 0 1",
            "SELECT 0",
        ]);
        control.say("FLUSHALL");
        waiter.client.close();
        server.alive();
        let loaded = control.call(&["MODULE", "LOAD", &path]);
        assert_eq!(loaded, Value::Okay);
    }
    server.alive();
}

//! Unloading the module: refused while it has something to do, clean when not.

use redis::Value;

use crate::support::{both_ways, code, eventually, Ask, Server, Waiter, Way};

both_ways!(the_module_cannot_be_unloaded_while_a_lease_runs_or_somebody_waits);
fn the_module_cannot_be_unloaded_while_a_lease_runs_or_somebody_waits(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    control.ask("RLOCK.ACQUIRE k a 100000");
    assert_eq!(control.code("MODULE UNLOAD rlock"), "ERR");
    control.ask("PERSIST k");
    let mut waiter = by.wait(&server, "k", "b");
    assert_eq!(control.code("MODULE UNLOAD rlock"), "ERR");
    assert_eq!(control.int("RLOCK.RELEASE k a"), 0);
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
        let replies = control.ask_all(&lines);
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
    let server = Server::start_observed();
    let mut control = server.raw();
    // Without a TTL: no timer.
    control.ask("RLOCK.ACQUIRE k o 100000");
    control.ask("PERSIST k");
    is_refused_behind(&server, "PEXPIRE k 100000 GT", &[]);
    is_refused_behind(&server, "DEL k", &[]);
    control.unload_module();
    server.alive();
}

#[test]
fn it_is_not_unloaded_in_a_transaction_whose_next_command_is_its_own() {
    let server = Server::start();
    let why = is_refused_behind(&server, "PING", &["RLOCK.OWNER", "RLOCK.INFO k"]);
    assert!(why.contains("transaction"), "{why}");
    let mut control = server.raw();
    control.ok("MODULE UNLOAD rlock");
    server.alive();
}

/// Redis 7.2 and newer and Valkey 8.0 crash when it goes while a rule names its commands.
#[test]
fn it_is_not_unloaded_while_the_rules_of_a_user_name_its_commands() {
    let server = Server::start();
    let mut control = server.raw();
    for rules in [
        "+rlock.acquire",
        "+@all -rlock.top",
        "+get (+rlock.release ~k)",
    ] {
        let user = [&["ACL", "SETUSER", "bob", "reset"][..], &words(rules)].concat();
        control.ok(&user);
        assert_eq!(control.code("MODULE UNLOAD rlock"), "ERR", "{rules}");
        server.alive();
    }
    control.ok("ACL SETUSER bob reset +@all");
    control.unload_module();
    server.alive();
}

/// The rules of a user; those in brackets are one.
fn words(rules: &str) -> Vec<&str> {
    match rules.split_once(" (") {
        Some((first, _)) => vec![first, &rules[first.len() + 1..]],
        None => rules.split(' ').collect(),
    }
}

#[test]
fn the_module_is_unloaded_and_loaded_again_between_locks() {
    let server = Server::start();
    let mut control = server.raw();
    let path = control.module_path();
    let mut last = 0;
    for _ in 0..3 {
        let granted = control.token("RLOCK.ACQUIRE k a 100000");
        assert!(granted > last);
        last = granted;
        let mut waiter = Waiter::new(&server, "k", "b");
        control.ask("RLOCK.RELEASE k a");
        waiter.token();
        control.ask("RLOCK.RELEASE k b");
        // The timer runs out within a second.
        control.unload_module();
        assert_eq!(control.code("RLOCK.INFO k"), "ERR");
        // Events that it listened to come to nobody.
        control.ask_all(&[
            "SET x 1 PX 1",
            "DEL x",
            "SELECT 1",
            "SWAPDB 0 1",
            "SELECT 0",
        ]);
        control.ask("FLUSHALL");
        waiter.client.close();
        server.alive();
        control.ok(&["MODULE", "LOAD", &path]);
    }
    server.alive();
}

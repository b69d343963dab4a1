//! Beside a module that changes keys when it hears an event, and one that uses rlock's commands
//! from a thread of its own.

use std::path::PathBuf;
use std::sync::OnceLock;

use crate::support::{eventually, library, now_ms, Ask, RawClient, Server, Waiter};

/// A server with rlock and the other module.
fn server() -> Server {
    static MODULE: OnceLock<PathBuf> = OnceLock::new();
    let source = "tests/server/neighbour.c";
    let module = MODULE.get_or_init(|| library(source, "neighbour", &["-lpthread"]));
    Server::start_with(&["--loadmodule", &module.display().to_string()])
}

#[test]
fn what_it_does_at_our_events_is_observed() {
    let server = server();
    let mut client = server.raw();
    for act in [
        "RLOCK.ACQUIRE trigger a 60000",
        "RLOCK.RENEW trigger a 90000",
        "RLOCK.RELEASE trigger a",
        "RLOCK.ACQUIRE trigger a 60000 READ",
        "RLOCK.FORCE trigger",
        "RLOCK.ACQUIRE trigger a 60000 LIMIT 2",
        "RLOCK.RELEASE trigger a PERMITS",
    ] {
        client.token("RLOCK.ACQUIRE victim holder 60000");
        let mut next = Waiter::new(&server, "victim", "next");
        client.ask(act);
        next.token();
        assert_eq!(client.int("RLOCK.RELEASE victim next"), 0, "{act}");
    }
    // By the timer: the lease ends after somebody waits.
    client.token("RLOCK.ACQUIRE trigger a 300");
    client.token("RLOCK.ACQUIRE victim holder 60000");
    let mut next = Waiter::new(&server, "victim", "next");
    next.token();
}

/// One takes and releases what the other module's thread does, too.
fn takes_turns(client: &mut RawClient, owner: &str, until: i64) {
    while now_ms() < until {
        for key in 0..8 {
            client.token(&format!("RLOCK.ACQUIRE shared:{key} {owner} 5000 BLOCK 0"));
            assert_eq!(client.texts(&format!("HKEYS shared:{key}")), [owner]);
            let release = format!("RLOCK.RELEASE shared:{key} {owner}");
            assert_eq!(client.int(&release), 0);
        }
    }
}

#[test]
fn its_thread_may_use_our_commands() {
    const ROUNDS: i64 = 20_000;
    let server = server();
    let mut control = server.raw();
    control.ask(&format!("NEIGHBOUR.START {ROUNDS}"));
    let until = now_ms() + 1000;
    std::thread::scope(|scope| {
        for number in 0..4 {
            let mut client = server.raw();
            scope.spawn(move || takes_turns(&mut client, &format!("o{number}"), until));
        }
    });
    eventually("the thread is done", || {
        control.int("NEIGHBOUR.COUNT") == ROUNDS
    });
    assert_eq!(control.counter("rlock_held"), 0);
    assert_eq!(control.counter("rlock_waiting"), 0);
    let log = server.log();
    assert!(!log.contains("a fault in") && !log.contains("left out"));
    server.alive();
}

//! Clients that take locks in any order and never give up: with rings refused they
//! all get through.

use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;

use redis::Value;

use crate::support::{code, token, Ask, Random, RawClient, Server};

const CLIENTS: usize = 8;
const ROUNDS: usize = 60;
const KEYS: usize = 5;

/// What each of the clients does, by its number, all of them at once.
fn each(server: &Server, act: impl Fn(usize, &mut RawClient, &mut Random) + Sync) {
    thread::scope(|scope| {
        for n in 0..CLIENTS {
            let act = &act;
            scope.spawn(move || act(n, &mut server.raw(), &mut Random::new(n as u64 + 1)));
        }
    });
}

/// Takes three locks one after the other, all for ever; whether it got them.
/// A request that is never answered ends the test.
fn take_three(client: &mut RawClient, owner: &str, random: &mut Random, modes: bool) -> bool {
    let mut taken: Vec<(usize, &str)> = Vec::new();
    let mut refused = false;
    for _ in 0..3 {
        let key = random.below(KEYS);
        let mode = match random.below(3) {
            0 if modes => "WRITE",
            _ if modes => "READ",
            _ => "",
        };
        let request = format!("RLOCK.ACQUIRE k{key} {owner} 100000 {mode} BLOCK 0");
        match client.ask(&request) {
            error @ Value::ServerError(_) => {
                assert_eq!(code(&error), "DEADLOCK", "{request}");
                refused = true;
                break;
            }
            granted => {
                token(granted);
                taken.push((key, mode));
            }
        }
    }
    for (key, mode) in taken.into_iter().rev() {
        let left = client.ask(&format!("RLOCK.RELEASE k{key} {owner} {mode}"));
        assert!(matches!(left, Value::Int(0..)), "k{key} {mode}: {left:?}");
    }
    !refused
}

fn storm(modes: bool) {
    let server = Server::start();
    let refusals = AtomicI64::new(0);
    each(&server, |n, client, random| {
        let owner = format!("o{n}");
        let mut done = 0;
        while done < ROUNDS {
            match take_three(client, &owner, random, modes) {
                true => done += 1,
                false => drop(refusals.fetch_add(1, Ordering::Relaxed)),
            }
        }
    });
    let mut control = server.raw();
    let refused = control.counter("rlock_deadlocks_refused");
    assert_eq!(refused, refusals.into_inner());
    assert_eq!(control.counter("rlock_waiting"), 0);
    assert_eq!(control.int("DBSIZE"), 0);
    server.alive();
}

#[test]
fn clients_that_take_plain_locks_in_any_order_all_get_through() {
    storm(false);
}

#[test]
fn readers_writers_and_upgrades_all_get_through() {
    storm(true);
}

#[test]
fn a_fixed_order_is_never_refused() {
    let server = Server::start();
    each(&server, |n, client, random| {
        for _ in 0..ROUNDS {
            let low = random.below(KEYS - 1);
            let high = low + 1 + random.below(KEYS - 1 - low);
            for key in [low, high] {
                client.token(&format!("RLOCK.ACQUIRE k{key} o{n} 100000 BLOCK 0"));
            }
            for key in [low, high] {
                client.ask(&format!("RLOCK.RELEASE k{key} o{n}"));
            }
        }
    });
    let mut control = server.raw();
    assert_eq!(control.counter("rlock_deadlocks_refused"), 0);
    assert_eq!(control.int("DBSIZE"), 0);
}

#[test]
fn many_keys_at_once_are_never_refused() {
    let server = Server::start();
    each(&server, |n, client, random| {
        for _ in 0..ROUNDS {
            let first = random.below(KEYS);
            let second = (first + 1 + random.below(KEYS - 1)) % KEYS;
            let keys = format!("2 k{first} k{second}");
            client.token(&format!("RLOCK.MACQUIRE {keys} o{n} 100000 BLOCK 0"));
            assert_eq!(client.int(&format!("RLOCK.MRELEASE {keys} o{n}")), 2);
        }
    });
    let mut control = server.raw();
    assert_eq!(control.counter("rlock_deadlocks_refused"), 0);
    control.ok("CONFIG SET rlock.deadlock-detection no");
    assert_eq!(control.int("DBSIZE"), 0);
}

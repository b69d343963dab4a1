//! Clients that take locks in any order and never give up: with rings refused they
//! all get through.

use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;

use redis::Value;

use crate::support::locks::{code, token, Say};
use crate::support::look::{counter, set};
use crate::support::{RawClient, Server};

const CLIENTS: u32 = 8;
const ROUNDS: u32 = 60;
const KEYS: u32 = 5;

/// Numbers that are random enough, and the same in every run.
struct Numbers(u32);

impl Numbers {
    fn below(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 16) % end
    }
}

/// Takes three locks one after the other, all for ever; whether it got them.
/// A request that is never answered ends the test.
fn take_three(client: &mut RawClient, owner: &str, numbers: &mut Numbers, modes: bool) -> bool {
    let mut taken: Vec<(u32, &str)> = Vec::new();
    let mut refused = false;
    for _ in 0..3 {
        let key = numbers.below(KEYS);
        let mode = match numbers.below(3) {
            0 if modes => "WRITE",
            _ if modes => "READ",
            _ => "",
        };
        let request = format!("RLOCK.ACQUIRE k{key} {owner} 100000 {mode} BLOCK 0");
        match client.say(&request) {
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
        let left = client.say(&format!("RLOCK.RELEASE k{key} {owner} {mode}"));
        assert!(matches!(left, Value::Int(0..)), "k{key} {mode}: {left:?}");
    }
    !refused
}

fn storm(modes: bool) {
    let server = Server::start();
    let refusals = AtomicI64::new(0);
    thread::scope(|scope| {
        for n in 0..CLIENTS {
            let (server, refusals) = (&server, &refusals);
            scope.spawn(move || {
                let mut client = server.raw();
                let mut numbers = Numbers(n + 1);
                let owner = format!("o{n}");
                let mut done = 0;
                while done < ROUNDS {
                    match take_three(&mut client, &owner, &mut numbers, modes) {
                        true => done += 1,
                        false => drop(refusals.fetch_add(1, Ordering::Relaxed)),
                    }
                }
            });
        }
    });
    let mut control = server.raw();
    let refused = counter(&mut control, "rlock_deadlocks_refused");
    assert_eq!(refused, refusals.into_inner());
    assert_eq!(counter(&mut control, "rlock_waiting"), 0);
    assert_eq!(control.say("DBSIZE"), Value::Int(0));
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
    thread::scope(|scope| {
        for n in 0..CLIENTS {
            let server = &server;
            scope.spawn(move || {
                let mut client = server.raw();
                let mut numbers = Numbers(n + 1);
                for _ in 0..ROUNDS {
                    let low = numbers.below(KEYS - 1);
                    let high = low + 1 + numbers.below(KEYS - 1 - low);
                    for key in [low, high] {
                        let request = format!("RLOCK.ACQUIRE k{key} o{n} 100000 BLOCK 0");
                        token(client.say(&request));
                    }
                    for key in [low, high] {
                        client.say(&format!("RLOCK.RELEASE k{key} o{n}"));
                    }
                }
            });
        }
    });
    let mut control = server.raw();
    assert_eq!(counter(&mut control, "rlock_deadlocks_refused"), 0);
    assert_eq!(control.say("DBSIZE"), Value::Int(0));
}

#[test]
fn many_keys_at_once_are_never_refused() {
    let server = Server::start();
    thread::scope(|scope| {
        for n in 0..CLIENTS {
            let server = &server;
            scope.spawn(move || {
                let mut client = server.raw();
                let mut numbers = Numbers(n + 1);
                for _ in 0..ROUNDS {
                    let first = numbers.below(KEYS);
                    let second = (first + 1 + numbers.below(KEYS - 1)) % KEYS;
                    let keys = format!("2 k{first} k{second}");
                    let request = format!("RLOCK.MACQUIRE {keys} o{n} 100000 BLOCK 0");
                    token(client.say(&request));
                    let released = client.say(&format!("RLOCK.MRELEASE {keys} o{n}"));
                    assert_eq!(released, Value::Int(2));
                }
            });
        }
    });
    let mut control = server.raw();
    assert_eq!(counter(&mut control, "rlock_deadlocks_refused"), 0);
    set(&mut control, "rlock.deadlock-detection no");
    assert_eq!(control.say("DBSIZE"), Value::Int(0));
}

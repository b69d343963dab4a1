//! The experiments that every lock should be put through, with real connections.

use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use redis::Value;

use crate::support::{eventually, now_ms, pass, token, Ask, RawClient, Server, Waiter};

#[test]
fn of_a_thousand_clients_that_try_at_once_one_has_the_lock() {
    const THREADS: usize = 8;
    const EACH: usize = 125;
    let server = Server::start();
    let start = Barrier::new(THREADS);
    let tokens = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (server, start, tokens) = (&server, &start, &tokens);
            scope.spawn(move || {
                let mut clients: Vec<RawClient> = (0..EACH).map(|_| server.raw()).collect();
                start.wait();
                for (n, client) in clients.iter_mut().enumerate() {
                    client.send(&format!("RLOCK.ACQUIRE k {thread}-{n} 10000 BLOCK 10"));
                }
                for (n, client) in clients.iter_mut().enumerate() {
                    let reply = client.read();
                    if reply != Value::Nil {
                        let owner = format!("{thread}-{n}");
                        tokens.lock().unwrap().push((owner, token(reply)));
                    }
                }
            });
        }
    });
    let tokens = tokens.into_inner().unwrap();
    let [(owner, _)] = tokens.as_slice() else {
        panic!("{tokens:?}");
    };
    let mut control = server.raw();
    assert_eq!(control.hash("k"), format!("{owner}=1"));
    assert_eq!(control.int(&format!("RLOCK.RELEASE k {owner}")), 0);
    control.is_free("k");
}

#[test]
fn a_hundred_clients_have_the_lock_one_after_the_other_in_order() {
    const CLIENTS: usize = 100;
    let server = Server::start();
    let mut control = server.raw();
    control.ask("RLOCK.ACQUIRE k first 100000");
    let waiters: Vec<_> = (0..CLIENTS)
        .map(|n| Waiter::with(&server, &format!("k w{n} 60000 BLOCK 60000")))
        .collect();
    let inside = Mutex::new(());
    let start = Instant::now();
    let tokens: Vec<i64> = thread::scope(|scope| {
        let running: Vec<_> = waiters
            .into_iter()
            .enumerate()
            .map(|(n, mut waiter)| {
                let inside = &inside;
                scope.spawn(move || {
                    let token = waiter.token();
                    let alone = inside.try_lock().expect("nobody else has the lock");
                    drop(alone);
                    assert_eq!(waiter.client.int(&format!("RLOCK.RELEASE k w{n}")), 0);
                    token
                })
            })
            .collect();
        control.ask("RLOCK.RELEASE k first");
        running.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert!(
        start.elapsed() < Duration::from_secs(25),
        "by leases that ended"
    );
    assert!(
        tokens.windows(2).all(|pair| pair[0] < pair[1]),
        "{tokens:?}"
    );
    control.is_free("k");
}

#[test]
fn nothing_is_left_of_ten_thousand_locks() {
    const NAMES: usize = 10_000;
    const PART: usize = 500;
    let server = Server::start();
    let used_memory = || {
        let memory = server.info_field("memory", "used_memory").unwrap();
        memory.parse::<i64>().unwrap()
    };
    let mut used = Vec::new();
    for _round in 0..4 {
        let mut control = server.raw();
        for part in 0..NAMES / PART {
            let names = (part * PART..(part + 1) * PART).map(|n| format!("lock:{n}"));
            let pairs: Vec<_> = names
                .flat_map(|name| {
                    let acquire = format!("RLOCK.ACQUIRE {name} a 60000");
                    [acquire, format!("RLOCK.RELEASE {name} a")]
                })
                .collect();
            for pair in control.ask_all(&pairs).chunks(2) {
                token(pair[0].clone());
                assert_eq!(pair[1], Value::Int(0));
            }
        }
        assert_eq!(control.int("DBSIZE"), 0);
        // Its buffers go with it; those of the connection that asks are always the same.
        drop(control);
        eventually("nobody else is connected", || {
            server.info_field("clients", "connected_clients").as_deref() == Some("1")
        });
        used.push(used_memory());
    }
    // The server gives back some of its own a while later, and on a busy machine has a hundred KB
    // more or less; what leaks of 20,000 locks is more.
    eventually("no more is used than after two rounds", || {
        used_memory() - used[1] < 256 * 1024
    });
}

#[test]
fn memory_of_locks_and_waiters_comes_back() {
    let server = Server::start();
    let mut control = server.raw();
    let mut most = None;
    for round in 0..6 {
        let held: Vec<_> = (0..2000)
            .map(|n| format!("RLOCK.ACQUIRE lock:{n} a 60000"))
            .collect();
        control.ask_all(&held);
        let mut waiters: Vec<_> = (0..100)
            .map(|n| Waiter::new(&server, "lock:7", &format!("w{n}")))
            .collect();
        for waiter in waiters.drain(..50) {
            waiter.client.close();
        }
        control.ask("FLUSHALL");
        for (n, mut waiter) in waiters.into_iter().enumerate() {
            waiter.token();
            let owner = n + 50;
            assert_eq!(control.int(&format!("RLOCK.RELEASE lock:7 w{owner}")), 0);
        }
        assert_eq!(control.int("DBSIZE"), 0);
        // Clients are freed, and a database is flushed, some time later.
        let used = || -> i64 {
            let memory = server.info_field("memory", "used_memory").unwrap();
            memory.parse().unwrap()
        };
        match most {
            None if round == 0 => {}
            None => most = Some(used() + 256 * 1024),
            Some(most) => eventually("the memory comes back", || used() < most),
        }
    }
}

#[test]
fn work_that_outlasts_its_lease_does_not_free_the_next_ones_lock() {
    let server = Server::start();
    let mut slow = server.raw();
    let mut control = server.raw();
    let start = now_ms();
    let first = slow.token("RLOCK.ACQUIRE k slow 300");
    let mut next = Waiter::with(&server, "k next 100000 BLOCK 0");
    assert!(next.token() > first);
    let granted = now_ms();
    assert!(granted >= start + 300, "after {} ms", granted - start);
    assert!(granted < start + 5000, "after {} ms", granted - start);
    pass(start + 500);
    assert_eq!(slow.code("RLOCK.RELEASE k slow"), "NOTHELD");
    assert_eq!(slow.code("RLOCK.RENEW k slow 1000"), "NOTHELD");
    assert_eq!(control.hash("k"), "next=1");
    assert_eq!(next.client.int("RLOCK.RELEASE k next"), 0);
}

#[test]
fn memory_does_not_grow_with_the_grants_after_a_wait() {
    const GRANTS: usize = 2000;
    let server = Server::start();
    let [mut one, mut other] = [server.raw(), server.raw()];
    let mut used = Vec::new();
    one.token("RLOCK.ACQUIRE k a 600000");
    for _ in 0..3 {
        for _ in 0..GRANTS {
            // What is sent last waits, and gets what is given back.
            other.send("RLOCK.ACQUIRE k b 600000 BLOCK 0");
            eventually("it waits", || {
                one.ask("RLOCK.TOP") != Value::Array(Vec::new())
            });
            assert_eq!(one.int("RLOCK.RELEASE k a"), 0);
            token(other.read());
            std::mem::swap(&mut one, &mut other);
            assert_eq!(one.int("RLOCK.RELEASE k b"), 0);
            one.token("RLOCK.ACQUIRE k a 600000");
        }
        let memory = server.info_field("memory", "used_memory").unwrap();
        used.push(memory.parse::<i64>().unwrap());
    }
    let grown = used[2] - used[1];
    assert!(grown < 64 * 1024, "grew by {grown} over {used:?}");
}

//! A read lock whose slot moves, in every order in which its keys can move: the hash,
//! the lease keys of its readers, the fencing counter.

use std::time::Duration;

use redis::Value;

use crate::support::ask::Ask;
use crate::support::locks::{code, int, token, Say, LONG};
use crate::support::look::held_by;
use crate::support::nodes::{is_try_again, two_nodes, Move};
use crate::support::read_write::{lease_key, leases, read, wait_write};
use crate::support::Server;

/// All orders of so many things.
pub fn orders(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let shorter = orders(count - 1).into_iter();
    let put = |order: Vec<usize>| {
        (0..count).map(move |place| {
            let mut order = order.clone();
            order.insert(place, count - 1);
            order
        })
    };
    shorter.flat_map(put).collect()
}

/// The keys of a lock that `a` reads twice and `b` once, and its counter.
pub fn keys_of(lock: &str) -> [String; 5] {
    [
        lock.to_owned(),
        lease_key(lock, "a", 1),
        lease_key(lock, "a", 2),
        lease_key(lock, "b", 1),
        format!("redisson_lock_token:{{{lock}}}"),
    ]
}

/// Nobody gets in beside the readers, wherever he asks.
#[track_caller]
fn nobody_else_is_let_in(slot: &mut Move, lock: &str, hash_is_there: bool) {
    for mode in ["WRITE", ""] {
        let line = format!("RLOCK.ACQUIRE {lock} w {LONG} {mode}");
        let reply = slot.here.say(&line);
        let sent_on = matches!(&reply, Value::ServerError(error) if error.code() == "ASK");
        assert_eq!(sent_on, hash_is_there, "{line}: {reply:?}");
        let reply = match sent_on {
            true => slot.asking(&line),
            false => reply,
        };
        assert!(
            reply == Value::Nil || is_try_again(&reply),
            "{line}: {reply:?}"
        );
    }
    let forced = slot.ask(&format!("RLOCK.FORCE {lock}"));
    assert!(is_try_again(&forced), "{forced:?}");
}

/// Both read on, and renew where their lease keys are with the hash. There `a` gives up
/// a hold of two and takes it again, if the counter is there too.
#[track_caller]
fn the_readers_live(slot: &mut Move, lock: &str, with_counter: bool) {
    for owner in ["a", "b"] {
        let renewed = slot.ask(&format!("RLOCK.RENEW {lock} {owner} {LONG} READ"));
        if is_try_again(&renewed) {
            let released = slot.ask(&format!("RLOCK.RELEASE {lock} {owner} READ"));
            assert!(is_try_again(&released), "{released:?}");
            continue;
        }
        assert_eq!(renewed, Value::Int(1), "{owner}");
        if with_counter && owner == "a" {
            assert_eq!(
                int(slot.ask(&format!("RLOCK.RELEASE {lock} {owner} READ"))),
                1
            );
            token(slot.ask(&format!("RLOCK.ACQUIRE {lock} {owner} {LONG} READ")));
        }
    }
}

fn two_with_counters() -> (Server, Server) {
    let (one, two) = two_nodes();
    for node in [&one, &two] {
        node.raw().ok("CONFIG SET rlock.fencing counter");
    }
    (one, two)
}

#[test]
fn no_reader_is_lost_and_no_writer_let_in_whatever_moves_first() {
    let (one, two) = two_with_counters();
    for (number, order) in orders(5).into_iter().enumerate() {
        let lock = format!("doc{number}");
        let keys = keys_of(&lock);
        let mut slot = Move::before(&lock, &one, &two);
        read(&mut slot.here, &lock, "a");
        read(&mut slot.here, &lock, "a");
        read(&mut slot.here, &lock, "b");
        slot.begin();
        let mut waiter = wait_write(&one, &lock, "waits");
        for (step, at) in order.iter().enumerate() {
            slot.over(&keys[*at]);
            let hash_is_there = order[..=step].contains(&0);
            let leases_are = order[..=step]
                .iter()
                .filter(|at| (1..4).contains(*at))
                .count();
            let whole = leases_are == if hash_is_there { 3 } else { 0 };
            if whole {
                continue;
            }
            nobody_else_is_let_in(&mut slot, &lock, hash_is_there);
            let with_counter = order[..=step].contains(&4) == hash_is_there;
            the_readers_live(&mut slot, &lock, with_counter);
            assert!(
                waiter.client.read_within(Duration::ZERO).is_none(),
                "{order:?}"
            );
        }
        slot.arrive();
        assert_eq!(code(&waiter.client.read()), "MOVED", "{order:?}");
        let there = &mut slot.there;
        assert_eq!(held_by(there, &lock), "a read 2, b read 1", "{order:?}");
        assert_eq!(leases(there, &lock, "a").len(), 2, "{order:?}");
        assert_eq!(leases(there, &lock, "b").len(), 1, "{order:?}");
        assert!(there.refused(&format!("RLOCK.ACQUIRE {lock} w 1000 WRITE")));
        for (owner, left) in [("a", 1), ("a", 0), ("b", 0)] {
            let released = there.say(&format!("RLOCK.RELEASE {lock} {owner} READ"));
            assert_eq!(int(released), left, "{order:?}");
        }
        there.int(&format!("RLOCK.ACQUIRE {lock} w 1000 WRITE"));
        let left = slot.here.say(&format!("RLOCK.INFO {lock}"));
        assert_eq!(code(&left), "MOVED", "{order:?}");
    }
}

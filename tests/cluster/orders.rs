//! A read lock whose slot moves, in every order in which its keys can move: the hash,
//! the lease keys of its readers, the fencing counter.

use redis::Value;

use crate::support::{
    both_ways, code, int, is_try_again, keys_of, orders, two_nodes_with_counters, Ask, Move, Way,
    LONG,
};

/// Nobody gets in beside the readers, wherever he asks.
#[track_caller]
fn nobody_else_is_let_in(slot: &mut Move, lock: &str, hash_is_there: bool) {
    for mode in ["WRITE", ""] {
        let line = format!("RLOCK.ACQUIRE {lock} w {LONG} {mode}");
        let reply = slot.here.ask(&line);
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
            assert_eq!(slot.int(&format!("RLOCK.RELEASE {lock} {owner} READ")), 1);
            slot.token(&format!("RLOCK.ACQUIRE {lock} {owner} {LONG} READ"));
        }
    }
}

both_ways!(no_reader_is_lost_and_no_writer_let_in_whatever_moves_first);
fn no_reader_is_lost_and_no_writer_let_in_whatever_moves_first(by: Way) {
    let (one, two) = two_nodes_with_counters();
    for (number, order) in orders(5).into_iter().enumerate() {
        let lock = format!("doc{number}");
        let keys = keys_of(&lock);
        let mut slot = Move::before(&lock, &one, &two);
        slot.here.take_read(&lock, "a");
        slot.here.take_read(&lock, "a");
        slot.here.take_read(&lock, "b");
        slot.begin();
        let mut waiter = by.write(&one, &lock, "waits");
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
            waiter.still_waits();
        }
        slot.arrive();
        assert_eq!(code(&waiter.end()), "MOVED", "{order:?}");
        let there = &mut slot.there;
        assert_eq!(there.held_by(&lock), "a read 2, b read 1", "{order:?}");
        assert_eq!(there.leases(&lock, "a").len(), 2, "{order:?}");
        assert_eq!(there.leases(&lock, "b").len(), 1, "{order:?}");
        assert!(there.refused(&format!("RLOCK.ACQUIRE {lock} w 1000 WRITE")));
        for (owner, left) in [("a", 1), ("a", 0), ("b", 0)] {
            let released = there.ask(&format!("RLOCK.RELEASE {lock} {owner} READ"));
            assert_eq!(int(released), left, "{order:?}");
        }
        there.int(&format!("RLOCK.ACQUIRE {lock} w 1000 WRITE"));
        let left = slot.here.code(&format!("RLOCK.INFO {lock}"));
        assert_eq!(left, "MOVED", "{order:?}");
    }
}

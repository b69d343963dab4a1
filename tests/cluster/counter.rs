//! The fencing counter of a lock whose slot moves: there are never two of it, and tokens
//! go on rising.

use std::time::Duration;

use redis::Value;

use crate::support::{
    asking, both_ways, code, eventually, int, is_try_again, lease_key, token, two_nodes,
    two_nodes_with_counters, Ask, Move, Way, LONG,
};

/// Greater than any token by the clock.
const FAR_AHEAD: i64 = 5_000_000_000_000_000;

#[test]
fn nothing_is_granted_where_the_counter_has_not_arrived() {
    let (one, two) = two_nodes_with_counters();
    let mut slot = Move::before("k", &one, &two);
    slot.here
        .ok(&format!("SET redisson_lock_token:{{k}} {FAR_AHEAD}"));
    slot.begin();
    for line in [
        "RLOCK.ACQUIRE k a 100000",
        "RLOCK.ACQUIRE k a 100000 BLOCK 0",
        "RLOCK.ACQUIRE k a 100000 READ",
        "RLOCK.ACQUIRE k a 100000 WRITE",
        "RLOCK.MACQUIRE 1 k a 100000",
    ] {
        let reply = slot.ask(line);
        assert!(is_try_again(&reply), "{line}: {reply:?}");
        assert_eq!(slot.there.int("DBSIZE"), 0, "{line}");
    }
    slot.over("redisson_lock_token:{k}");
    assert_eq!(slot.int("RLOCK.ACQUIRE k a 100000"), FAR_AHEAD + 1);
    slot.arrive();
    assert_eq!(slot.there.int("RLOCK.RELEASE k a"), 0);
    assert_eq!(slot.there.int("RLOCK.ACQUIRE k b 100000"), FAR_AHEAD + 2);
}

#[test]
fn a_lock_without_a_counter_gets_one_when_its_slot_has_arrived() {
    let (one, two) = two_nodes_with_counters();
    let mut slot = Move::of("k", &one, &two);
    assert!(is_try_again(&slot.ask("RLOCK.ACQUIRE k a 100000")));
    slot.arrive();
    let first = slot.there.token("RLOCK.ACQUIRE k a 100000");
    let counted = slot.there.text("GET redisson_lock_token:{k}");
    assert_eq!(counted, first.to_string());
}

both_ways!(no_second_counter_is_made_where_the_first_has_gone_ahead);
fn no_second_counter_is_made_where_the_first_has_gone_ahead(by: Way) {
    let (one, two) = two_nodes_with_counters();
    let mut slot = Move::before("doc", &one, &two);
    slot.here.take_read("doc", "a");
    let held = slot.here.token("RLOCK.ACQUIRE {doc}plain a 100000");
    let mut waiter = by.wait(&one, "{doc}plain", "waits");
    slot.begin();
    slot.over("redisson_lock_token:{doc}");
    slot.over("redisson_lock_token:{doc}plain");
    for line in [
        "RLOCK.ACQUIRE doc b 100000 READ",
        "RLOCK.ACQUIRE doc a 100000 WRITE",
        "RLOCK.ACQUIRE doc a 100000 WRITE BLOCK 0",
    ] {
        let reply = slot.here.ask(line);
        assert!(is_try_again(&reply), "{line}: {reply:?}");
    }
    // A hold that nests has its token already.
    let nested = slot.here.ask("RLOCK.ACQUIRE {doc}plain a 100000");
    assert_eq!(int(nested), held);
    assert_eq!(slot.here.int("RLOCK.RELEASE {doc}plain a ALL"), 0);
    waiter.still_waits();
    for key in [
        "redisson_lock_token:{doc}",
        "redisson_lock_token:{doc}plain",
    ] {
        assert_eq!(slot.asking(&format!("EXISTS {key}")), Value::Int(1));
        let here = slot.here.ask(&format!("EXISTS {key}"));
        assert_eq!(code(&here), "ASK");
    }
    slot.over("doc");
    slot.over(&lease_key("doc", "a", 1));
    slot.arrive();
    assert_eq!(code(&waiter.end()), "MOVED");
    let next = slot.there.token("RLOCK.ACQUIRE {doc}plain b 100000");
    assert!(next > held, "{held} {next}");
}

both_ways!(who_waits_for_a_counter_gets_the_lock_when_the_slot_stays);
fn who_waits_for_a_counter_gets_the_lock_when_the_slot_stays(by: Way) {
    let (one, two) = two_nodes_with_counters();
    let mut slot = Move::before("k", &one, &two);
    let held = slot.here.take("k", "a");
    slot.here.take_read("{k}doc", "a");
    let mut plain = by.wait(&one, "k", "waits");
    let mut writer = by.write(&one, "{k}doc", "waits");
    slot.begin();
    let counters = ["redisson_lock_token:{k}", "redisson_lock_token:{k}doc"];
    for counter in counters {
        slot.over(counter);
    }
    assert_eq!(slot.here.int("RLOCK.RELEASE k a"), 0);
    assert_eq!(slot.here.int("RLOCK.RELEASE {k}doc a READ"), 0);
    for waiter in [&mut plain, &mut writer] {
        assert_eq!(waiter.end_within(Duration::from_millis(300)), None);
    }
    slot.stay();
    let next = plain.token();
    assert!(next > held, "{held} {next}");
    writer.token();
    eventually("the counter has the token", || {
        slot.here.text("GET redisson_lock_token:{k}") == next.to_string()
    });
}

#[test]
fn by_the_clock_a_lock_is_had_where_its_slot_moves_to() {
    let (one, two) = two_nodes();
    let mut slot = Move::of("k", &one, &two);
    let mut holder = two.raw();
    let first = token(asking(&mut holder, &format!("RLOCK.ACQUIRE k a {LONG}")));
    assert!(slot.refused("RLOCK.ACQUIRE k b 1000"));
    assert_eq!(slot.int("RLOCK.RELEASE k a"), 0);
    let second = slot.token(&format!("RLOCK.ACQUIRE k b {LONG}"));
    assert!(second > first);
    slot.arrive();
    assert_eq!(slot.there.int("RLOCK.RELEASE k b"), 0);
}

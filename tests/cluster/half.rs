//! A read lock of which a part has moved to another node with its slot: what time does
//! to it, and what its connections do.

use redis::Value;

use crate::support::{
    asking, both_ways, code, eventually, int, is_try_again, keys_in_slot, lease_key, now_ms, pass,
    slot_of, token, two_nodes, Ask, Bound, Move, RawClient, Way, LONG,
};

/// Takes a read lock for so long; when its lease ends.
#[track_caller]
fn read_for(client: &mut RawClient, key: &str, owner: &str, lease: i64) -> i64 {
    client.token(&format!("RLOCK.ACQUIRE {key} {owner} {lease} READ"));
    client.deadline(&lease_key(key, owner, 1))
}

both_ways!(a_reader_whose_lease_key_has_gone_ahead_lives_until_its_lease_ends);
fn a_reader_whose_lease_key_has_gone_ahead_lives_until_its_lease_ends(by: Way) {
    let (one, two) = two_nodes();
    let mut slot = Move::before("doc", &one, &two);
    slot.here.take_read("doc", "stays");
    let ends = read_for(&mut slot.here, "doc", "goes", 700);
    let mut waiter = by.write(&one, "doc", "waits");
    slot.begin();
    slot.over(&lease_key("doc", "stays", 1));
    slot.over(&lease_key("doc", "goes", 1));
    let held = slot.here.held_by("doc");
    assert!(
        held == "goes read 1, stays read 1" || now_ms() >= ends,
        "{held}"
    );
    eventually("the lease is over", || {
        slot.here.hash("doc") == "mode=read stays=1"
    });
    assert!(now_ms() > ends);
    waiter.still_waits();
    slot.over("doc");
    slot.arrive();
    assert_eq!(code(&waiter.end()), "MOVED");
    assert_eq!(slot.there.held_by("doc"), "stays read 1");
}

#[test]
fn a_reader_found_without_its_lease_key_lives_until_the_slot_has_arrived() {
    let (one, two) = two_nodes();
    let mut slot = Move::before("doc", &one, &two);
    slot.here.take_read("doc", "lives");
    slot.here.take_read("doc", "dead");
    slot.begin();
    slot.over("doc");
    let reply = slot.asking("RLOCK.ACQUIRE doc w 1000 WRITE");
    assert!(is_try_again(&reply), "{reply:?}");
    let mut waits = two.raw();
    let line = format!("RLOCK.ACQUIRE doc w {LONG} WRITE BLOCK 0");
    let reply = asking(&mut waits, &line);
    assert!(is_try_again(&reply), "{reply:?}");
    slot.over(&lease_key("doc", "lives", 1));
    slot.here
        .int(&format!("DEL {}", lease_key("doc", "dead", 1)));
    slot.arrive();
    // Nobody touches it: the reader that has no lease key anywhere goes by itself.
    eventually("the dead reader is gone", || {
        slot.there.hash("doc") == "lives=1 mode=read"
    });
    assert!(slot.there.refused("RLOCK.ACQUIRE doc w 1000 WRITE"));
}

#[test]
fn who_waits_at_the_node_that_a_lock_moves_to_gets_it_there() {
    let (one, two) = two_nodes();
    let mut slot = Move::before("doc", &one, &two);
    let mut plain = Move::before("{doc}plain", &one, &two);
    slot.here.take_read("doc", "a");
    slot.here
        .token(&format!("RLOCK.ACQUIRE {{doc}}plain a {LONG}"));
    slot.begin();
    for key in ["doc", "{doc}plain", &lease_key("doc", "a", 1)] {
        slot.over(key);
    }
    let mut waiters = ["doc w 100000 WRITE BLOCK 0", "{doc}plain w 100000 BLOCK 0"].map(|args| {
        let mut client = two.raw();
        client.send_all(&["CLIENT ID", "ASKING", &format!("RLOCK.ACQUIRE {args}")]);
        int(client.read());
        assert_eq!(client.read(), Value::Okay);
        client
    });
    assert_eq!(int(plain.asking("RLOCK.RELEASE {doc}plain a")), 0);
    token(waiters[1].read());
    slot.arrive();
    assert_eq!(waiters[0].heard(), None);
    assert_eq!(slot.there.int("RLOCK.RELEASE doc a READ"), 0);
    token(waiters[0].read());
}

both_ways!(a_watchdog_keeps_a_reader_whose_lease_key_is_elsewhere_for_longer_than_its_lease);
fn a_watchdog_keeps_a_reader_whose_lease_key_is_elsewhere_for_longer_than_its_lease(by: Way) {
    let (one, two) = two_nodes();
    let mut slot = Move::before("doc", &one, &two);
    let mut bound = Bound::with(&one, "doc a 1200 READ");
    let lease = lease_key("doc", "a", 1);
    let mut waiter = by.write(&one, "doc", "waits");
    slot.begin();
    slot.over(&lease);
    pass(now_ms() + 2500);
    bound.client.in_step();
    waiter.still_waits();
    // Where it was it has run out meanwhile, and is here again.
    slot.stay();
    pass(now_ms() + 1000);
    bound.client.in_step();
    assert_eq!(slot.here.held_by("doc"), "a read 1");
    bound.client.close();
    waiter.token();
}

#[test]
fn a_watchdog_keeps_a_lock_that_was_taken_where_its_slot_moves_to() {
    let (one, two) = two_nodes();
    let mut slot = Move::of("doc", &one, &two);
    let mut bound: Vec<_> = ["doc a 1200 READ", "{doc}plain a 1200"]
        .into_iter()
        .map(|args| {
            let mut client = two.raw();
            let reply = asking(&mut client, &format!("RLOCK.ACQUIRE {args} WATCHDOG"));
            token(reply);
            client
        })
        .collect();
    pass(now_ms() + 2500);
    for client in &mut bound {
        assert_eq!(client.ask("PING"), Value::SimpleString("PONG".to_owned()));
    }
    assert_eq!(int(slot.asking("RLOCK.RENEW doc a 60000 READ")), 1);
    assert_eq!(int(slot.asking("RLOCK.RENEW {doc}plain a 60000")), 1);
    slot.arrive();
    for client in &mut bound {
        assert_eq!(client.ask("PING"), Value::SimpleString("PONG".to_owned()));
    }
}

#[test]
fn a_writer_that_reads_too_stops_writing_while_its_lease_key_is_elsewhere() {
    let (one, two) = two_nodes();
    let mut slot = Move::before("doc", &one, &two);
    slot.here.take_write("doc", "a");
    slot.here.take_read("doc", "a");
    slot.begin();
    slot.over(&lease_key("doc", "a", 1));
    assert_eq!(slot.here.int("RLOCK.RELEASE doc a WRITE"), 0);
    for line in [
        "RLOCK.ACQUIRE doc a 1000 WRITE",
        "RLOCK.ACQUIRE doc a 1000 READ",
        "RLOCK.RELEASE doc a READ",
        "RLOCK.RENEW doc a 1000 READ",
        "RLOCK.FORCE doc",
    ] {
        let before = slot.here.state(b"doc");
        let reply = slot.here.ask(line);
        assert!(is_try_again(&reply), "{line}: {reply:?}");
        assert_eq!(slot.here.state(b"doc"), before, "{line}");
    }
    // Another reader can join: all that it needs is here.
    slot.here.token("RLOCK.ACQUIRE doc b 100000 READ");
    slot.over("doc");
    slot.over(&lease_key("doc", "b", 1));
    slot.arrive();
    assert_eq!(slot.there.held_by("doc"), "a read 1, b read 1");
}

both_ways!(a_lock_that_has_gone_ahead_is_not_given_to_who_waits_for_it_and_another);
fn a_lock_that_has_gone_ahead_is_not_given_to_who_waits_for_it_and_another(by: Way) {
    let (one, two) = two_nodes();
    let mut slot = Move::before("{t}", &one, &two);
    let take = "RLOCK.MACQUIRE 2 {t}ahead {t}here a 3600000";
    slot.here.token(take);
    let mut many = by.many(&one, "{t}ahead {t}here", "m");
    let mut single = by.wait(&one, "{t}ahead", "s");
    slot.begin();
    slot.over("{t}ahead");
    // This key is here, and whoever waits for it is looked at.
    assert_eq!(slot.here.int("RLOCK.RELEASE {t}here a"), 0);
    let tag = i64::from(slot_of("{t}"));
    assert_eq!(keys_in_slot(&mut slot.here, tag), [""; 0]);
    many.still_waits();
    // And now whoever stands behind it.
    if by == Way::Block {
        assert_eq!(slot.here.int(&format!("CLIENT UNBLOCK {}", many.id)), 1);
        assert_eq!(many.end(), Value::Nil);
    } else {
        many.client.close();
        eventually("it is gone", || slot.here.counter("rlock_waiting") == 1);
    }
    assert_eq!(keys_in_slot(&mut slot.here, tag), [""; 0]);
    single.still_waits();
    slot.arrive();
    assert_eq!(code(&single.end()), "MOVED");
    assert_eq!(slot.there.int("RLOCK.RELEASE {t}ahead a"), 0);
}

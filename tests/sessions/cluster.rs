//! Sessions in a cluster: their channels are sharded ones of any slot of the node, and who
//! waits where a slot has gone is told, and keeps its connection.

use redis::PushKind;

use crate::support::{cluster, two_nodes, Ask, Move, Session, Waiter, BOUND, LONG};

#[test]
fn a_sharded_channel_of_any_slot_will_do_and_no_other() {
    let server = cluster();
    let mut control = server.raw();
    control.take("k", "x");
    let mut session = Session::new(&server);
    session.queue("k", "a", "t");
    let mut plain = server.raw();
    plain.ask("SUBSCRIBE plain");
    let refused = session
        .client
        .error("RLOCK.ACQUIRE k b 1000 QUEUE 0 NOTIFY plain t2");
    assert!(refused.starts_with("ERR nobody is subscribed"), "{refused}");
    assert!(refused.contains(": SSUBSCRIBE to it"), "{refused}");
    let mut resp2 = server.raw();
    let refused = resp2.error("RLOCK.ACQUIRE k b 1000 QUEUE 0 NOTIFY plain t2");
    assert!(refused.contains("SSUBSCRIBE"), "{refused}");
    control.release("k", "x");
    session.granted("t");
}

#[test]
fn who_is_queued_for_a_key_whose_slot_has_gone_is_notified() {
    let (one, two) = two_nodes();
    let mut slot = Move::before("k", &one, &two);
    slot.here.take("k", "x");
    slot.here.take("{k}many", "x");
    slot.here.take("stays", "x");
    let mut session = Session::new(&one);
    session.queue("k", "a", "t1");
    session.queue("k", "b", "t2");
    session.queue_by(
        &format!("RLOCK.MACQUIRE 2 {{k}}many {{k}}free a {LONG}"),
        "many",
    );
    session.queue("stays", "a", "stays");
    let mut blocked = Waiter::new(&one, "k", "c");
    slot.begin();
    slot.over("k");
    session.is_quiet();
    slot.over("{k}many");
    slot.arrive();
    for tag in ["t1", "t2"] {
        let told = session.about(tag);
        assert!(told.starts_with(&format!("error {tag} MOVED ")), "{told}");
    }
    let told = session.about("many");
    assert!(told.starts_with("error many MOVED "), "{told}");
    assert_eq!(crate::support::code(&blocked.end()), "MOVED");
    // Its connection goes on, with its other wait.
    session.is_quiet();
    slot.here.release("stays", "x");
    session.granted("stays");
    assert_eq!(slot.there.held_by("k"), "x exclusive 1");
}

#[test]
fn a_cancel_while_a_slot_moves_ends_a_wait_or_is_sent_on() {
    let (one, two) = two_nodes();
    let mut slot = Move::before("k", &one, &two);
    slot.here.take("k", "x");
    let mut session = Session::new(&one);
    session.queue("k", "a", "t1");
    session.queue("k", "b", "t2");
    let mut blocked = Waiter::new(&one, "k", "c");
    slot.begin();
    // The key is here yet.
    assert_eq!(session.client.int("RLOCK.CANCEL k a"), 1);
    assert_eq!(session.next(), "timeout t1");
    slot.over("k");
    // It is not, and its waits are.
    for owner in ["b", "c"] {
        let sent_on = session.client.error(&format!("RLOCK.CANCEL k {owner}"));
        assert!(sent_on.starts_with("ASK "), "{sent_on}");
    }
    session.is_quiet();
    slot.arrive();
    let told = session.next();
    assert!(told.starts_with("error t2 MOVED "), "{told}");
    assert_eq!(crate::support::code(&blocked.end()), "MOVED");
    assert_eq!(slot.there.int("RLOCK.CANCEL k b"), 0);
}

#[test]
fn a_key_that_has_no_slot_to_watch_is_left_too() {
    // Nothing happens to a key that nobody holds here: its waits end all the same.
    let (one, two) = two_nodes();
    let mut slot = Move::before("k", &one, &two);
    slot.here.take("{k}held", "x");
    let mut session = Session::new(&one);
    session.queue_by(
        &format!("RLOCK.MACQUIRE 2 {{k}}free {{k}}held a {LONG}"),
        "t",
    );
    slot.begin();
    slot.over("{k}held");
    slot.arrive();
    let told = session.about("t");
    assert!(told.starts_with("error t MOVED "), "{told}");
}

#[test]
fn the_server_says_that_a_channel_is_gone_with_its_slot() {
    let (one, two) = two_nodes();
    let mut slot = Move::before("{session}", &one, &two);
    slot.here.take("k", "x");
    let mut session = Session::new(&one);
    session.queue("k", "a", "t");
    let mut next = Waiter::new(&one, "k", "b");
    slot.begin();
    slot.arrive();
    let (kind, _) = session.client.push_within(BOUND).expect("told");
    assert_eq!(kind, PushKind::SUnsubscribe);
    // It hears nothing there any more, so nothing is granted to it.
    slot.here.release("k", "x");
    next.token();
    session.client.in_step();
}

//! WANTED: who holds a lock and asks for it is told that somebody waits whom it keeps out.

use redis::Value;

use crate::support::{
    error, eventually, int, now_ms, pair, pass, two_nodes, Ask, Move, Server, Session, Waiter, Way,
    LONG,
};

/// A session that holds `k` by this lease and wants to know at `t`.
#[track_caller]
fn holder(server: &Server, lease: i64, words: &str) -> Session {
    let mut session = Session::new(server);
    let request = format!("RLOCK.ACQUIRE k a {lease} {words} WANTED");
    assert!(int(session.ask(&request, "t")) > 0);
    session
}

#[test]
fn it_is_told_when_somebody_begins_to_wait_in_either_way() {
    let server = Server::start();
    let mut control = server.raw();
    for way in Way::ALL {
        for words in ["", "WATCHDOG", "READ", "WRITE WATCHDOG", "LIMIT 1"] {
            println!("{way:?} {words}");
            let mut session = holder(&server, LONG, words);
            session.is_quiet();
            assert_eq!(control.only("k").wanted_ms, None);
            let wants = words.replace("READ", "WRITE").replace("WATCHDOG", "");
            let mut next = way.with(&server, &format!("k b {LONG} {wants} BLOCK 0"));
            assert_eq!(session.next(), "wanted t");
            let wanted_ms = control.only("k").wanted_ms;
            assert!(wanted_ms.is_some_and(|ms| ms >= 0), "{wanted_ms:?}");
            let mut behind = way.with(&server, &format!("k c {LONG} {wants} BLOCK 0"));
            session.is_quiet();
            let mode = words.replace("WATCHDOG", "").replace("LIMIT 1", "PERMITS");
            session.client.ask(&format!("RLOCK.RELEASE k a {mode}"));
            next.token();
            session.is_quiet();
            behind.still_waits();
            control.ok("FLUSHALL");
            behind.token();
            control.ok("FLUSHALL");
        }
    }
    server.alive();
}

#[test]
fn a_grant_says_that_somebody_waits_behind_it() {
    let server = Server::start();
    let mut control = server.raw();
    let mut session = Session::new(&server);
    for (key, behind) in [("alone", false), ("k", true)] {
        control.take(key, "x");
        let request = format!("RLOCK.ACQUIRE {key} a {LONG} WANTED");
        session.queue_by(&request, key);
        let waiter = behind.then(|| Waiter::new(&server, key, "b"));
        session.is_quiet();
        control.release(key, "x");
        let token = control.known_token(key, "a", "exclusive").expect("held");
        let told = session.next();
        match waiter {
            None => assert_eq!(told, format!("granted {key} {token}")),
            Some(_) => assert_eq!(told, format!("granted {key} {token} wanted")),
        }
        session.is_quiet();
    }
}

#[test]
fn what_is_granted_at_once_is_told_by_a_message_if_somebody_waits_already() {
    let server = Server::start();
    let mut session = Session::new(&server);
    let first = session.hold("k", "a", "", "first");
    let _next = Waiter::new(&server, "k", "b");
    session.is_quiet();
    // A second hold of the same owner, and then a renewal of both.
    assert_eq!(session.hold("k", "a", "WANTED", "t"), first);
    assert_eq!(session.next(), "wanted t");
    let renewed = session.ask(&format!("RLOCK.RENEW k a {LONG} WANTED"), "t");
    assert_eq!(renewed, Value::Int(1));
    assert_eq!(session.about("t"), "wanted t");
    session.heard();
    assert_eq!(
        session.ask(&format!("RLOCK.RENEW k a {LONG}"), "t"),
        Value::Int(1)
    );
    session.is_quiet();
    assert_eq!(server.raw().only("k").wanted_ms, None);
}

#[test]
fn it_is_told_again_every_third_of_the_lease_as_long_as_it_is_so() {
    let server = Server::start();
    let mut control = server.raw();
    let mut session = holder(&server, 1500, "WATCHDOG");
    let next = Waiter::new(&server, "k", "b");
    assert_eq!(session.next(), "wanted t");
    let begin = now_ms();
    for _ in 0..3 {
        assert_eq!(session.next(), "wanted t");
    }
    // The first of them may have been late in coming here.
    assert!(now_ms() - begin >= 900, "{}", now_ms() - begin);
    let wanted_ms = control.only("k").wanted_ms;
    assert!(wanted_ms.is_some_and(|ms| ms >= 1500), "{wanted_ms:?}");
    next.client.close();
    control.has_waiters("k", 0);
    eventually("it is known that nobody waits", || {
        control.only("k").wanted_ms.is_none()
    });
    session.heard();
    pass(now_ms() + 1200);
    session.is_quiet();
}

#[test]
fn who_only_tries_or_has_a_place_that_is_kept_is_nobody() {
    let server = Server::start();
    let mut control = server.raw();
    let mut session = holder(&server, 600, "WATCHDOG");
    assert_eq!(control.ask("RLOCK.ACQUIRE k b 1000"), Value::Nil);
    session.is_quiet();
    let gone = Way::Block.with(&server, &format!("k b {LONG} BLOCK 0 ONCE"));
    assert_eq!(session.next(), "wanted t");
    gone.client.close();
    control.has_waiters("k", 0);
    session.heard();
    pass(now_ms() + 700);
    session.is_quiet();
    let _back = Way::Block.with(&server, &format!("k b {LONG} BLOCK 0 ONCE"));
    assert_eq!(session.next(), "wanted t");
}

#[test]
fn a_reader_is_in_the_way_of_who_writes_alone() {
    let server = Server::start();
    let mut session = holder(&server, LONG, "READ");
    let mut other = Session::new(&server);
    other.ask(&format!("RLOCK.ACQUIRE k c {LONG} READ WANTED"), "u");
    session.is_quiet();
    let writes = Way::Block.write(&server, "k", "w");
    assert_eq!(session.next(), "wanted t");
    assert_eq!(other.next(), "wanted u");
    let mut reads = Way::Block.read(&server, "k", "r");
    session.is_quiet();
    // With the writer gone the reader comes in beside them.
    writes.client.close();
    reads.token();
    session.is_quiet();
    other.is_quiet();
}

#[test]
fn who_waits_for_several_locks_is_somebody_once_it_can_have_the_others() {
    let server = Server::start();
    let mut control = server.raw();
    control.take("j", "x");
    let mut session = holder(&server, LONG, "");
    let mut next = Way::Queue.many(&server, "j k l", "b");
    session.is_quiet();
    control.release("j", "x");
    assert_eq!(session.next(), "wanted t");
    session.client.release("k", "a");
    next.token();
}

#[test]
fn who_waits_as_redisson_does_is_somebody_as_long_as_it_listens() {
    let server = Server::start();
    let mut session = holder(&server, 900, "WATCHDOG");
    let waits = server.waits_as_redisson("redisson_lock__channel:{k}");
    for _ in 0..3 {
        assert_eq!(session.next(), "wanted t");
    }
    waits.close();
    session.client.in_step();
    pass(now_ms() + 700);
    session.heard();
    pass(now_ms() + 700);
    session.is_quiet();
}

#[test]
fn the_word_needs_notify_and_a_connection_and_some_commands_do_not_take_it() {
    let server = Server::start();
    let mut control = server.raw();
    let mut session = Session::new(&server);
    let needs = "ERR WANTED needs NOTIFY channel tag: the channel on which a message says that \
                 somebody waits for the hold";
    for request in [
        "RLOCK.ACQUIRE k a 1000 WANTED",
        "RLOCK.ACQUIRE k a 1000 QUEUE 0 WANTED",
        "RLOCK.RENEW k a 1000 WANTED WATCHDOG",
    ] {
        assert_eq!(control.error(request), needs, "{request}");
    }
    for request in [
        "RLOCK.ACQUIRE k a 1000 WANTED wanted",
        "RLOCK.MACQUIRE 2 j k a 1000 WANTED",
        "RLOCK.MRENEW 1 k a 1000 WANTED",
        "RLOCK.RELEASE k a WANTED",
    ] {
        let line = error(session.ask(request, "t"));
        assert!(
            line.starts_with("ERR syntax error at "),
            "{request}: {line}"
        );
    }
    let channel = session.channel.clone();
    for wait in ["", "'QUEUE', '0', "] {
        let script = format!(
            "return redis.call('RLOCK.ACQUIRE', 'k', 'a', '1000', {wait}'NOTIFY', '{channel}', \
             't', 'WANTED')"
        );
        let line = session.client.error(&["EVAL", &script, "1", "k"]);
        let told = "NOTIFY notifies a connection of its hold, and a script, a function or a module";
        assert!(line.contains(told), "{line}");
    }
    control.is_free("k");
    // In any order, and in MULTI.
    let request = format!("RLOCK.ACQUIRE k a {LONG} wanted");
    session.client.ask("MULTI");
    session.ask(&request, "t");
    let replies = session.client.list("EXEC");
    assert!(matches!(replies[..], [Value::Int(_)]), "{replies:?}");
    let _next = Waiter::new(&server, "k", "b");
    assert_eq!(session.next(), "wanted t");
}

#[test]
fn a_connection_that_watches_and_does_not_listen_any_more_is_closed() {
    let server = Server::start();
    let mut session = holder(&server, LONG, "WATCHDOG");
    session.client.send("UNSUBSCRIBE");
    session.client.in_step();
    let mut next = Waiter::new(&server, "k", "b");
    next.token();
    assert!(session.client.is_closed());
    // A plain lease outlives its connection, which is left alone.
    let mut session = holder_of(&server, "plain");
    session.client.send("UNSUBSCRIBE");
    session.client.in_step();
    let mut next = Waiter::new(&server, "plain", "b");
    session.client.in_step();
    next.still_waits();
}

#[track_caller]
fn holder_of(server: &Server, key: &str) -> Session {
    let mut session = Session::new(server);
    session.hold(key, "a", "WANTED", "t");
    session
}

#[test]
fn one_whose_output_buffer_overflows_with_it_is_closed_and_its_locks_are_the_next_ones() {
    const READERS: usize = 1000;
    let server = Server::start();
    let mut control = server.raw();
    control.limit_listeners(4000);
    let mut session = Session::new(&server);
    let notify = session.notify("t");
    let lines: Vec<String> = (0..READERS)
        .map(|n| format!("RLOCK.ACQUIRE k a{n} {LONG} READ WATCHDOG WANTED {notify}{n}"))
        .collect();
    for some in lines.chunks(20) {
        session.client.succeed(some);
    }
    let mut next = Waiter::write(&server, "k", "w");
    next.token();
    assert!(session.client.is_closed());
    assert_eq!(control.held_by("k"), "w write 1");
    server.alive();
}

#[test]
fn a_slot_that_moves_and_a_demotion_end_it() {
    let (one, two) = two_nodes();
    let mut session = holder(&one, 600, "WATCHDOG");
    let mut slot = Move::of("k", &one, &two);
    let _next = Way::Queue.wait(&one, "k", "b");
    assert_eq!(session.next(), "wanted t");
    slot.over("k");
    slot.arrive();
    let is_lost = |message: &String| message == "lost t moved";
    while !is_lost(&session.next()) {}
    session.client.in_step();
    pass(now_ms() + 500);
    session.is_quiet();

    let (server, replica) = pair(&[]);
    let mut session = holder(&server, 600, "WATCHDOG");
    let _next = Waiter::new(&server, "k", "b");
    assert_eq!(session.next(), "wanted t");
    let line = format!("REPLICAOF 127.0.0.1 {}", replica.port());
    server.raw().ok(&line);
    while session.next() != "lost t demoted" {}
    pass(now_ms() + 500);
    session.is_quiet();
}

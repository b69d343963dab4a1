//! A connection that stops listening, or listens in another way, between QUEUED and the
//! grant: what it would not hear is not granted, and the next has it.

use redis::Value;

use super::{in_exec, in_one_turn, replied};
use crate::support::{bulk, list, queued, text, Ask, Listener, Server, Session, Waiter};

/// Of these the first waiter is no more a session.
const WAYS: [&str; 4] = [
    "UNSUBSCRIBE",
    "UNSUBSCRIBE CH",
    "RESET",
    "SUBSCRIBE other; UNSUBSCRIBE CH",
];

#[test]
fn who_does_not_listen_any_more_is_passed_over() {
    for way in WAYS {
        println!("{way}");
        let server = Server::start();
        let mut control = server.raw();
        control.take("k", "x");
        let mut session = Session::new(&server);
        session.queue("k", "a", "t1");
        let mut next = Waiter::new(&server, "k", "b");
        session.queue("k", "c", "t2");
        let mut last = Waiter::new(&server, "k", "d");
        for line in way.split(';') {
            session.client.send(&line.replace("CH", &session.channel));
        }
        // RESET has a reply, the others have pushes.
        let replies = usize::from(way == "RESET");
        session.client.read_many(replies);
        session.client.ask("PING");
        let mut events = Listener::keyspace(&server, 0);
        control.release("k", "x");
        next.token();
        assert_eq!(control.hash("k"), "b=1");
        assert_eq!(events.count("rlock.acquired", "k"), 1, "none for a");
        control.release("k", "b");
        last.token();
        assert_eq!(control.counter("rlock_queued"), 0);
        assert_eq!(control.counter("rlock_grants_revoked"), 0);
        session.client.ask("PING");
    }
}

#[test]
fn who_stops_listening_in_the_very_turn_of_its_grant_is_notified_or_has_nothing() {
    let server = Server::start();
    let mut control = server.raw();
    for round in 0..20 {
        control.take("k", "x");
        let mut session = Session::new(&server);
        session.queue("k", "a", "t");
        let mut next = Waiter::new(&server, "k", "b");
        let leave = ["UNSUBSCRIBE", "RESET"][round % 2];
        // Redis 7.0 tells of the first at once, and of what EXEC does when the turn is over.
        let release = match round / 2 % 2 {
            0 => "RLOCK.RELEASE k x",
            _ => in_exec(&mut control, "RLOCK.RELEASE k x"),
        };
        in_one_turn(
            &server,
            &mut [(&mut control, release), (&mut session.client, leave)],
        );
        assert_eq!(replied(&mut control), Value::Int(0));
        if leave == "RESET" {
            session.client.read();
        }
        session.client.in_step();
        match session.heard().pop() {
            Some(told) => {
                assert!(told.starts_with("granted t "), "{told}");
                assert_eq!(control.held_by("k"), "a exclusive 1");
                control.release("k", "a");
            }
            None => control.goes_to("k", "b exclusive 1"),
        }
        next.token();
        control.release("k", "b");
    }
}

#[test]
fn who_listens_again_in_time_is_granted() {
    let server = Server::start();
    let mut control = server.raw();
    control.take("k", "x");
    let mut session = Session::new(&server);
    session.queue("k", "a", "t");
    session.client.send("UNSUBSCRIBE");
    session.client.in_step();
    session.heard();
    session.subscribe();
    control.release("k", "x");
    session.granted("t");
}

#[test]
fn in_resp2_its_messages_come_as_those_of_a_channel() {
    let server = Server::start();
    let mut control = server.raw();
    control.take("k", "x");
    let mut session = Session::new(&server);
    session.queue("k", "a", "t");
    session.client.send("HELLO 2");
    assert!(matches!(session.client.read(), Value::Array(_)));
    control.release("k", "x");
    let token = control.known_token("k", "a", "exclusive").expect("held");
    let told = list(session.client.read());
    let expected = [
        bulk("message"),
        bulk(&session.channel),
        bulk(format!("granted t {token}")),
    ];
    assert_eq!(told, expected);
}

#[test]
fn with_replies_off_messages_come_all_the_same() {
    let server = Server::start();
    let mut control = server.raw();
    control.take("k", "x");
    let mut session = Session::new(&server);
    session.queue("k", "a", "t");
    session.client.send("CLIENT REPLY OFF");
    session.client.send(&format!(
        "RLOCK.ACQUIRE k b 100000 QUEUE 0 {}",
        session.notify("hidden")
    ));
    control.has_waiters("k", 2);
    control.release("k", "x");
    session.granted("t");
    control.release("k", "a");
    session.granted("hidden");
    session.client.ok("CLIENT REPLY ON");
    session.client.release("k", "b");
}

#[test]
fn another_that_listens_to_the_channel_receives_it_too() {
    let server = Server::start();
    let mut control = server.raw();
    control.take("k", "x");
    let mut session = Session::new(&server);
    let mut other = server.raw();
    other.ask(&format!("SUBSCRIBE {}", session.channel));
    session.queue("k", "a", "t");
    control.release("k", "x");
    let token = session.granted("t");
    let heard = list(other.read());
    assert_eq!(text(heard[2].clone()), format!("granted t {token}"));
    // What it was granted is its own: the end of the other's connection changes nothing.
    other.close();
    session.is_quiet();
    assert_eq!(control.held_by("k"), "a exclusive 1");
}

#[test]
fn a_time_out_whose_message_nobody_receives_ends_the_wait_all_the_same() {
    let server = Server::start();
    let mut control = server.raw();
    control.take("k", "x");
    let mut session = Session::new(&server);
    let request = format!("RLOCK.ACQUIRE k a 1000 QUEUE 100 {}", session.notify("t"));
    session.client.send_all(&[request.as_str(), "UNSUBSCRIBE"]);
    assert_eq!(session.client.read(), queued());
    session.client.in_step();
    control.has_waiters("k", 0);
    session.is_quiet();
}

//! QUEUE: how a wait for permits ended is told on the session's channel; CANCEL.

use redis::Value;

use crate::support::{both_ways, Ask, Server, Session, Way, LONG};

fn acquire(owner: &str, share: &str) -> String {
    format!("RLOCK.ACQUIRE k {owner} {LONG} {share}")
}

#[test]
fn each_end_of_a_wait_is_notified() {
    let server = Server::start();
    let mut control = server.raw();
    control.take_permits("k", "x", "LIMIT 4 PERMITS 2");
    control.take_permits("k", "y", "LIMIT 4 PERMITS 2");
    let mut session = Session::new(&server);
    session.queue_by(&acquire("a", "LIMIT 4"), "granted");
    session.queue_by(&acquire("b", "LIMIT 4 PERMITS 3"), "limit");
    let short = format!("{} QUEUE 300", acquire("c", "LIMIT 4"));
    session.ask(&short, "late");
    assert_eq!(session.about("late"), "timeout late");
    control.give_back("k", "x", 1);
    session.granted("granted");
    control.int("RLOCK.LIMIT k 2");
    let told = session.about("limit");
    let expected = "error limit WRONGLIMIT 'k' has a limit of 2 for now: ask for no more permits";
    assert_eq!(told, expected);
    session.is_quiet();

    control.ok("FLUSHALL");
    control.take("k", "x");
    session.queue_by(&acquire("a", "LIMIT 2"), "one");
    session.queue_by(&acquire("b", "LIMIT 3"), "other");
    session.queue_by(&acquire("c", "LIMIT 2 PERMITS 2"), "more");
    session.queue_by(&acquire("a", "LIMIT 2 PERMITS 2"), "never");
    control.release("k", "x");
    session.granted("one");
    let expected = "error other WRONGLIMIT 'k' is held with limit 2: ask with that one, or use \
                    another name";
    assert_eq!(session.about("other"), expected);
    // Its second request stands behind one that its own permit keeps waiting.
    let told = session.about("never");
    assert!(
        told.starts_with("error never DEADLOCK a waits for k ("),
        "{told}"
    );
    control.give_back("k", "a", 1);
    session.granted("more");
}

#[test]
fn what_can_be_had_at_once_is_replied() {
    let server = Server::start();
    let mut session = Session::new(&server);
    let reply = session.ask(
        &format!("{} QUEUE 0", acquire("a", "LIMIT 4 PERMITS 3")),
        "t",
    );
    let token = crate::support::token(reply);
    assert_eq!(session.client.known_token("k", "a", "permits"), Some(token));
    session.is_quiet();
    session.queue_by(&acquire("b", "LIMIT 4 PERMITS 2"), "u");
    session.client.give_back("k", "a", 1);
    assert!(session.granted("u") > token);
}

#[test]
fn a_superseded_request_is_notified_and_a_resent_one_is_not() {
    let server = Server::start();
    let mut control = server.raw();
    control.take_permits("k", "x", "LIMIT 4 PERMITS 4");
    let mut session = Session::new(&server);
    let line = format!("{} ONCE", acquire("a", "LIMIT 4 PERMITS 2"));
    session.queue_by(&line, "t");
    session.queue_by(&line, "t");
    session.is_quiet();
    session.queue_by(&line, "u");
    let expected = "error t SUPERSEDED a newer request of the same owner took the place";
    assert_eq!(session.next(), expected);
    assert_eq!(control.waiters("k"), 1);
    control.give_back("k", "x", 2);
    session.granted("u");
}

both_ways!(cancel_ends_the_waits_of_an_owner_in_the_mode_that_is_said);
fn cancel_ends_the_waits_of_an_owner_in_the_mode_that_is_said(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    control.take("k", "x");
    let mut permits = by.permits(&server, "k", "a", "LIMIT 4 PERMITS 2");
    let mut read = by.read(&server, "k", "a");
    let mut others = by.permits(&server, "k", "b", "LIMIT 4");
    assert_eq!(control.int("RLOCK.CANCEL k a WRITE"), 0);
    assert_eq!(control.int("RLOCK.CANCEL k c PERMITS"), 0);
    assert_eq!(control.int("RLOCK.CANCEL k a PERMITS"), 1);
    assert_eq!(permits.end(), Value::Nil);
    permits.client.in_step();
    assert_eq!(control.int("RLOCK.CANCEL k a PERMITS"), 0);
    assert_eq!(control.waiters("k"), 2);
    let mut permits = by.permits(&server, "k", "a", "LIMIT 4 PERMITS 2");
    // Without a mode all of them.
    assert_eq!(control.int("RLOCK.CANCEL k a"), 2);
    assert_eq!([permits.end(), read.end()], [Value::Nil, Value::Nil]);
    control.release("k", "x");
    others.token();
}

both_ways!(who_is_called_off_keeps_nobody_waiting);
fn who_is_called_off_keeps_nobody_waiting(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    control.take_permits("k", "x", "LIMIT 4 PERMITS 2");
    let mut big = by.permits(&server, "k", "a", "LIMIT 4 PERMITS 3");
    let mut one = by.permits(&server, "k", "b", "LIMIT 4");
    let mut two = by.permits(&server, "k", "c", "LIMIT 4");
    assert_eq!(control.int("RLOCK.CANCEL k a PERMITS"), 1);
    one.token();
    two.token();
    assert_eq!(big.end(), Value::Nil);
    // What is held is not called off.
    assert_eq!(control.int("RLOCK.CANCEL k b PERMITS"), 0);
    assert_eq!(control.permits("k"), "b=1 c=1 mode=permits 4 4 4 x=2");
}

#[test]
fn very_many_wait_on_one_connection() {
    const MANY: usize = 3000;
    let server = Server::start();
    let mut control = server.raw();
    control.take_permits("k", "x", "LIMIT 100 PERMITS 100");
    let mut session = Session::new(&server);
    let lines: Vec<String> = (0..MANY)
        .map(|n| {
            let share = format!("LIMIT 100 PERMITS {}", n % 7 + 1);
            format!(
                "{} QUEUE 0 {}",
                acquire(&format!("o{n}"), &share),
                session.notify(&format!("t{n}"))
            )
        })
        .collect();
    session.client.succeed(&lines);
    assert_eq!(control.waiters("k"), MANY as i64);
    control.give_back("k", "x", 100);
    let mut last = 0;
    for n in 0..MANY {
        let told = session.next();
        let words: Vec<&str> = told.split(' ').collect();
        assert_eq!(words[..2], ["granted", &format!("t{n}")], "in order");
        let token: i64 = words[2].parse().expect("a token");
        assert!(token > last);
        last = token;
        let release = format!("RLOCK.RELEASE k o{n} PERMITS ALL");
        assert_eq!(session.client.int(&release), 0);
    }
    control.nothing_left("k");
}

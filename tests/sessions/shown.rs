//! Sessions as an operator sees them: WAITERS, INFO, the log.

use redis::Value;

use crate::support::{eventually, int, map, text, Ask, RawClient, Server, Session, Waiter, LONG};

#[test]
fn those_who_are_queued_are_listed_with_the_others_in_the_order_of_the_queue() {
    let server = Server::start();
    let mut control = server.raw();
    control.take("k", "x");
    let mut session = Session::new(&server);
    session.queue("k", "a", "t1");
    let blocked = Waiter::new(&server, "k", "b");
    session.queue_by(&format!("RLOCK.ACQUIRE k c {LONG} READ"), "t2");
    let listed: Vec<(String, String, i64)> = control
        .list("RLOCK.WAITERS k")
        .into_iter()
        .map(map)
        .map(|entry| {
            let word = |name: &str| text(entry[name].clone());
            (word("owner"), word("mode"), int(entry["client-id"].clone()))
        })
        .collect();
    let of = |owner: &str, mode: &str, id| (owner.to_owned(), mode.to_owned(), id);
    let expected = [
        of("a", "exclusive", session.id),
        of("b", "exclusive", blocked.id),
        of("c", "read", session.id),
    ];
    assert_eq!(listed, expected);
    let found = control.info("k");
    assert_eq!(found.waiters, 3);
    assert!(found.oldest_wait_ms.is_some());
    let top = map(control.list("RLOCK.TOP").remove(0));
    assert_eq!(int(top["waiters"].clone()), 3);
}

#[test]
fn they_are_counted() {
    let server = Server::start();
    let mut control = server.raw();
    control.take("k", "x");
    let mut session = Session::new(&server);
    for n in 0..5 {
        session.queue("k", &format!("a{n}"), &format!("t{n}"));
    }
    let _blocked = Waiter::new(&server, "k", "b");
    assert_eq!(control.counter("rlock_queued"), 5);
    assert_eq!(control.counter("rlock_waiting"), 6);
    assert_eq!(control.counter("rlock_contended"), 6);
    control.int("RLOCK.CANCEL k a4");
    assert_eq!(control.counter("rlock_cancelled"), 1);
    assert_eq!(control.counter("rlock_queued"), 4);
    control.release("k", "x");
    session.granted("t0");
    assert_eq!(control.counter("rlock_queued"), 3);
    assert_eq!(control.counter("rlock_granted_after_wait"), 1);
    session.client.close();
    eventually("they are gone", || control.counter("rlock_queued") == 0);
    assert_eq!(control.counter("rlock_waiting"), 1);
}

/// The lines about lost holds.
fn lost(server: &Server) -> Vec<String> {
    let log = server.log();
    let lines = log.lines().filter_map(|line| {
        let at = line.find("rlock: lost: ")?;
        Some(line[at..].to_owned())
    });
    lines.collect()
}

/// Where a connection comes from.
fn address(client: &mut RawClient) -> String {
    let info = client.text("CLIENT INFO");
    let mut words = info.split_whitespace();
    let addr = words.find_map(|word| word.strip_prefix("addr="));
    addr.expect("an address").to_owned()
}

#[test]
fn a_lost_hold_is_a_line_of_the_log_with_key_owner_address_and_reason() {
    let server = Server::start();
    let mut control = server.raw();
    let mut session = Session::new(&server);
    let here = address(&mut session.client);
    session.hold("k", "a", "WATCHDOG", "t");
    control.int("RLOCK.FORCE k");
    assert_eq!(session.next(), "lost t forced");
    eventually("it is in the log", || lost(&server).len() == 1);
    let line = format!("rlock: lost: key 'k', owner 'a', client {here}, forced");
    assert_eq!(lost(&server), [line]);

    // Where the connection is closed the line says so.
    let mut bound = server.raw();
    let there = address(&mut bound);
    bound.token("RLOCK.ACQUIRE k b 100000 WATCHDOG");
    control.int("DEL k");
    assert!(bound.is_closed());
    let line = format!(
        "rlock: lost: key 'k', owner 'b', client {there}, deleted; closing its connection \
         (rlock.watchdog-lost)"
    );
    assert_eq!(lost(&server)[1..], [line]);
}

#[test]
fn of_very_many_lost_holds_at_once_the_log_names_some_and_counts_the_rest() {
    const MANY: usize = 5000;
    let server = Server::start();
    let mut session = Session::new(&server);
    for number in 0..MANY {
        session.hold(&format!("k{number}"), "a", "", &format!("t{number}"));
    }
    server.raw().ok("FLUSHALL");
    let count = |lines: &[String]| -> (usize, usize) {
        let more = |line: &String| -> Option<usize> {
            let line = line.strip_prefix("rlock: lost: ")?;
            let (more, _) = line.split_once(" more, not named one by one")?;
            more.parse().ok()
        };
        let named = lines.iter().filter(|line| line.contains(": key '"));
        (named.count(), lines.iter().filter_map(more).sum())
    };
    eventually("all are in the log", || {
        let (named, more) = count(&lost(&server));
        named + more == MANY
    });
    let (named, more) = count(&lost(&server));
    assert!(more > 0 && named >= 1000, "{named} and {more}");
}

#[test]
fn a_hold_that_is_taken_over_from_another_machine_is_a_line_of_the_log() {
    let server = Server::start_with(&["--bind", "127.0.0.1", "-::1", "--protected-mode", "no"]);
    // It stands for another machine.
    let Ok(mut there) = RawClient::at("::1", server.port()) else {
        println!("not tried: this machine has no ::1");
        return;
    };
    let mut here = server.raw();
    let words = format!("RLOCK.ACQUIRE k a {LONG} ONCE WATCHDOG");
    let token = here.token(&words);
    let line = |from: &str| format!("rlock: lost: key 'k', owner 'a', client {from}, rebound");
    let first = line(&address(&mut here));
    assert_eq!(there.token(&words), token);
    eventually("it is in the log", || lost(&server) == [first.clone()]);
    let second = line(&address(&mut there));
    assert_eq!(here.token(&words), token);
    eventually("that too", || {
        lost(&server) == [first.clone(), second.clone()]
    });
    assert_eq!(here.counter("rlock_once_rebound"), 2);
    here.in_step();
    there.in_step();
}

#[test]
fn a_hold_that_its_owner_ends_is_no_line_of_the_log() {
    let server = Server::start();
    let mut session = Session::new(&server);
    let mut other = Session::new(&server);
    for words in ["", "WATCHDOG"] {
        session.hold("k", "a", words, "t");
        // From the same machine: one program that reconnected.
        other.ask(&format!("RLOCK.ACQUIRE k a {LONG} ONCE {words}"), "t");
        assert_eq!(session.next(), "lost t rebound");
        other.client.release("k", "a");
        session.hold("k", "a", words, "t");
        other.client.release("k", "a");
        assert_eq!(session.next(), "lost t released");
    }
    session.hold("k", "a", "WATCHDOG", "t");
    session.client.close();
    other.client.goes_free("k");
    assert_eq!(lost(&server), [""; 0]);
}

/// Which other commands run meanwhile is no matter, nor who sent them.
#[test]
fn a_hold_that_is_taken_over_in_a_script_of_somebody_is_compared_with_who_has_it() {
    let server = Server::start();
    let mut control = server.raw();
    control.take("k", "x");
    // It gets both keys, and then has what the other of its owner's requests asks for.
    let mut first = server.raw();
    first.send(&format!("RLOCK.MACQUIRE 2 k l a {LONG} BLOCK 0 WATCHDOG"));
    eventually("it waits", || control.info("k").waiters == 1);
    let mut session = Session::new(&server);
    session.queue_by(&format!("RLOCK.ACQUIRE k a {LONG} WATCHDOG ONCE"), "t");
    let script = "return redis.call('RLOCK.RELEASE',KEYS[1],'x')";
    assert_eq!(control.int(&["EVAL", script, "1", "k"]), 0);
    session.granted("t");
    assert_eq!(control.watchdog("k"), Some(session.id));
    assert_eq!(control.counter("rlock_once_rebound"), 1);
    control.int("RLOCK.FORCE l");
    eventually("the last loss is in the log", || !lost(&server).is_empty());
    assert!(!lost(&server)[0].contains("rebound"), "{:?}", lost(&server));
}

#[test]
fn the_server_knows_the_words_of_the_commands() {
    let server = Server::start();
    let mut control = server.raw();
    let docs = control.ask("COMMAND DOCS rlock.acquire rlock.macquire rlock.cancel");
    let shown = format!("{docs:?}");
    for word in ["QUEUE", "NOTIFY", "channel", "tag", "BLOCK", "ONCE", "READ"] {
        assert!(shown.contains(word), "{word}: {shown}");
    }
    assert!(!matches!(docs, Value::ServerError(_)));
    let mut cancel = map(control.list("COMMAND DOCS rlock.cancel").remove(1));
    let summary = text(cancel.remove("summary").expect("a summary"));
    assert_eq!(summary, "Ends an owner's waits for a lock");
    for request in [
        "RLOCK.CANCEL job a",
        "RLOCK.ACQUIRE job a 1 QUEUE 0 NOTIFY c t",
    ] {
        let keys = control.texts(&format!("COMMAND GETKEYS {request}"));
        assert_eq!(keys, ["job"], "{request}");
    }
}

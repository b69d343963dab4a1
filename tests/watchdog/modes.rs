//! Readers and writers with WATCHDOG: each hold ends with its connection, whatever
//! else its owner and others hold.

use redis::Value;

use crate::support::{longest, now_ms, pass, Ask, Bound, Server, Waiter, LONG};

#[test]
fn a_reader_that_closes_leaves_the_others() {
    let server = Server::start();
    let mut control = server.raw();
    let goes = Bound::with(&server, "k a 100000 READ");
    let mut stays = Bound::with(&server, "k b 300 READ");
    control.ask("RLOCK.ACQUIRE k c 100000 READ");
    goes.client.close();
    control.goes_to("k", "b read 1, c read 1");
    assert_eq!(control.int("EXISTS {k}:a:rwlock_timeout:1"), 0);
    pass(now_ms() + 1200);
    control.goes_to("k", "b read 1, c read 1");
    let holds = control.info("k").holders;
    let bound = |owner: &str| holds.iter().find(|hold| hold.owner == owner);
    assert_eq!(bound("b").expect("b reads").watchdog, Some(stays.id));
    assert_eq!(bound("c").expect("c reads").watchdog, None);
    stays.client.in_step();
}

#[test]
fn the_last_reader_that_closes_lets_the_writer_in() {
    let server = Server::start();
    let mut control = server.raw();
    let one = Bound::with(&server, "k a 100000 READ");
    let two = Bound::with(&server, "k b 100000 READ");
    let mut writer = Waiter::with(&server, &format!("k w {LONG} WRITE BLOCK 0"));
    one.client.close();
    control.goes_to("k", "b read 1");
    control.has_waiters("k", 1);
    two.client.close();
    writer.token();
    assert_eq!(control.held_by("k"), "w write 1");
}

#[test]
fn a_writer_that_closes_lets_all_readers_in() {
    let server = Server::start();
    let mut control = server.raw();
    let writer = Bound::with(&server, "k w 100000 WRITE");
    let mut readers: Vec<_> = ["a", "b"]
        .into_iter()
        .map(|owner| Waiter::with(&server, &format!("k {owner} 100000 READ BLOCK 0 WATCHDOG")))
        .collect();
    let mut last = Waiter::with(&server, &format!("k z {LONG} WRITE BLOCK 0"));
    writer.client.close();
    for reader in &mut readers {
        reader.token();
    }
    control.goes_to("k", "a read 1, b read 1");
    drop(readers);
    last.token();
    assert_eq!(control.held_by("k"), "z write 1");
}

#[test]
fn a_short_lease_is_renewed_for_readers_and_writers() {
    let server = Server::start();
    let mut control = server.raw();
    for (mode, held_for) in [("READ", "read"), ("WRITE", "write")] {
        let mut held = Bound::with(&server, &format!("k a 300 {mode}"));
        pass(now_ms() + 2500);
        let hold = control.only("k");
        assert_eq!(hold.mode, held_for);
        assert_eq!(
            (hold.token, hold.watchdog),
            (Some(held.token), Some(held.id))
        );
        assert!(hold.remaining_ms <= Some(longest(300)), "{hold:?}");
        let release = format!("RLOCK.RELEASE k a {mode}");
        assert_eq!(held.client.int(&release), 0);
        held.client.in_step();
    }
}

#[test]
fn a_watched_reader_outlives_one_whose_lease_ends() {
    let server = Server::start();
    let mut control = server.raw();
    let mut held = Bound::with(&server, "k a 300 READ");
    control.ask("RLOCK.ACQUIRE k b 600 READ");
    control.goes_to("k", "a read 1");
    pass(now_ms() + 1000);
    assert_eq!(control.only("k").watchdog, Some(held.id));
    held.client.in_step();
}

#[test]
fn an_upgrade_with_watchdog_ends_with_its_connection_and_leaves_the_reading() {
    let server = Server::start();
    let mut control = server.raw();
    let mut client = server.raw();
    let reading = client.token("RLOCK.ACQUIRE k a 100000 READ");
    let writing = client.token("RLOCK.ACQUIRE k a 100000 WRITE WATCHDOG");
    assert!(writing > reading, "an upgrade has a token of its own");
    assert_eq!(control.held_by("k"), "a write 1, a read 1");
    let mut reader = Waiter::with(&server, &format!("k b {LONG} READ BLOCK 0"));
    client.close();
    // Down to reading: those at the head of the queue may enter.
    reader.token();
    assert_eq!(control.held_by("k"), "a read 1, b read 1");
}

#[test]
fn reading_with_watchdog_ends_under_a_plain_upgrade() {
    let server = Server::start();
    let mut control = server.raw();
    let mut held = Bound::with(&server, "k a 100000 READ");
    held.client.token("RLOCK.ACQUIRE k a 100000 WRITE");
    held.client.close();
    control.goes_to("k", "a write 1");
    pass(now_ms() + 200);
    assert_eq!(control.held_by("k"), "a write 1");
    assert_eq!(control.int("RLOCK.RELEASE k a WRITE"), 0);
    control.goes_free("k");
}

#[test]
fn each_mode_of_an_owner_is_shown_with_the_bond_that_it_has() {
    let server = Server::start();
    let mut control = server.raw();
    for (first, second, expected) in [
        ("READ WATCHDOG", "WRITE", [false, true]),
        ("READ", "WRITE WATCHDOG", [true, false]),
        ("WRITE", "READ WATCHDOG", [false, true]),
        ("WRITE WATCHDOG", "READ WATCHDOG", [true, true]),
    ] {
        let mut client = server.raw();
        for keywords in [first, second] {
            client.token(&format!("RLOCK.ACQUIRE k a 100000 {keywords}"));
        }
        let told: Vec<_> = control
            .info("k")
            .holders
            .into_iter()
            .map(|hold| (hold.mode, hold.watchdog.is_some()))
            .collect();
        let [write, read] = expected;
        let expected = [("write".to_owned(), write), ("read".to_owned(), read)];
        assert_eq!(told, expected, "{first} then {second}");
        control.ask("FLUSHALL");
    }
}

#[test]
fn an_upgrade_that_waits_is_bound_at_its_grant() {
    let server = Server::start();
    let mut control = server.raw();
    let mut client = server.raw();
    client.token("RLOCK.ACQUIRE k a 100000 READ");
    let other = Bound::with(&server, "k b 100000 READ");
    let line = "RLOCK.ACQUIRE k a 100000 WRITE BLOCK 0 WATCHDOG";
    let mut upgrade = Waiter::on(client, line);
    assert!(control
        .info("k")
        .holders
        .iter()
        .all(|hold| { hold.owner == "b" || hold.watchdog.is_none() }));
    other.client.close();
    upgrade.token();
    assert_eq!(control.held_by("k"), "a write 1, a read 1");
    upgrade.client.close();
    control.goes_to("k", "a read 1");
}

#[test]
fn a_downgrade_leaves_the_reading_watched() {
    let server = Server::start();
    let mut control = server.raw();
    let mut held = Bound::with(&server, "k a 1200 WRITE");
    held.client.token("RLOCK.ACQUIRE k a 1200 READ WATCHDOG");
    assert_eq!(held.client.int("RLOCK.RELEASE k a WRITE"), 0);
    pass(now_ms() + 4000);
    let hold = control.only("k");
    assert_eq!((hold.mode.as_str(), hold.watchdog), ("read", Some(held.id)));
    held.client.close();
    control.goes_free("k");
}

#[test]
fn reading_under_ones_own_watched_writing_stays_when_that_ends() {
    let server = Server::start();
    let mut control = server.raw();
    let mut held = Bound::with(&server, "k a 100000 WRITE");
    let reading = held.client.ask("RLOCK.ACQUIRE k a 100000 READ");
    assert_eq!(
        reading,
        Value::Int(held.token),
        "that of the hold under way"
    );
    let mut reader = Waiter::with(&server, &format!("k b {LONG} READ BLOCK 0"));
    held.client.close();
    reader.token();
    assert_eq!(control.held_by("k"), "a read 1, b read 1");
}

#[test]
fn every_reader_is_notified_when_the_lock_is_lost() {
    let server = Server::start();
    let mut control = server.raw();
    for way in [
        "RLOCK.FORCE k",
        "DEL k",
        "RENAME k gone",
        "SET k v",
        "FLUSHALL",
    ] {
        let mut one = Bound::with(&server, "k a 300 READ");
        let mut two = Bound::with(&server, "k b 100000 READ");
        control.ask(way);
        assert!(one.client.is_closed(), "{way}");
        assert!(two.client.is_closed(), "{way}");
        control.ask("FLUSHALL");
    }
    for way in ["RLOCK.FORCE k", "DEL k"] {
        let mut writer = Bound::with(&server, "k a 300 WRITE");
        control.ask(way);
        assert!(writer.client.is_closed(), "{way}");
    }
}

#[test]
fn a_reader_whose_lease_key_is_taken_away_is_notified_and_the_others_stay() {
    let server = Server::start();
    let mut control = server.raw();
    let mut goes = Bound::with(&server, "k a 100000 READ");
    let mut stays = Bound::with(&server, "k b 100000 READ");
    assert_eq!(control.int("DEL {k}:a:rwlock_timeout:1"), 1);
    assert!(goes.client.is_closed());
    control.goes_to("k", "b read 1");
    stays.client.in_step();
    assert_eq!(control.code("RLOCK.RELEASE k a READ"), "NOTHELD");
}

//! RLOCK.INFO of readers, writers, reservations and watchdog holds.

use redis::Value;

use crate::support::{
    bulk, int_or_none, list, longest, map, now_ms, pass, Ask, Bound, Server, Waiter,
};

#[test]
fn readers_are_shown_one_by_one() {
    let server = Server::start();
    let mut control = server.raw();
    let begin = now_ms();
    let first = control.token("RLOCK.ACQUIRE k a 100000 READ");
    let second = control.token("RLOCK.ACQUIRE k b 50000 READ");
    let again = control.token("RLOCK.ACQUIRE k b 20000 READ");
    assert!(second > first);
    assert_eq!(again, second, "nested");
    let found = control.map("RLOCK.INFO k");
    assert_eq!(found["mode"], bulk("read"));
    assert_eq!(found["waiters"], Value::Int(0));
    assert_eq!(found["oldest-wait-ms"], Value::Nil);
    let mut holds = control.info("k").holders;
    holds.sort_by(|x, y| x.owner.cmp(&y.owner));
    let told: Vec<_> = holds
        .iter()
        .map(|hold| (hold.owner.as_str(), hold.mode.as_str(), hold.holds))
        .collect();
    assert_eq!(told, [("a", "read", 1), ("b", "read", 2)]);
    assert_eq!(holds[0].token, Some(first));
    assert_eq!(holds[1].token, Some(second));
    let passed = now_ms() - begin + 1;
    for (hold, lease) in holds.iter().zip([100_000, 50_000]) {
        let remaining = hold.remaining_ms.expect("a lease");
        assert!(
            (lease - passed..=longest(lease)).contains(&remaining),
            "{hold:?}"
        );
        assert!(hold.held_ms.expect("known") <= passed, "{hold:?}");
        assert_eq!(hold.watchdog, None);
    }
}

#[test]
fn an_owner_that_writes_and_reads_is_shown_twice_writing_first() {
    let server = Server::start();
    let mut control = server.raw();
    let reading = control.token("RLOCK.ACQUIRE k a 100000 READ");
    control.token("RLOCK.ACQUIRE k a 100000 READ");
    let writing = control.token("RLOCK.ACQUIRE k a 100000 WRITE");
    assert!(writing > reading);
    assert_eq!(control.held_by("k"), "a write 1, a read 2");
    assert_eq!(control.mode("k"), "write");
    let holds = control.info("k").holders;
    assert_eq!(holds[0].token, Some(writing));
    // One lease per owner.
    assert!(holds[0].remaining_ms.is_some() && holds[1].remaining_ms.is_some());
    assert_eq!(control.int("RLOCK.RELEASE k a WRITE"), 0);
    assert_eq!(control.held_by("k"), "a read 2");
    assert_eq!(control.mode("k"), "read");
}

#[test]
fn a_key_that_stands_idle_for_a_waiter_is_reserved() {
    let server = Server::start();
    let mut control = server.raw();
    control.token("RLOCK.ACQUIRE b z 100000");
    let mut many = Waiter::by(&server, "RLOCK.MACQUIRE 2 a b m 1000 BLOCK 0");
    pass(now_ms() + 50);
    let found = control.map("RLOCK.INFO a");
    assert_eq!(found["mode"], bulk("reserved"));
    assert_eq!(found["holders"], Value::Array(vec![]));
    assert_eq!(found["waiters"], Value::Int(1));
    assert!(
        int_or_none(found["oldest-wait-ms"].clone()) >= Some(50),
        "{found:?}"
    );
    assert!(control.refused("RLOCK.ACQUIRE a y 1000"));
    assert_eq!(control.int("EXISTS a"), 0);
    control.ask("RLOCK.RELEASE b z");
    many.token();
    assert_eq!(control.mode("a"), "exclusive");
}

#[test]
fn the_connection_that_a_hold_is_bound_to_is_shown() {
    let server = Server::start();
    let mut control = server.raw();
    control.token("RLOCK.ACQUIRE plain a 100000");
    assert_eq!(control.only("plain").watchdog, None);
    let bound = Bound::new(&server, "k", "a");
    assert_eq!(control.only("k").watchdog, Some(bound.id));
    let reader = Bound::with(&server, "doc b 100000 READ");
    control.token("RLOCK.ACQUIRE doc c 100000 READ");
    let mut holds = control.info("doc").holders;
    holds.sort_by(|x, y| x.owner.cmp(&y.owner));
    let bonds: Vec<_> = holds.iter().map(|hold| hold.watchdog).collect();
    assert_eq!(bonds, [Some(reader.id), None]);
}

#[test]
fn it_counts_two_hundred_who_wait_and_shows_binary_names() {
    let server = Server::start();
    let mut control = server.raw();
    control.token("RLOCK.ACQUIRE k w 100000 WRITE");
    let queue: Vec<_> = (0..200)
        .map(|n| Waiter::with(&server, &format!("k r{n} 100000 READ BLOCK 0")))
        .collect();
    let found = control.map("RLOCK.INFO k");
    assert_eq!(found["waiters"], Value::Int(200));
    assert_eq!(found["mode"], bulk("write"));
    control.ask("RLOCK.RELEASE k w WRITE");
    assert_eq!(control.info("k").holders.len(), 200);
    assert_eq!(control.mode("k"), "read");
    drop(queue);

    let (key, owner): (&[u8], &[u8]) = (b"\x00\xff\r\n", b"\xfe\x00\r\n");
    control.ask(&[b"RLOCK.ACQUIRE".as_slice(), key, owner, b"100000", b"READ"]);
    let found = control.map(&[b"RLOCK.INFO".as_slice(), key]);
    let holder = map(list(found["holders"].clone()).remove(0));
    assert_eq!(holder["owner"], bulk(owner));
    assert_eq!(holder["mode"], bulk("read"));
}

#[test]
fn it_changes_nothing_of_a_read_lock_either() {
    let server = Server::start();
    let mut control = server.raw();
    control.token("RLOCK.ACQUIRE k a 100000 READ");
    // One that is dead: told of no more, and left where it is.
    control.ask("HSET k dead 1");
    let lease = b"{k}:a:rwlock_timeout:1";
    let before = (control.state(b"k"), control.state(lease));
    let changes = control.changes();
    assert_eq!(control.held_by("k"), "a read 1");
    assert_eq!((control.state(b"k"), control.state(lease)), before);
    assert_eq!(control.changes(), changes);
}

#[test]
fn a_key_that_is_no_lock_is_none_for_it_either() {
    let server = Server::start();
    let mut control = server.raw();
    control.ask_all(&["SET text v", "HSET data a 1 b 2", "RPUSH list x"]);
    for key in ["text", "data", "list"] {
        let line = control.error(&format!("RLOCK.INFO {key}"));
        assert!(line.starts_with("WRONGTYPE "), "{key}: {line}");
    }
}

/// After a restart they may not have been read yet.
#[test]
fn permits_that_have_all_run_out_are_nobodys() {
    let server = Server::start();
    let mut control = server.raw();
    control.ask(&["HSET", "k", "mode", "permits 2 3 2", "a", "1@5", "b", "1@0"]);
    control.int("PEXPIRE k 100000");
    let found = control.map("RLOCK.INFO k");
    assert_eq!(found["mode"], bulk("free"));
    assert!(!found.contains_key("limit"), "{found:?}");
    assert_eq!(control.int("EXISTS k"), 1, "looking changes nothing");
    control.token("RLOCK.ACQUIRE k c 100000 LIMIT 1");
    assert_eq!(control.held_by("k"), "c permits 1");
}

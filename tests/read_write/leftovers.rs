//! Fields in the hash of a read/write lock that are no holds, or holds of another
//! kind: of readers that died, and of plain locks that were taken over.

use crate::support::{both_ways, int, lease_key, now_ms, Ask, Listener, RawClient, Server, Way};

/// A hash in which `dead` left its field, as a client does that ends before its
/// lease while another's is longer; and a reader `live`, if wanted.
#[track_caller]
fn leftover(client: &mut RawClient, live: bool) {
    client.ok("FLUSHALL");
    client.int("HSET doc mode read dead 2");
    if live {
        client.int("HSET doc live 1");
        let key = lease_key("doc", "live", 1);
        client.ok(&format!("SET {key} 1 PX 100000"));
    }
    client.int("PEXPIRE doc 100000");
}

#[test]
fn the_field_of_a_dead_reader_is_no_hold() {
    let server = Server::start();
    let mut client = server.raw();
    leftover(&mut client, false);
    assert_eq!(client.mode("doc"), "free");
    assert!(client.held_by("doc").is_empty());
    for request in ["RLOCK.RELEASE doc dead READ", "RLOCK.RENEW doc dead 9 READ"] {
        let line = client.error(request);
        assert!(line.starts_with("NOTHELD "), "{request}: {line}");
    }
    for (wanted, expected) in [
        ("a 100000 WRITE", "a:write=1 mode=write"),
        ("a 100000 READ", "a=1 mode=read"),
        ("a 100000 READ ONCE", "a=1 mode=read"),
        ("a 100000", "a=1"),
        ("dead 100000 READ ONCE", "dead=1 mode=read"),
        ("dead 100000 WRITE", "dead:write=1 mode=write"),
        ("dead 100000", "dead=1"),
    ] {
        leftover(&mut client, false);
        client.int(&format!("RLOCK.ACQUIRE doc {wanted}"));
        assert_eq!(client.hash("doc"), expected, "{wanted}");
    }
}

#[test]
fn the_field_of_a_dead_reader_goes_and_a_live_one_stays() {
    let server = Server::start();
    let mut client = server.raw();
    leftover(&mut client, true);
    assert_eq!(client.held_by("doc"), "live read 1");
    assert!(client.refused("RLOCK.ACQUIRE doc a 100000 WRITE"));
    assert!(client.refused("RLOCK.ACQUIRE doc dead 100000 WRITE"));
    client.take_read("doc", "a");
    assert_eq!(client.hash("doc"), "a=1 live=1 mode=read");

    // The sole live reader is not hindered.
    leftover(&mut client, true);
    client.take_write("doc", "live");
    let both = "live:write=1 live=1 mode=write";
    assert_eq!(client.hash("doc"), both);

    // Who releases the last live hold frees the lock.
    leftover(&mut client, true);
    assert_eq!(client.int("RLOCK.RELEASE doc live READ"), 0);
    assert_eq!(client.int("DBSIZE"), 0);
}

both_ways!(waiters_do_not_wait_for_a_dead_reader);
fn waiters_do_not_wait_for_a_dead_reader(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    leftover(&mut client, true);
    let mut writer = by.write(&server, "doc", "w");
    let mut reader = by.read(&server, "doc", "r");
    assert_eq!(client.waiters("doc"), 2);
    client.int(&format!("DEL {}", lease_key("doc", "live", 1)));
    writer.token();
    assert_eq!(client.hash("doc"), "mode=write w:write=1");
    client.int("RLOCK.RELEASE doc w WRITE");
    reader.token();

    leftover(&mut client, false);
    let mut writer = by.write(&server, "doc", "w");
    writer.token();
}

both_ways!(a_plain_lock_that_a_foreign_writer_took_over_is_held_until_the_hash_ends);
/// Redisson's RReadWriteLock does not see a plain lock, and takes its key: the
/// plain owner still believes that it holds the lock alone.
fn a_plain_lock_that_a_foreign_writer_took_over_is_held_until_the_hash_ends(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.int("RLOCK.ACQUIRE doc plain 100000");
    client.int("HSET doc mode write uuid:1:write 1");
    client.int("PEXPIRE doc 100000");
    for wanted in ["", "READ", "WRITE"] {
        for owner in ["a", "b"] {
            let request = format!("RLOCK.ACQUIRE doc {owner} 1000 {wanted}");
            assert!(client.refused(&request), "{request}");
        }
    }
    let mut writer = by.write(&server, "doc", "w");
    let mut reader = by.read(&server, "doc", "r");
    // The foreign writer leaves; the plain field stays and keeps all others out.
    client.int("HDEL doc uuid:1:write");
    assert_eq!(client.waiters("doc"), 2);
    for wanted in ["", "READ", "WRITE"] {
        let request = format!("RLOCK.ACQUIRE doc a 1000 {wanted}");
        assert!(client.refused(&request), "{request}");
    }
    let replies = client.succeed(&["PEXPIRE doc 400", "PEXPIRETIME doc"]);
    writer.token();
    assert!(
        now_ms() >= int(replies[1].clone()),
        "granted before the hash ended"
    );
    assert_eq!(client.hash("doc"), "mode=write w:write=1");
    client.int("RLOCK.RELEASE doc w WRITE");
    reader.token();
    client.goes_to("doc", "r read 1");
}

#[test]
fn a_hash_with_a_mode_of_another_meaning_is_no_lock() {
    let server = Server::start();
    let mut client = server.raw();
    for fields in [
        "mode dark a 1",
        "mode READ a 1",
        "mode read a x",
        "mode write a:write 0x",
    ] {
        client.ok("FLUSHALL");
        client.int(&format!("HSET doc {fields}"));
        client.int("PEXPIRE doc 100000");
        let (before, changes) = (client.state(b"doc"), client.changes());
        for request in [
            "RLOCK.ACQUIRE doc b 1000 READ",
            "RLOCK.ACQUIRE doc b 1000 WRITE",
            "RLOCK.ACQUIRE doc b 1000",
            "RLOCK.RELEASE doc a READ",
            "RLOCK.RENEW doc a 1000 WRITE",
            "RLOCK.FORCE doc",
        ] {
            let line = client.error(request);
            assert!(
                line.starts_with("WRONGTYPE "),
                "{fields}, {request}: {line}"
            );
        }
        assert_eq!(client.state(b"doc"), before, "{fields}");
        assert_eq!(client.changes(), changes, "{fields}");
    }
}

#[test]
fn looking_at_leftovers_changes_nothing() {
    let server = Server::start();
    let mut client = server.raw();
    leftover(&mut client, true);
    let (before, changes) = (client.state(b"doc"), client.changes());
    for _ in 0..3 {
        assert_eq!(client.waiters("doc"), 0);
    }
    assert_eq!(client.state(b"doc"), before);
    assert_eq!(client.changes(), changes);
}

#[test]
fn whoever_finds_only_dead_readers_wakes_those_who_subscribe() {
    let server = Server::start();
    let mut client = server.raw();
    client.ok("DEBUG SET-ACTIVE-EXPIRE 0");
    for request in ["RLOCK.RELEASE doc u READ", "RLOCK.RENEW doc u 1000 READ"] {
        // A reader that rlock knows nothing of, and its lease is gone.
        client.succeed(&["HSET doc mode read u 1", "PEXPIRE doc 60000"]);
        let mut heard = Listener::patterns(&server, &["redisson_*"]);
        let line = client.error(request);
        assert!(line.starts_with("NOTHELD"), "{line}");
        assert_eq!(client.int("EXISTS doc"), 0, "{request}");
        let message = ("redisson_rwlock:{doc}".to_owned(), "0".to_owned());
        assert_eq!(heard.messages(), [message], "{request}");
    }
}

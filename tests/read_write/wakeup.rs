//! The messages that wake Redisson's waiters of a read/write lock: `1` where readers
//! may enter, which wakes all of them, else `0`.

use crate::support::{both_ways, eventually, Ask, Listener, Server, Way};

fn message(name: &str, text: &str) -> (String, String) {
    (format!("redisson_rwlock:{name}"), text.to_owned())
}

/// The one message that the last reader leaves: `0`, as Redisson's own does, or `1`,
/// for readers that a waiting writer kept out may enter too.
#[track_caller]
fn the_last_left(mut seen: Vec<(String, String)>) {
    assert_eq!(seen.len(), 1, "{seen:?}");
    let last = seen.remove(0);
    assert!(["0", "1"].contains(&last.1.as_str()), "{last:?}");
    assert_eq!(last, message("{doc}", &last.1));
}

#[test]
fn a_writer_that_leaves_wakes_all() {
    let server = Server::start();
    let mut client = server.raw();
    let mut heard = Listener::patterns(&server, &["redisson_*"]);
    let all = || message("{doc}", "1");
    client.take_write("doc", "alice");
    client.take_write("doc", "alice");
    client.refused("RLOCK.ACQUIRE doc bob 1000 READ");
    client.int("RLOCK.RENEW doc alice 60000 WRITE");
    client.int("RLOCK.RELEASE doc alice WRITE");
    assert_eq!(heard.messages(), []);
    client.int("RLOCK.RELEASE doc alice WRITE");
    assert_eq!(heard.messages(), [all()]);

    client.take_write("doc", "alice");
    client.int("RLOCK.FORCE doc");
    assert_eq!(heard.messages(), [all()]);

    client.int("RLOCK.ACQUIRE doc alice 30 WRITE");
    assert_eq!(heard.until(&all()), [all()]);
    assert_eq!(client.int("EXISTS doc"), 0);
    assert_eq!(heard.messages(), []);
}

#[test]
fn a_writer_that_goes_on_reading_wakes_all() {
    let server = Server::start();
    let mut client = server.raw();
    let mut heard = Listener::patterns(&server, &["redisson_*"]);
    client.take_write("doc", "alice");
    client.take_read("doc", "alice");
    client.int("RLOCK.RELEASE doc alice WRITE");
    assert_eq!(heard.messages(), [message("{doc}", "1")]);
    client.int("RLOCK.RELEASE doc alice READ");
    the_last_left(heard.messages());

    client.take_write("doc", "alice");
    client.take_read("doc", "alice");
    client.int("RLOCK.RELEASE doc alice READ");
    assert_eq!(heard.messages(), [], "it still writes");
}

#[test]
fn the_last_reader_that_leaves_wakes_somebody() {
    let server = Server::start();
    let mut client = server.raw();
    let mut heard = Listener::patterns(&server, &["redisson_*"]);
    for owner in ["alice", "alice", "bob"] {
        client.take_read("doc", owner);
    }
    client.int("RLOCK.RELEASE doc alice READ");
    client.int("RLOCK.RELEASE doc alice READ");
    assert_eq!(
        heard.messages(),
        [],
        "nobody can enter who could not before"
    );
    client.int("RLOCK.RELEASE doc bob READ");
    the_last_left(heard.messages());

    client.int("RLOCK.ACQUIRE doc alice 30 READ");
    let mut seen = Vec::new();
    eventually("it is told of", || {
        seen.extend(heard.messages());
        !seen.is_empty()
    });
    the_last_left(seen);
    assert_eq!(heard.messages(), []);
}

both_ways!(a_lock_that_is_handed_over_is_not_announced);
fn a_lock_that_is_handed_over_is_not_announced(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    let mut heard = Listener::patterns(&server, &["redisson_*"]);
    client.take_read("doc", "alice");
    let mut writer = by.write(&server, "doc", "w");
    let mut second = by.write(&server, "doc", "w2");
    client.int("RLOCK.RELEASE doc alice READ");
    writer.token();
    client.int("RLOCK.RELEASE doc w WRITE");
    second.token();
    assert_eq!(heard.messages(), []);
    client.int("RLOCK.RELEASE doc w2 WRITE");
    assert_eq!(heard.messages(), [message("{doc}", "1")]);
}

both_ways!(readers_may_enter_beside_those_who_were_let_in);
fn readers_may_enter_beside_those_who_were_let_in(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    let mut heard = Listener::patterns(&server, &["redisson_*"]);
    client.take_write("doc", "alice");
    let mut reader = by.read(&server, "doc", "r");
    client.int("RLOCK.RELEASE doc alice WRITE");
    reader.token();
    assert_eq!(heard.messages(), [message("{doc}", "1")]);
}

#[test]
fn a_name_with_a_hash_tag_is_used_as_it_is() {
    let server = Server::start();
    let mut client = server.raw();
    let mut heard = Listener::patterns(&server, &["redisson_*"]);
    for (key, channel) in [
        ("{acct}:7", "{acct}:7"),
        ("job:{7}", "job:{7}"),
        ("a}", "{a}}"),
    ] {
        client.take_write(key, "alice");
        client.int(&format!("RLOCK.RELEASE {key} alice WRITE"));
        assert_eq!(heard.messages(), [message(channel, "1")]);
    }
}

#[test]
fn the_announcement_can_be_turned_off() {
    let server = Server::start();
    let mut client = server.raw();
    let mut heard = Listener::patterns(&server, &["redisson_*"]);
    client.ok("CONFIG SET rlock.redisson-compat no");
    client.take_write("doc", "alice");
    client.take_read("doc", "alice");
    client.int("RLOCK.RELEASE doc alice WRITE");
    client.int("RLOCK.RELEASE doc alice READ");
    assert_eq!(heard.messages(), []);
    client.ok("CONFIG SET rlock.redisson-compat yes");
    client.take_write("doc", "alice");
    client.int("RLOCK.RELEASE doc alice WRITE");
    assert_eq!(heard.messages(), [message("{doc}", "1")]);
}

#[test]
fn subscribers_of_a_replica_receive_it_too() {
    let master = Server::start();
    let replica = Server::start_replica_of(&master);
    master.counts_its_replica();
    let mut heard = Listener::patterns(&replica, &["redisson_*"]);
    let mut client = master.raw();
    client.take_write("doc", "alice");
    client.int("RLOCK.RELEASE doc alice WRITE");
    let all = message("{doc}", "1");
    assert_eq!(heard.until(&all), [all]);
}

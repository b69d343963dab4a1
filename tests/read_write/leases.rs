//! Each reader has a lease of its own: it ends alone, at its own deadline.

use redis::Value;

use crate::support::{
    both_ways, ends_from, eventually, int, lease_key, longest, now_ms, pass, Ask, RawClient,
    Server, Way, LONG,
};

/// The server looks after its own expiries once a second.
const SLOW_HZ: [&str; 2] = ["--hz", "1"];

/// Takes a read lock whose lease ends soon: when. In one go, so that it has not
/// ended by then.
#[track_caller]
fn read_until(client: &mut RawClient, key: &str, owner: &str, ms: i64) -> i64 {
    let take = format!("RLOCK.ACQUIRE {key} {owner} {ms} READ");
    let when = format!("PEXPIRETIME {}", lease_key(key, owner, 1));
    int(client.succeed(&[&take, &when]).remove(1))
}

/// Gives a holder's lease an end soon: when.
#[track_caller]
fn renew_until(client: &mut RawClient, owner: &str, ms: i64) -> i64 {
    let renew = format!("RLOCK.RENEW doc {owner} {ms} READ");
    let when = format!("PEXPIRETIME {}", lease_key("doc", owner, 1));
    int(client.succeed(&[&renew, &when]).remove(1))
}

#[test]
fn a_reader_whose_lease_ended_is_out_alone() {
    let server = Server::start();
    let mut client = server.raw();
    client.take_read("doc", "bob");
    let ends = read_until(&mut client, "doc", "alice", 300);
    client.goes_to("doc", "bob read 1");
    assert!(now_ms() >= ends);
    for request in [
        "RLOCK.RELEASE doc alice READ",
        "RLOCK.RELEASE doc alice READ ALL",
        "RLOCK.RENEW doc alice 1000 READ",
        "RLOCK.RELEASE doc alice",
    ] {
        let line = client.error(request);
        assert!(line.starts_with("NOTHELD "), "{request}: {line}");
        assert!(!line.contains("holds it for"), "{request}: {line}");
    }
    assert!(client.refused("RLOCK.ACQUIRE doc carol 1000 WRITE"));
    // Whoever writes next takes its field away, and nothing else.
    client.take_read("doc", "bob");
    assert_eq!(client.hash("doc"), "bob=2 mode=read");
    assert_eq!(client.int("RLOCK.RELEASE doc bob READ ALL"), 0);
    client.nothing_left("doc");
}

#[test]
fn a_sole_reader_is_no_longer_hindered_by_one_whose_lease_ended() {
    let server = Server::start();
    let mut client = server.raw();
    client.take_read("doc", "bob");
    read_until(&mut client, "doc", "alice", 200);
    eventually("it is alone", || {
        !client.refused("RLOCK.ACQUIRE doc bob 60000 WRITE")
    });
    let both = "bob:write=1 bob=1 mode=write";
    assert_eq!(client.hash("doc"), both);
}

both_ways!(a_writer_is_granted_when_the_last_readers_lease_ends);
fn a_writer_is_granted_when_the_last_readers_lease_ends(by: Way) {
    let server = Server::start_with(&SLOW_HZ);
    let mut client = server.raw();
    for owner in ["a", "b", "c"] {
        client.take_read("doc", owner);
    }
    let mut writer = by.write(&server, "doc", "w");
    renew_until(&mut client, "b", 100);
    client.goes_to("doc", "a read 1, c read 1");
    renew_until(&mut client, "a", 100);
    client.goes_to("doc", "c read 1");
    assert_eq!(client.waiters("doc"), 1);
    let ends = renew_until(&mut client, "c", 100);
    writer.token();
    assert!(now_ms() >= ends, "granted before the deadline");
    assert_eq!(client.hash("doc"), "mode=write w:write=1");
    eventually("the lease keys are gone", || client.int("DBSIZE") == 1);
}

both_ways!(a_writer_does_not_wait_for_the_end_of_the_hash);
/// Nothing but the reader's own lease key tells of its end: the hash lives on.
fn a_writer_does_not_wait_for_the_end_of_the_hash(by: Way) {
    let server = Server::start_with(&SLOW_HZ);
    let mut client = server.raw();
    client.take_read("doc", "long");
    client.take_read("doc", "short");
    let mut writer = by.write(&server, "doc", "w");
    assert_eq!(client.int("RLOCK.RELEASE doc long READ"), 0);
    client.int("PEXPIRE doc 3600000");
    let ends = renew_until(&mut client, "short", 300);
    client.int("PEXPIRE doc 3600000");
    writer.token();
    assert!(now_ms() >= ends, "granted before the deadline");
    // Its lease is its own, not what is left of the readers'.
    assert!(client.int("PTTL doc") <= longest(LONG));
}

both_ways!(readers_in_the_queue_are_let_in_when_a_writers_lease_ends);
fn readers_in_the_queue_are_let_in_when_a_writers_lease_ends(by: Way) {
    let server = Server::start_with(&SLOW_HZ);
    let mut client = server.raw();
    client.take_write("doc", "alice");
    let mut readers = ["a", "b"].map(|owner| by.read(&server, "doc", owner));
    let mut writer = by.write(&server, "doc", "w");
    let ends = int(client
        .succeed(&["RLOCK.RENEW doc alice 300 WRITE", "PEXPIRETIME doc"])
        .remove(1));
    for reader in &mut readers {
        reader.token();
    }
    assert!(now_ms() >= ends, "granted before the deadline");
    assert_eq!(client.hash("doc"), "a=1 b=1 mode=read");
    assert_eq!(client.waiters("doc"), 1);
    client.int("RLOCK.RELEASE doc a READ");
    client.int("RLOCK.RELEASE doc b READ");
    writer.token();
}

#[test]
fn a_lease_that_ends_without_waiters_leaves_nothing() {
    let server = Server::start_with(&SLOW_HZ);
    let mut client = server.raw();
    for (n, requests) in [
        [
            "RLOCK.ACQUIRE doc a 150 READ",
            "RLOCK.ACQUIRE doc a 150 READ",
        ],
        [
            "RLOCK.ACQUIRE doc a 150 READ",
            "RLOCK.ACQUIRE doc b 100 READ",
        ],
        [
            "RLOCK.ACQUIRE doc a 150 WRITE",
            "RLOCK.ACQUIRE doc a 100 READ",
        ],
        [
            "RLOCK.ACQUIRE doc a 150 READ",
            "RLOCK.ACQUIRE doc a 100 WRITE",
        ],
    ]
    .iter()
    .enumerate()
    {
        client.succeed(requests);
        eventually("nothing is left", || client.int("DBSIZE") == 0);
        client.nothing_left("doc");
        client.take_write("doc", &format!("next{n}"));
        client.int(&format!("RLOCK.RELEASE doc next{n} WRITE"));
    }
}

both_ways!(a_lease_that_was_lengthened_ends_later);
fn a_lease_that_was_lengthened_ends_later(by: Way) {
    let server = Server::start_with(&SLOW_HZ);
    let mut client = server.raw();
    for longer in [
        "RLOCK.RENEW doc alice 100000 READ",
        "RLOCK.ACQUIRE doc alice 100000 READ",
        "RLOCK.ACQUIRE doc alice 100000 WRITE",
    ] {
        client.ok("FLUSHALL");
        let replies = client.succeed(&[
            "RLOCK.ACQUIRE doc alice 300 READ",
            &format!("PEXPIRETIME {}", lease_key("doc", "alice", 1)),
            longer,
        ]);
        let mut writer = by.write(&server, "doc", "w");
        pass(int(replies[1].clone()) + 100);
        assert_eq!(client.waiters("doc"), 1, "{longer}");
        assert_ne!(client.mode("doc"), "free", "{longer}");
        client.ask("RLOCK.RELEASE doc alice WRITE");
        client.int("RLOCK.RELEASE doc alice READ ALL");
        writer.token();
    }
}

both_ways!(a_waiting_readers_lease_counts_from_its_grant);
fn a_waiting_readers_lease_counts_from_its_grant(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take_write("doc", "holder");
    let mut short = by.with(&server, "doc short 20000 READ BLOCK 0");
    let mut long = by.with(&server, "doc long 50000 READ BLOCK 0");
    eventually("they have waited for a while", || {
        client.info("doc").oldest_wait_ms >= Some(300)
    });
    let before = now_ms();
    client.int("RLOCK.RELEASE doc holder WRITE");
    let within = [20_000, 50_000].map(|ms| ends_from(before, ms));
    short.token();
    long.token();
    for (owner, within) in ["short", "long"].into_iter().zip(within) {
        let ends = client.lease("doc", owner);
        assert!(within.contains(&ends), "{owner}: {ends}");
    }
    let long = client.lease("doc", "long");
    assert_eq!(client.deadline("doc"), long);
}

both_ways!(many_readers_end_one_by_one_each_at_its_own_deadline);
fn many_readers_end_one_by_one_each_at_its_own_deadline(by: Way) {
    const READERS: i64 = 40;
    let server = Server::start_with(&SLOW_HZ);
    let mut client = server.raw();
    for n in 0..READERS {
        client.take_read("doc", &format!("r{n:02}"));
    }
    let mut writer = by.write(&server, "doc", "w");
    let renew: Vec<String> = (0..READERS)
        .map(|n| format!("RLOCK.RENEW doc r{n:02} {} READ", 400 + 10 * n))
        .collect();
    let renew: Vec<&str> = renew.iter().map(String::as_str).collect();
    client.succeed(&renew);
    let mut last = READERS as usize;
    loop {
        let found = client.info("doc");
        if found.held_by() == "w write 1" {
            break;
        }
        // Those with the longest leases are those who are left.
        let from = READERS as usize - found.holders.len();
        let expected: Vec<String> = (from..READERS as usize)
            .map(|n| format!("r{n:02} read 1"))
            .collect();
        assert_eq!(found.held_by(), expected.join(", "));
        assert!(
            found.holders.len() <= last,
            "{} after {last}",
            found.holders.len()
        );
        last = found.holders.len();
        let soon = std::time::Duration::from_millis(5);
        if writer.end_within(soon).is_some() {
            break;
        }
    }
    assert_eq!(client.hash("doc"), "mode=write w:write=1");
    eventually("the lease keys are gone", || client.int("DBSIZE") == 1);
}

both_ways!(a_stall_that_outlasts_a_readers_lease_lets_the_next_in);
fn a_stall_that_outlasts_a_readers_lease_lets_the_next_in(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take_read("doc", "stays");
    client.take_read("doc", "ends");
    let mut upgrade = by.write(&server, "doc", "stays");
    let mut reader = by.read(&server, "doc", "r");
    client.int("RLOCK.RENEW doc ends 300 READ");
    server.pause_process();
    pass(now_ms() + 400);
    server.resume_process();
    upgrade.token();
    assert_eq!(client.held_by("doc"), "stays write 1, stays read 1");
    assert_eq!(client.int("RLOCK.RELEASE doc stays WRITE"), 0);
    reader.token();
    assert_eq!(client.hash("doc"), "mode=read r=1 stays=1");
    assert_eq!(client.ask("PING"), Value::SimpleString("PONG".into()));
}

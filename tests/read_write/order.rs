//! Who is next on a read/write lock: first come, first served; neighbouring readers
//! together; no reader overtakes a waiting writer.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread;

use redis::Value;

use crate::support::{both_ways, eventually, list, Ask, Over, RawClient, Server, Waiter, Way};

/// Whether all of these still wait.
#[track_caller]
fn still_wait(client: &mut RawClient, all: &mut [&mut Waiter]) {
    // Whoever was granted before this reply has its own reply already.
    client.ask("PING");
    for waiter in all {
        waiter.still_waits();
    }
}

both_ways!(neighbouring_readers_are_granted_together_and_no_others);
fn neighbouring_readers_are_granted_together_and_no_others(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take_write("doc", "first");
    let mut readers: Vec<_> = (0..5)
        .map(|n| by.read(&server, "doc", &format!("r{n}")))
        .collect();
    let mut writer = by.write(&server, "doc", "second");
    let mut late: Vec<_> = (5..8)
        .map(|n| by.read(&server, "doc", &format!("r{n}")))
        .collect();
    let mut last = by.write(&server, "doc", "third");
    assert_eq!(client.waiters("doc"), 10);

    client.int("RLOCK.RELEASE doc first WRITE");
    let together = "mode=read r0=1 r1=1 r2=1 r3=1 r4=1";
    assert_eq!(client.hash("doc"), together);
    let tokens: Vec<i64> = readers.iter_mut().map(Waiter::token).collect();
    assert!(tokens.is_sorted_by(|one, next| one < next), "{tokens:?}");
    assert_eq!(client.waiters("doc"), 5);

    for n in [3, 0, 4, 1] {
        client.int(&format!("RLOCK.RELEASE doc r{n} READ"));
    }
    assert_eq!(client.hash("doc"), "mode=read r2=1");
    still_wait(&mut client, &mut [&mut writer, &mut last]);
    client.int("RLOCK.RELEASE doc r2 READ");
    assert_eq!(client.hash("doc"), "mode=write second:write=1");
    let token = writer.token();
    assert!(token > tokens[4]);

    client.int("RLOCK.RELEASE doc second WRITE");
    assert_eq!(client.hash("doc"), "mode=read r5=1 r6=1 r7=1");
    for reader in &mut late {
        assert!(reader.token() > token);
    }
    still_wait(&mut client, &mut [&mut last]);
    for n in 5..8 {
        client.int(&format!("RLOCK.RELEASE doc r{n} READ"));
    }
    last.token();
    client.int("RLOCK.RELEASE doc third WRITE");
    client.nothing_left("doc");
}

both_ways!(a_release_lets_all_of_them_in_within_the_same_step);
fn a_release_lets_all_of_them_in_within_the_same_step(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take_write("doc", "first");
    let mut readers = ["a", "b"].map(|owner| by.read(&server, "doc", owner));
    let mut writer = by.write(&server, "doc", "w");
    let replies = client.succeed(&[
        "RLOCK.RELEASE doc first WRITE",
        "HLEN doc",
        "RLOCK.ACQUIRE doc first 1000 WRITE",
        "RLOCK.ACQUIRE doc c 1000 READ",
        "RLOCK.RELEASE doc a READ",
        "RLOCK.RELEASE doc b READ",
        "HGETALL doc",
        "RLOCK.ACQUIRE doc c 1000 READ",
    ]);
    assert_eq!(replies[..2], [Value::Int(0), Value::Int(3)]);
    assert_eq!(replies[2], Value::Nil, "the last writer does not barge");
    assert_eq!(
        replies[3],
        Value::Nil,
        "a reader does not overtake the writer"
    );
    assert_eq!(list(replies[6].clone()).len(), 4);
    assert_eq!(replies[7], Value::Nil);
    for reader in &mut readers {
        reader.token();
    }
    writer.token();
    assert_eq!(client.hash("doc"), "mode=write w:write=1");
}

both_ways!(a_new_reader_does_not_overtake_a_waiting_writer);
fn a_new_reader_does_not_overtake_a_waiting_writer(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take_read("doc", "alice");
    client.take_read("doc", "bob");
    let mut writer = by.write(&server, "doc", "w");
    for more in ["", "ONCE", "BLOCK 2"] {
        let request = format!("RLOCK.ACQUIRE doc carol 1000 READ {more}");
        assert!(client.refused(&request), "{request}");
    }
    let mut carol = by.read(&server, "doc", "carol");
    assert_eq!(client.held_by("doc"), "alice read 1, bob read 1");
    // A reader that is in comes in again.
    client.take_read("doc", "bob");
    client.int("RLOCK.RELEASE doc bob READ ALL");
    // Who left is new.
    assert!(client.refused("RLOCK.ACQUIRE doc bob 1000 READ"));
    still_wait(&mut client, &mut [&mut writer, &mut carol]);
    client.int("RLOCK.RELEASE doc alice READ");
    writer.token();
    still_wait(&mut client, &mut [&mut carol]);
    client.int("RLOCK.RELEASE doc w WRITE");
    carol.token();
}

both_ways!(plain_requests_stand_in_the_same_queue);
fn plain_requests_stand_in_the_same_queue(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take_read("doc", "alice");
    let mut plain = by.wait(&server, "doc", "p");
    let mut reader = by.read(&server, "doc", "r");
    let mut writer = by.write(&server, "doc", "w");
    assert!(client.refused("RLOCK.ACQUIRE doc bob 1000 READ"));
    client.int("RLOCK.RELEASE doc alice READ");
    plain.token();
    assert_eq!(client.hash("doc"), "p=1");
    still_wait(&mut client, &mut [&mut reader, &mut writer]);
    client.int("RLOCK.RELEASE doc p");
    reader.token();
    assert_eq!(client.hash("doc"), "mode=read r=1");
    client.int("RLOCK.RELEASE doc r READ");
    writer.token();
    assert_eq!(client.hash("doc"), "mode=write w:write=1");
}

both_ways!(a_writer_comes_in_between_readers_that_follow_each_other);
fn a_writer_comes_in_between_readers_that_follow_each_other(by: Way) {
    const READERS: usize = 30;
    const AT: usize = 12;
    let server = Server::start();
    let mut client = server.raw();
    client.take_read("doc", "r0");
    let mut writer = None;
    let mut waiting = Vec::new();
    for n in 1..READERS {
        if n == AT {
            writer = Some(by.write(&server, "doc", "w"));
        }
        // The next one asks before the last one leaves: the lock is never free.
        let mut next = by.read(&server, "doc", &format!("r{n}"));
        if n < AT {
            next.token();
            client.int(&format!("RLOCK.RELEASE doc r{} READ", n - 1));
        } else {
            waiting.push(next);
        }
    }
    let mut writer = writer.expect("it came");
    client.int(&format!("RLOCK.RELEASE doc r{} READ", AT - 1));
    let token = writer.token();
    let mut all: Vec<&mut Waiter> = waiting.iter_mut().collect();
    still_wait(&mut client, &mut all);
    client.int("RLOCK.RELEASE doc w WRITE");
    for reader in &mut waiting {
        assert!(reader.token() > token);
    }
}

/// Reads hand over hand, so that it always holds the lock but while it waits.
fn read_on(server: &Server, name: &str, stop: &AtomicBool, reads: &AtomicI64) {
    let mut client = server.raw();
    let owner = |n: i64| format!("{name}:{n}");
    // The writer may be there already.
    client.int(&format!(
        "RLOCK.ACQUIRE doc {} 100000 READ BLOCK 0",
        owner(0)
    ));
    for n in 1.. {
        if stop.load(Ordering::Relaxed) {
            client.int(&format!("RLOCK.RELEASE doc {} READ", owner(n - 1)));
            return;
        }
        let next = format!("RLOCK.ACQUIRE doc {} 100000 READ", owner(n));
        let release = format!("RLOCK.RELEASE doc {} READ", owner(n - 1));
        if client.refused(&next) {
            client.int(&release);
            client.int(&format!("{next} BLOCK 0"));
        } else {
            client.int(&release);
        }
        reads.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_stream_of_readers_does_not_starve_a_writer() {
    const READERS: usize = 6;
    let server = Server::start();
    let stop = AtomicBool::new(false);
    let reads = AtomicI64::new(0);
    thread::scope(|scope| {
        for n in 0..READERS {
            let (server, stop, reads) = (&server, &stop, &reads);
            scope.spawn(move || read_on(server, &format!("r{n}"), stop, reads));
        }
        let _stop = Over(&stop);
        let mut client = server.raw();
        for _ in 0..20 {
            let before = reads.load(Ordering::Relaxed);
            eventually("they read", || {
                reads.load(Ordering::Relaxed) > before + 2 * READERS as i64
            });
            // `int` gives up after its bound.
            client.int("RLOCK.ACQUIRE doc w 100000 WRITE BLOCK 0");
            assert_eq!(client.hash("doc"), "mode=write w:write=1");
            assert_eq!(client.int("RLOCK.RELEASE doc w WRITE"), 0);
        }
    });
    server.raw().nothing_left("doc");
}

both_ways!(a_block_time_of_a_reader_and_of_a_writer_ends_with_null);
fn a_block_time_of_a_reader_and_of_a_writer_ends_with_null(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take_read("doc", "alice");
    let mut writer = by.with(&server, "doc w 1000 WRITE BLOCK 1000");
    let mut reader = by.with(&server, "doc r 1000 READ BLOCK 20");
    assert_eq!(reader.end(), Value::Nil);
    assert_eq!(writer.end(), Value::Nil);
    for waiter in [&mut reader, &mut writer] {
        waiter.client.in_step();
    }
    assert_eq!(client.waiters("doc"), 0);
    client.take_read("doc", "bob");
    assert_eq!(client.hash("doc"), "alice=1 bob=1 mode=read");
}

both_ways!(queues_of_read_write_locks_are_those_of_their_database);
fn queues_of_read_write_locks_are_those_of_their_database(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take_write("doc", "alice");
    let mut here = by.read(&server, "doc", "r");
    let mut elsewhere = server.raw();
    elsewhere.ok("SELECT 3");
    elsewhere.take_read("doc", "bob");
    let mut other = server.raw();
    other.ok("SELECT 3");
    let mut there = by.on(other, "RLOCK.ACQUIRE doc w 100000 WRITE BLOCK 0");
    assert_eq!(client.waiters("doc"), 1);
    assert_eq!(elsewhere.waiters("doc"), 1);
    client.int("RLOCK.RELEASE doc alice WRITE");
    here.token();
    still_wait(&mut client, &mut [&mut there]);
    elsewhere.int("RLOCK.RELEASE doc bob READ");
    there.token();
    assert_eq!(elsewhere.hash("doc"), "mode=write w:write=1");
    assert_eq!(client.hash("doc"), "mode=read r=1");
}

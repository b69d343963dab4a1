//! RELEASE IFHELD and IFTOKEN, FORCE IFOWNER and IFTOKEN: what is meant ends, and nothing
//! else.

use crate::support::{Ask, RawClient, Server, Waiter};

/// The request replies 0 and changes nothing.
#[track_caller]
fn changes_nothing(client: &mut RawClient, key: &str, request: &str) {
    let (before, changes) = (client.state(key.as_bytes()), client.changes());
    assert_eq!(client.int(request), 0, "{request}");
    assert_eq!(client.state(key.as_bytes()), before, "{request}");
    assert_eq!(client.changes(), changes, "{request}");
}

#[test]
fn ifheld_replies_0_where_release_would_reply_notheld() {
    let server = Server::start();
    let mut client = server.raw();
    changes_nothing(&mut client, "job", "RLOCK.RELEASE job alice IFHELD");
    client.take("job", "alice");
    client.take("job", "alice");
    changes_nothing(&mut client, "job", "RLOCK.RELEASE job bob ifheld ALL");
    // Held in another mode is not held in this one.
    changes_nothing(&mut client, "job", "RLOCK.RELEASE job alice READ IFHELD");
    changes_nothing(&mut client, "job", "RLOCK.RELEASE job alice IFHELD WRITE");
    assert_eq!(client.int("RLOCK.RELEASE job alice IFHELD"), 1);
    assert_eq!(client.int("RLOCK.RELEASE job alice IFHELD ALL"), 0);
    client.nothing_left("job");
    client.take_read("doc", "alice");
    changes_nothing(&mut client, "doc", "RLOCK.RELEASE doc alice IFHELD");
    changes_nothing(&mut client, "doc", "RLOCK.RELEASE doc alice WRITE IFHELD");
    changes_nothing(&mut client, "doc", "RLOCK.RELEASE doc bob READ IFHELD");
    assert_eq!(client.int("RLOCK.RELEASE doc alice READ IFHELD"), 0);
    client.nothing_left("doc");
    // Other errors stay errors.
    client.ok("SET text 1");
    let line = client.error("RLOCK.RELEASE text alice IFHELD");
    assert!(line.starts_with("WRONGTYPE "), "{line}");
}

#[test]
fn the_owner_of_this_connection_and_binary_ones_can_be_meant() {
    let server = Server::start();
    let mut client = server.raw();
    let owners: [&[u8]; 3] = [b"*", b"\x00\xff\r\n a", &[b'x'; 512]];
    for owner in owners {
        let text = |words: &[&[u8]]| words.iter().map(|word| word.to_vec()).collect::<Vec<_>>();
        let acquire = text(&[b"RLOCK.ACQUIRE", b"job", owner, b"60000"]);
        for _ in 0..2 {
            let token = client.int(&acquire).to_string();
            let release: &[&[u8]] = &[
                b"RLOCK.RELEASE",
                b"job",
                owner,
                b"IFTOKEN",
                token.as_bytes(),
            ];
            assert_eq!(client.int(&text(release)), 0);
            client.is_free("job");
            let held = text(&[b"RLOCK.RELEASE", b"job", owner, b"IFHELD"]);
            assert_eq!(client.int(&held), 0);
            client.int(&acquire);
            let force = text(&[b"RLOCK.FORCE", b"job", b"IFOWNER", owner]);
            assert_eq!(client.int(&force), 1);
            assert_eq!(client.int(&force), 0);
        }
    }
}

#[test]
fn a_late_copy_of_a_release_cannot_end_the_next_hold() {
    let server = Server::start();
    let mut client = server.raw();
    for mode in ["", "READ", "WRITE"] {
        let first = client.int(&format!("RLOCK.ACQUIRE job alice 60000 {mode}"));
        let release = format!("RLOCK.RELEASE job alice {mode} IFTOKEN {first}");
        assert_eq!(client.int(&release), 0);
        client.nothing_left("job");
        changes_nothing(&mut client, "job", &release);
        let next = client.int(&format!("RLOCK.ACQUIRE job alice 60000 {mode}"));
        changes_nothing(&mut client, "job", &release);
        changes_nothing(&mut client, "job", &format!("{release} ALL"));
        assert_eq!(client.only("job").token, Some(next));
        client.int("RLOCK.FORCE job");
        // Others have it by now.
        client.int(&format!("RLOCK.ACQUIRE job bob 60000 {mode}"));
        changes_nothing(&mut client, "job", &release);
        client.int("RLOCK.FORCE job");
    }
}

#[test]
fn nested_holds_have_one_token() {
    let server = Server::start();
    let mut client = server.raw();
    for mode in ["", "READ", "WRITE"] {
        let take = format!("RLOCK.ACQUIRE job alice 60000 {mode}");
        let token = client.int(&take);
        for _ in 0..3 {
            assert_eq!(client.int(&take), token);
        }
        let release = format!("RLOCK.RELEASE job alice {mode} IFTOKEN");
        assert_eq!(client.int(&format!("{release} {token}")), 3);
        changes_nothing(&mut client, "job", &format!("{release} {} ALL", token + 1));
        assert_eq!(client.int(&format!("{release} {token} ALL")), 0);
        client.nothing_left("job");
    }
}

#[test]
fn each_mode_goes_by_the_token_that_it_was_given() {
    let server = Server::start();
    let mut client = server.raw();
    let reads = client.take_read("doc", "alice");
    let writes = client.take_write("doc", "alice");
    assert!(writes > reads);
    let release =
        |mode: &str, token: i64| format!("RLOCK.RELEASE doc alice {mode} IFTOKEN {token}");
    changes_nothing(&mut client, "doc", &release("READ", writes));
    changes_nothing(&mut client, "doc", &release("WRITE", reads));
    changes_nothing(&mut client, "doc", &release("", writes));
    // A read hold that nests in the write has its token too.
    assert_eq!(client.take_read("doc", "alice"), writes);
    assert_eq!(client.int(&release("READ", writes)), 1);
    assert_eq!(client.int(&release("WRITE", writes)), 0);
    changes_nothing(&mut client, "doc", &release("WRITE", writes));
    assert_eq!(client.int(&release("READ", reads)), 0);
    client.nothing_left("doc");
    // What was read before the last read hold ended is another one.
    let reads = client.take_read("doc", "alice");
    let writes = client.take_write("doc", "alice");
    client.int(&release("READ", reads));
    assert_eq!(client.take_read("doc", "alice"), writes);
    changes_nothing(&mut client, "doc", &release("READ", reads));
    assert_eq!(client.int(&release("READ", writes)), 0);
    // And so it is for writing: the next upgrade has another token.
    client.take_read("doc", "alice");
    client.int(&release("WRITE", writes));
    let again = client.take_write("doc", "alice");
    assert!(again > writes);
    changes_nothing(&mut client, "doc", &release("WRITE", writes));
    assert_eq!(client.int(&release("WRITE", again)), 0);
    assert_eq!(client.held_by("doc"), "alice read 1");
}

/// What ONCE replies to an owner that holds the lock is a token of its hold.
#[test]
fn the_token_of_a_retry_counts_too() {
    let server = Server::start();
    let mut client = server.raw();
    for mode in ["", "READ", "WRITE"] {
        let token = client.int(&format!("RLOCK.ACQUIRE job alice 60000 {mode}"));
        let again = client.int(&format!("RLOCK.ACQUIRE job alice 60000 ONCE {mode}"));
        assert_eq!(again, token);
        let release = format!("RLOCK.RELEASE job alice {mode} IFTOKEN {again}");
        assert_eq!(client.int(&release), 0);
        client.nothing_left("job");
    }
    let reads = client.take_read("doc", "alice");
    let writes = client.take_write("doc", "alice");
    let release = |token: i64| format!("RLOCK.RELEASE doc alice READ IFTOKEN {token}");
    changes_nothing(&mut client, "doc", &release(writes));
    let again = client.int("RLOCK.ACQUIRE doc alice 60000 READ ONCE");
    assert_eq!(again, writes);
    assert!(again > reads);
    assert_eq!(client.int(&release(again)), 0);
    assert_eq!(client.held_by("doc"), "alice write 1");
}

#[test]
fn the_waiter_has_the_lock_that_a_condition_lets_go() {
    let server = Server::start();
    let mut client = server.raw();
    let token = client.take("job", "alice");
    let mut waiter = Waiter::new(&server, "job", "bob");
    changes_nothing(
        &mut client,
        "job",
        &format!("RLOCK.FORCE job IFTOKEN {}", token - 1),
    );
    changes_nothing(&mut client, "job", "RLOCK.FORCE job IFOWNER bob");
    waiter.still_waits();
    assert_eq!(
        client.int(&format!("RLOCK.RELEASE job alice IFTOKEN {token}")),
        0
    );
    let next = waiter.token();
    // The stale lock is gone, and its successor is not hit.
    changes_nothing(&mut client, "job", "RLOCK.FORCE job IFOWNER alice");
    changes_nothing(
        &mut client,
        "job",
        &format!("RLOCK.FORCE job IFTOKEN {token}"),
    );
    assert_eq!(client.int(&format!("RLOCK.FORCE job iftoken {next}")), 1);
    changes_nothing(
        &mut client,
        "job",
        &format!("RLOCK.FORCE job IFTOKEN {next}"),
    );
}

#[test]
fn force_can_mean_any_of_several_readers() {
    let server = Server::start();
    let mut client = server.raw();
    for which in 0..6 {
        let tokens = ["a", "b", "c"].map(|owner| client.take_read("doc", owner));
        changes_nothing(&mut client, "doc", "RLOCK.FORCE doc IFOWNER d");
        changes_nothing(
            &mut client,
            "doc",
            &format!("RLOCK.FORCE doc IFTOKEN {}", tokens[0] - 1),
        );
        let force = match which {
            0..=2 => format!("RLOCK.FORCE doc IFOWNER {}", ["a", "b", "c"][which]),
            _ => format!("RLOCK.FORCE doc IFTOKEN {}", tokens[which - 3]),
        };
        assert_eq!(client.int(&force), 1, "{force}");
        client.nothing_left("doc");
    }
    // One who has left is not meant any more.
    let left = client.take_read("doc", "a");
    client.take_read("doc", "b");
    client.int("RLOCK.RELEASE doc a READ");
    changes_nothing(&mut client, "doc", "RLOCK.FORCE doc IFOWNER a");
    changes_nothing(
        &mut client,
        "doc",
        &format!("RLOCK.FORCE doc IFTOKEN {left}"),
    );
    client.int("RLOCK.FORCE doc");
    // A writer that reads has two tokens.
    let reads = client.take_read("doc", "a");
    let writes = client.take_write("doc", "a");
    assert_eq!(client.int(&format!("RLOCK.FORCE doc IFTOKEN {reads}")), 1);
    client.take_read("doc", "a");
    changes_nothing(
        &mut client,
        "doc",
        &format!("RLOCK.FORCE doc IFTOKEN {writes}"),
    );
}

/// Its token is not known here: the fencing counter tells it, where there is one.
#[test]
fn a_hold_that_was_found_has_the_token_of_its_counter() {
    let mut server = Server::start_with(&["--appendonly", "yes", "--appendfsync", "always"]);
    let mut client = server.raw();
    for key in ["job", "work", "doc", "page"] {
        client.ok(&format!("SET redisson_lock_token:{{{key}}} 0"));
    }
    let job = client.take("job", "alice");
    let work = client.take("work", "alice");
    let bare = client.take("bare", "alice");
    let left = client.take_read("doc", "alice");
    let reads = client.take_read("doc", "bob");
    let writes = client.take_write("page", "alice");
    server.restart();
    let mut client = server.raw();
    changes_nothing(
        &mut client,
        "job",
        &format!("RLOCK.RELEASE job alice IFTOKEN {work}"),
    );
    assert_eq!(
        client.int(&format!("RLOCK.RELEASE job alice IFTOKEN {job}")),
        0
    );
    let next = client.take("job", "alice");
    changes_nothing(
        &mut client,
        "job",
        &format!("RLOCK.RELEASE job alice IFTOKEN {job}"),
    );
    assert_eq!(
        client.int(&format!("RLOCK.RELEASE job alice IFTOKEN {next}")),
        0
    );
    changes_nothing(
        &mut client,
        "work",
        &format!("RLOCK.FORCE work IFTOKEN {next}"),
    );
    assert_eq!(client.int(&format!("RLOCK.FORCE work IFTOKEN {work}")), 1);
    // Without a counter nobody knows.
    changes_nothing(
        &mut client,
        "bare",
        &format!("RLOCK.RELEASE bare alice IFTOKEN {bare}"),
    );
    changes_nothing(
        &mut client,
        "bare",
        &format!("RLOCK.FORCE bare IFTOKEN {bare}"),
    );
    assert_eq!(client.int("RLOCK.FORCE bare IFOWNER alice"), 1);
    // Of several readers the last one's is there. FORCE cannot tell whose it was.
    changes_nothing(
        &mut client,
        "doc",
        &format!("RLOCK.RELEASE doc alice READ IFTOKEN {left}"),
    );
    changes_nothing(
        &mut client,
        "doc",
        &format!("RLOCK.FORCE doc IFTOKEN {reads}"),
    );
    assert_eq!(
        client.int(&format!("RLOCK.RELEASE doc bob READ IFTOKEN {reads}")),
        0
    );
    assert_eq!(client.held_by("doc"), "alice read 1");
    assert_eq!(client.int(&format!("RLOCK.FORCE page IFTOKEN {writes}")), 1);
}

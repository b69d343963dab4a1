//! What the AOF gets: plain commands, each decision as one.

use crate::support::{aof, without_deadlines, Ask, RawClient, Server, Way, AOF, LONG};

/// What was written since the last call, a decision a line, without any deadline.
struct Records<'a> {
    server: &'a Server,
    seen: usize,
}

impl Records<'_> {
    fn new(server: &Server) -> Records<'_> {
        Records { server, seen: 0 }
    }

    #[track_caller]
    fn since(&mut self) -> Vec<String> {
        let all = aof(self.server);
        let mut groups: Vec<Vec<String>> = Vec::new();
        let mut in_multi = false;
        for words in &all[self.seen..] {
            match words[0].to_uppercase().as_str() {
                "MULTI" => {
                    in_multi = true;
                    groups.push(Vec::new());
                }
                "EXEC" => in_multi = false,
                name => {
                    let count = words.len() - usize::from(name.starts_with("PEXPIRE"));
                    let line = without_deadlines(&words[..count].join(" "));
                    match groups.last_mut().filter(|_| in_multi) {
                        Some(group) => group.push(line),
                        None => groups.push(vec![line]),
                    }
                }
            }
        }
        self.seen = all.len();
        groups.into_iter().map(|group| group.join("; ")).collect()
    }

    #[track_caller]
    fn after(&mut self, client: &mut RawClient, request: &str, expected: &[&str]) {
        client.ask(request);
        assert_eq!(self.since(), expected, "{request}");
    }
}

#[test]
fn each_step_is_one_record_of_plain_commands() {
    let server = Server::start_with(&AOF);
    let mut client = server.raw();
    let mut records = Records::new(&server);
    for (request, expected) in [
        (
            "RLOCK.ACQUIRE k a 60000 LIMIT 4 PERMITS 2",
            ["HSET k mode permits 4 4 2 a 2; PEXPIREAT k"].as_slice(),
        ),
        // Shorter than the other's, so the key ends as before.
        (
            "RLOCK.ACQUIRE k b 50000 LIMIT 4",
            &["HSET k mode permits 4 4 3 b 1"],
        ),
        (
            "RLOCK.ACQUIRE k b 90000 LIMIT 4",
            &["HSET k mode permits 4 4 4 b 2; PEXPIREAT k"],
        ),
        ("RLOCK.ACQUIRE k c 90000 LIMIT 4", &[]),
        ("RLOCK.ACQUIRE k c 90000 LIMIT 5", &[]),
        ("RLOCK.ACQUIRE k c 90000 LIMIT 4 BLOCK 2", &[]),
        ("RLOCK.RENEW k a 70000 PERMITS", &["HSET k a 2"]),
        (
            "RLOCK.RENEW k b 99000 PERMITS",
            &["HSET k b 2; PEXPIREAT k"],
        ),
        ("RLOCK.ACQUIRE k b 1000 LIMIT 4 PERMITS 2 ONCE", &[]),
        ("RLOCK.RELEASE k a PERMITS 5", &[]),
        (
            "RLOCK.RELEASE k a PERMITS",
            &["HSET k mode permits 4 4 3 a 1"],
        ),
        ("RLOCK.LIMIT k 6", &["HSET k mode permits 4 6 3"]),
        ("RLOCK.LIMIT k 6", &[]),
        ("RLOCK.INFO k", &[]),
        (
            "RLOCK.RELEASE k b PERMITS ALL",
            &["HSET k mode permits 4 6 1; HDEL k b"],
        ),
        ("RLOCK.RELEASE k a PERMITS", &["DEL k"]),
        (
            "RLOCK.ACQUIRE k a 60000 LIMIT 1",
            &["HSET k mode permits 1 1 1 a 1; PEXPIREAT k"],
        ),
        ("RLOCK.FORCE k", &["DEL k"]),
    ] {
        records.after(&mut client, request, expected);
    }
}

#[test]
fn a_release_and_the_grant_that_comes_of_it_are_one_record() {
    let server = Server::start_with(&AOF);
    let mut client = server.raw();
    client.take_permits("k", "a", "LIMIT 2");
    client.take_permits("k", "b", "LIMIT 2");
    let mut next = Way::Block.permits(&server, "k", "c", "LIMIT 2");
    let mut last = Way::Block.permits(&server, "k", "d", "LIMIT 2 PERMITS 2");
    let mut records = Records::new(&server);
    records.since();
    client.give_back("k", "a", 1);
    next.token();
    let granted = "HSET k mode permits 2 2 1; HDEL k a; HSET k mode permits 2 2 2 c 1";
    let found = records.since();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with(granted), "{found:?}");
    client.give_back("k", "b", 1);
    client.give_back("k", "c", 1);
    last.token();
    let found = records.since();
    let expected = "DEL k; HSET k mode permits 2 2 2 d 2; PEXPIREAT k";
    assert_eq!(found[1..], [expected], "{found:?}");
}

/// One HSET for each grant: what stands in it is written at once or not at all.
#[test]
fn the_end_of_a_lease_is_recorded_too() {
    let server = Server::start_with(&AOF);
    let mut client = server.raw();
    client.take_permits("k", "b", "LIMIT 2");
    client.int("RLOCK.ACQUIRE k a 300 LIMIT 2");
    let mut records = Records::new(&server);
    records.since();
    client.permits_become("k", "b=1 mode=permits 2 2 1");
    let expected = ["HSET k mode permits 2 2 1; HDEL k a"];
    assert_eq!(records.since(), expected);
}

#[test]
fn replayed_it_gives_the_same_hash() {
    let mut server = Server::start_with(&AOF);
    let mut client = server.raw();
    for request in [
        "RLOCK.ACQUIRE k a 600000 LIMIT 4 PERMITS 2",
        "RLOCK.ACQUIRE k b 500000 LIMIT 4",
        "RLOCK.RELEASE k a PERMITS",
        "RLOCK.RENEW k a 550000 PERMITS",
        "RLOCK.LIMIT k 8",
        "RLOCK.ACQUIRE k c 700000 LIMIT 4 PERMITS 4",
        "RLOCK.RELEASE k b PERMITS",
        "RLOCK.ACQUIRE other b 500000 LIMIT 4",
    ] {
        client.int(request);
    }
    let before = client.everything();
    client.ok("DEBUG LOADAOF");
    assert_eq!(client.everything(), before);
    server.kill();
    server.start_again();
    let mut client = server.raw();
    assert_eq!(client.everything(), before);
    assert!(client.refused(&format!("RLOCK.ACQUIRE k d {LONG} LIMIT 4 PERMITS 4")));
    assert_eq!(client.permits("k"), "a=1 c=4 mode=permits 4 8 5");
}

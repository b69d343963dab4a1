//! What replicas and the AOF get: plain commands with absolute times, so that
//! every copy of a lock is the same to the millisecond.

use redis::Value;

use crate::support::{aof, eventually, same_on_both, text, Ask, RawClient, Server, Waiter, AOF};

/// Waits until two servers have `job` in the same state, whose hash is this.
#[track_caller]
fn same_job(both: &mut [RawClient; 2], hash: &str) {
    let [master, replica] = both;
    assert_eq!(master.hash("job"), hash);
    assert_eq!(master.deadline("job") > 0, !hash.is_empty());
    same_on_both(master, replica, hash);
}

#[test]
fn a_replica_has_the_same_lock_to_the_millisecond() {
    let master = Server::start();
    let replica = Server::start_replica_of(&master);
    let mut both = [master.raw(), replica.raw()];
    for (request, hash) in [
        ("RLOCK.ACQUIRE job alice 10000", "alice=1"),
        ("RLOCK.ACQUIRE job alice 1000", "alice=2"),
        ("RLOCK.ACQUIRE job alice 60000", "alice=3"),
        ("RLOCK.RENEW job alice 30000", "alice=3"),
        ("RLOCK.RELEASE job alice", "alice=2"),
        ("RLOCK.RELEASE job alice ALL", ""),
        ("RLOCK.ACQUIRE job bob 9007199254740991", "bob=1"),
        ("RLOCK.FORCE job", ""),
        ("RLOCK.ACQUIRE job alice 10000", "alice=1"),
    ] {
        both[0].int(request);
        same_job(&mut both, hash);
    }

    let mut waiter = Waiter::with(&master, "job bob 60000 BLOCK 0");
    both[0].int("RLOCK.RELEASE job alice");
    waiter.token();
    same_job(&mut both, "bob=1");

    let mut waiter = Waiter::with(&master, "job carol 60000 BLOCK 0");
    both[0].int("RLOCK.RENEW job bob 40");
    waiter.token();
    same_job(&mut both, "carol=1");

    both[0].int("RLOCK.RENEW job carol 40");
    eventually("the lease is over", || both[0].int("EXISTS job") == 0);
    same_job(&mut both, "");

    both[0].ok("SELECT 5");
    both[1].ok("SELECT 5");
    both[0].ask(&[
        b"RLOCK.ACQUIRE".as_slice(),
        b"\0\xff\r\n",
        b"\xff\0",
        b"60000",
    ]);
    let binary = |client: &mut RawClient| client.state(b"\0\xff\r\n");
    let held = binary(&mut both[0]);
    assert_ne!(held[1], Value::Nil);
    eventually("the replica is the same", || binary(&mut both[1]) == held);
}

#[test]
fn a_replica_without_the_module_understands_all_of_it() {
    let master = Server::start();
    let replica = Server::start_replica_of(&master);
    master.counts_its_replica();
    let mut client = master.raw();
    replica.raw().ok("MODULE UNLOAD rlock");
    let mut monitor = replica.raw();
    monitor.ok("MONITOR");
    client.int("RLOCK.ACQUIRE job alice 60000");
    client.refused("RLOCK.ACQUIRE job bob 60000");
    client.int("RLOCK.ACQUIRE job alice 90000");
    client.int("RLOCK.RENEW job alice 60000");
    client.int("RLOCK.RELEASE job alice");
    client.int("RLOCK.FORCE job");
    client.int("RLOCK.ACQUIRE job bob 60000");
    client.ok("SET end 1");
    let mut seen = Vec::new();
    while seen.last().is_none_or(|command| command != "SET") {
        let line = text(monitor.read());
        let words: Vec<&str> = line.split('"').collect();
        seen.push(words[1].to_uppercase());
    }
    seen.retain(|command| !["SELECT", "PING", "REPLCONF", "INFO"].contains(&command.as_str()));
    let expected =
        "RESTORE MULTI HSET PEXPIREAT EXEC PEXPIREAT HSET MULTI DEL PUBLISH EXEC RESTORE SET";
    assert_eq!(seen.join(" "), expected);
    same_job(&mut [client, replica.raw()], "bob=1");
}

/// The commands in the AOF, grouped as they take effect together.
#[track_caller]
fn decisions(server: &Server) -> Vec<Vec<Vec<String>>> {
    let mut groups: Vec<Vec<Vec<String>>> = Vec::new();
    let mut in_multi = false;
    for words in aof(server) {
        match words[0].to_uppercase().as_str() {
            "MULTI" => {
                in_multi = true;
                groups.push(Vec::new());
            }
            "EXEC" => in_multi = false,
            _ if in_multi => groups.last_mut().expect("a group").push(words),
            _ => groups.push(vec![words]),
        }
    }
    groups
}

#[test]
fn the_aof_holds_plain_commands_each_decision_as_one() {
    let server = Server::start_with(&AOF);
    let mut client = server.raw();
    let mut seen = 0;
    let mut since = |client: &mut RawClient| {
        let deadline = client.deadline("job").to_string();
        let groups = decisions(&server);
        let new: Vec<String> = groups[seen..]
            .iter()
            .map(|group| {
                let commands: Vec<String> = group.iter().map(|words| words.join(" ")).collect();
                commands.join("; ").replace(&deadline, "DEADLINE")
            })
            .collect();
        seen = groups.len();
        new
    };
    for (request, expected) in [
        (
            "RLOCK.ACQUIRE job alice 60000",
            ["RESTORE job DEADLINE {alice: 1} REPLACE ABSTTL"].as_slice(),
        ),
        ("RLOCK.ACQUIRE job alice 1000", &["HSET job alice 2"]),
        (
            "RLOCK.ACQUIRE job alice 90000",
            &["HSET job alice 3; PEXPIREAT job DEADLINE"],
        ),
        ("RLOCK.RENEW job alice 60000", &["PEXPIREAT job DEADLINE"]),
        ("RLOCK.RELEASE job alice", &["HSET job alice 2"]),
        ("RLOCK.ACQUIRE job bob 60000", &[]),
        ("RLOCK.ACQUIRE job bob 60000 BLOCK 2", &[]),
        ("RLOCK.ACQUIRE job alice 1 ONCE", &[]),
        (
            "RLOCK.ACQUIRE job alice 70000 ONCE",
            &["PEXPIREAT job DEADLINE"],
        ),
        ("RLOCK.RELEASE job bob", &[]),
        ("RLOCK.RENEW job bob 60000", &[]),
        ("RLOCK.INFO job", &[]),
        ("RLOCK.RELEASE job alice ALL", &["DEL job"]),
        (
            "RLOCK.ACQUIRE job alice 60000",
            &["RESTORE job DEADLINE {alice: 1} REPLACE ABSTTL"],
        ),
        ("RLOCK.FORCE job", &["DEL job"]),
        ("RLOCK.FORCE job", &[]),
        (
            "RLOCK.ACQUIRE job alice 60000",
            &["RESTORE job DEADLINE {alice: 1} REPLACE ABSTTL"],
        ),
    ] {
        client.ask(request);
        assert_eq!(since(&mut client), expected, "{request}");
    }

    let mut waiter = Waiter::with(&server, "job bob 60000 BLOCK 0");
    client.int("RLOCK.RELEASE job alice");
    waiter.token();
    let handed_over = ["RESTORE job DEADLINE {bob: 1} REPLACE ABSTTL"];
    assert_eq!(since(&mut client), handed_over);

    // The server's own cycle would write the end of the lease by itself.
    client.ok("DEBUG SET-ACTIVE-EXPIRE 0");
    let mut waiter = Waiter::with(&server, "job carol 60000 BLOCK 0");
    client.int("RLOCK.RENEW job bob 500");
    assert_eq!(since(&mut client), ["PEXPIREAT job DEADLINE"]);
    waiter.token();
    let granted = since(&mut client).join(" | ").replace("UNLINK", "DEL");
    assert_eq!(
        granted,
        "DEL job; RESTORE job DEADLINE {carol: 1} REPLACE ABSTTL"
    );
}

/// Owners of such lengths have lengths of one and of two bytes in what is sent.
#[test]
fn a_replica_has_owners_of_each_length() {
    let master = Server::start();
    let replica = Server::start_replica_of(&master);
    let mut both = [master.raw(), replica.raw()];
    for length in [1, 63, 64, 65, 511, 512] {
        let owner = "o".repeat(length);
        both[0].take("job", &owner);
        same_job(&mut both, &format!("{owner}=1"));
        let mut waiter = Waiter::with(&master, "job bob 60000 BLOCK 0");
        both[0].release("job", &owner);
        waiter.token();
        same_job(&mut both, "bob=1");
        both[0].release("job", "bob");
    }
}

#[test]
fn a_transaction_and_a_script_are_written_as_their_effects() {
    let server = Server::start_with(&AOF);
    let mut client = server.raw();
    client.ok("MULTI");
    client.text("RLOCK.ACQUIRE job alice 60000");
    client.text("SET x 1");
    client.text("RLOCK.ACQUIRE job bob 60000");
    client.ask("EXEC");
    let script = "redis.call('RLOCK.ACQUIRE', 'job', 'alice', 1) \
                  redis.call('RLOCK.RELEASE', 'job', 'alice', 'ALL')";
    client.ask(&["EVAL", script, "0"]);
    let commands: Vec<Vec<String>> = decisions(&server)
        .into_iter()
        .map(|group| {
            group
                .into_iter()
                .map(|words| words[..2].join(" "))
                .collect()
        })
        .collect();
    assert_eq!(
        commands,
        [vec!["RESTORE job", "SET x"], vec!["HSET job", "DEL job"]]
    );
}

#[test]
fn messages_go_to_replicas_and_not_into_the_aof() {
    let master = Server::start_with(&AOF);
    let replica = Server::start_replica_of(&master);
    master.counts_its_replica();
    let mut both = [master.raw(), replica.raw()];
    both[0].int("RLOCK.ACQUIRE job alice 60000");
    same_job(&mut both, "alice=1");
    both[0].int("RLOCK.RELEASE job alice");
    same_job(&mut both, "");
    let words: Vec<Vec<String>> = decisions(&master).into_iter().flatten().collect();
    let commands: Vec<&str> = words.iter().map(|words| words[0].as_str()).collect();
    assert_eq!(commands, ["RESTORE", "DEL"]);
}

/// Puts locks of several kinds, and gives what they look like.
fn put_locks(client: &mut RawClient) -> Vec<[Value; 3]> {
    client.int("RLOCK.ACQUIRE job alice 3600000");
    client.int("RLOCK.ACQUIRE nested alice 3600000");
    client.int("RLOCK.ACQUIRE nested alice 7200000");
    client.int("RLOCK.ACQUIRE nested alice 1");
    client.int("RLOCK.ACQUIRE renewed alice 3600000");
    client.int("RLOCK.RENEW renewed alice 9000000");
    client.int("RLOCK.ACQUIRE released alice 3600000");
    client.int("RLOCK.RELEASE released alice");
    // One that was handed over when its lease ended.
    client.int("RLOCK.ACQUIRE handed:over alice 30");
    client.int("RLOCK.ACQUIRE handed:over bob 3600000 BLOCK 0");
    states(client)
}

fn states(client: &mut RawClient) -> Vec<[Value; 3]> {
    ["job", "nested", "renewed", "released", "handed:over"]
        .map(|key| client.state(key.as_bytes()))
        .into()
}

#[track_caller]
fn assert_locks_work(client: &mut RawClient) {
    assert_eq!(client.texts("HGETALL nested"), ["alice", "3"]);
    assert_eq!(client.texts("HGETALL handed:over"), ["bob", "1"]);
    assert_eq!(client.int("DBSIZE"), 4);
    assert!(client.refused("RLOCK.ACQUIRE job bob 1000"));
    assert_eq!(client.int("RLOCK.RELEASE nested alice"), 2);
    assert_eq!(client.int("RLOCK.RELEASE job alice"), 0);
    client.int("RLOCK.ACQUIRE job bob 1000");
}

#[test]
fn after_a_crash_the_aof_gives_the_same_locks() {
    let mut server = Server::start_with(&AOF);
    let before = put_locks(&mut server.raw());
    server.kill();
    server.start_again();
    let mut client = server.raw();
    assert_eq!(states(&mut client), before);
    assert_locks_work(&mut client);
    // Also after the AOF was written anew.
    let before = states(&mut client);
    client.ask("BGREWRITEAOF");
    eventually("the AOF was rewritten", || {
        let info = client.text("INFO persistence");
        info.contains("aof_rewrite_in_progress:0") && info.contains("aof_rewrite_scheduled:0")
    });
    drop(client);
    server.kill();
    server.start_again();
    assert_eq!(states(&mut server.raw())[1..], before[1..]);
}

#[test]
fn after_a_restart_an_rdb_file_gives_the_same_locks() {
    let mut server = Server::start();
    let mut client = server.raw();
    let before = put_locks(&mut client);
    client.ok("SAVE");
    server.kill();
    server.start_again();
    let mut client = server.raw();
    assert_eq!(states(&mut client), before);
    assert_locks_work(&mut client);
}

#[test]
fn a_lock_found_after_a_restart_ends_with_its_lease() {
    let mut server = Server::start_with(&AOF);
    let mut client = server.raw();
    client.int("RLOCK.ACQUIRE job alice 3600000");
    server.kill();
    server.start_again();
    let mut client = server.raw();
    client.int("RLOCK.RENEW job alice 30");
    let token = server.raw().int("RLOCK.ACQUIRE job bob 60000 BLOCK 0");
    assert!(token > 0);
    assert_eq!(client.texts("HGETALL job"), ["bob", "1"]);
}

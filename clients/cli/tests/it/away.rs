//! Servers that cannot be reached, and what `rlock` needs of its own machine.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::ports::free_port;
use crate::server::{Server, dies_with_us, until};
use crate::tool::{Notes, done, end, rlock, signal};

#[test]
fn who_waits_says_once_that_there_is_no_connection() {
    let server = Server::start();
    let port = free_port();
    let address = format!("127.0.0.1:{port}");
    let words = [
        "--url", &address, "run", "--wait", "forever", "jobs", "--", "true",
    ];
    let mut waits = rlock(&server, &words);
    let mut waits = waits.stderr(Stdio::piped()).spawn().unwrap();
    let mut errors = BufReader::new(waits.stderr.take().unwrap());
    let mut line = String::new();
    errors.read_line(&mut line).unwrap();
    assert!(
        line.contains(&format!("no connection to {address}: Connection refused")),
        "{line}"
    );
    std::thread::sleep(Duration::from_secs(3));
    let _it = Server::start_at(port);
    assert_eq!(end(waits).code, 0);
    let mut more = String::new();
    errors.read_to_string(&mut more).unwrap();
    assert_eq!(more, "");
}

#[test]
fn a_signal_ends_a_wait_at_a_server_that_stands_still() {
    let server = Server::start();
    server.ask::<i64>("RLOCK.ACQUIRE jobs other 60000");
    let words = ["run", "--wait", "1h", "jobs", "--", "true"];
    let waits = rlock(&server, &words).spawn().unwrap();
    until(|| server.waiters("jobs") == 1);
    server.signal(libc::SIGSTOP);
    let begun = Instant::now();
    signal(&waits, libc::SIGTERM);
    assert_eq!(end(waits).code, 128 + libc::SIGTERM);
    assert!(
        begun.elapsed() < Duration::from_secs(25),
        "{:?}",
        begun.elapsed()
    );
    server.signal(libc::SIGCONT);
    until(|| server.waiters("jobs") == 0);
}

#[test]
fn a_waiter_gets_no_connection_when_the_server_stops() {
    let server = Server::start();
    server.ask::<i64>("RLOCK.ACQUIRE jobs other 60000");
    let words = ["run", "--wait", "8s", "jobs", "--", "true"];
    let mut waits = rlock(&server, &words);
    let waits = waits.stderr(Stdio::piped()).spawn().unwrap();
    until(|| server.waiters("jobs") == 1);
    server.signal(libc::SIGSTOP);
    let seen = end(waits);
    server.signal(libc::SIGCONT);
    assert_eq!(seen.code, 117, "{}", seen.errors);
    assert!(seen.errors.contains("no connection"), "{}", seen.errors);
    assert!(!seen.errors.contains("had it"), "{}", seen.errors);
}

#[test]
fn a_server_without_the_required_module_and_a_node_of_a_cluster_are_refused_at_once() {
    let bare = Server::bare(free_port(), &[]);
    for words in [
        &[
            "--backend=module",
            "run",
            "--wait",
            "forever",
            "jobs",
            "--",
            "true",
        ][..],
        &["--backend=module", "who", "a"],
        &["ls"],
    ] {
        let seen = done(&bare, words);
        assert_eq!(seen.code, 118, "{}", seen.errors);
        assert!(seen.errors.contains("load librlock.so"), "{}", seen.errors);
    }
    let node = loop {
        let port = free_port();
        if port < 55_000 {
            break Server::with(port, &["--cluster-enabled", "yes"]);
        }
    };
    let slots: Vec<String> = (0..16384).map(|slot| slot.to_string()).collect();
    node.ask::<String>(&format!("CLUSTER ADDSLOTS {}", slots.join(" ")));
    until(|| {
        node.ask::<String>("CLUSTER INFO")
            .contains("cluster_state:ok")
    });
    let seen = done(&node, &["run", "--wait", "forever", "jobs", "--", "true"]);
    assert_eq!(seen.code, 118, "{}", seen.errors);
    assert!(seen.errors.contains("node of a cluster"), "{}", seen.errors);
}

#[test]
fn its_connections_have_a_name() {
    let server = Server::start();
    let notes = Notes::new();
    let script = format!("echo $$ > {}; read line", notes.path("ids"));
    let mut run = rlock(&server, &["run", "jobs", "--", "sh", "-c", &script]);
    let mut run = run.stdin(Stdio::piped()).spawn().unwrap();
    notes.ids("ids", 1);
    let name = format!("name=rlock-cli-{}", env!("CARGO_PKG_VERSION"));
    assert!(server.ask::<String>("CLIENT LIST").contains(&name));
    drop(run.stdin.take());
    end(run);
}

#[test]
fn the_lock_is_free_after_the_command_though_its_connection_was_cut() {
    let server = Server::start();
    let notes = Notes::new();
    let script = format!("echo $$ > {}; read line", notes.path("ids"));
    let mut run = rlock(&server, &["run", "jobs", "--", "sh", "-c", &script]);
    let mut run = run.stdin(Stdio::piped()).spawn().unwrap();
    notes.ids("ids", 1);
    let killed: i64 = server.ask("CLIENT KILL TYPE pubsub");
    assert_eq!(killed, 1);
    std::io::Write::write_all(&mut run.stdin.take().unwrap(), b"end\n").unwrap();
    assert_eq!(end(run).code, 0);
    assert!(server.is_free("jobs"));
}

#[test]
fn who_waits_by_quorum_says_once_that_no_majority_answers() {
    let server = Server::start();
    let servers = format!("{},127.0.0.1:1,127.0.0.1:2", server.address());
    let words = [
        "run", "--wait", "6s", "--quorum", &servers, "jobs", "--", "true",
    ];
    let seen = done(&server, &words);
    assert_eq!(seen.code, 117);
    let waiting = seen
        .errors
        .matches("rlock: waiting for jobs: no connection");
    assert_eq!(waiting.count(), 1, "{}", seen.errors);
    assert!(server.is_free("jobs"));
}

#[test]
fn an_address_may_not_be_named_twice_in_a_quorum() {
    let server = Server::start();
    let address = server.address();
    for servers in [
        format!("{address},{address},{address}"),
        format!("{address},127.0.0.1:1,redis://{address}/1"),
    ] {
        let seen = done(
            &server,
            &["run", "--quorum", &servers, "jobs", "--", "true"],
        );
        assert_eq!(seen.code, 125, "{}", seen.errors);
        assert!(seen.errors.contains("twice"), "{}", seen.errors);
    }
    assert!(server.is_free("jobs"));
}

#[test]
fn a_first_server_that_refuses_costs_no_time() {
    let servers = [Server::start(), Server::start()];
    let (one, other) = (servers[0].address(), servers[1].address());
    let addresses = format!("127.0.0.1:1,{one},{other}");
    let words = ["run", "--quorum", &addresses, "jobs", "--", "true"];
    // A busy machine may be slow at any time, but is not each time.
    let once = || {
        let begun = Instant::now();
        assert_eq!(done(&servers[0], &words).code, 0);
        begun.elapsed() < Duration::from_millis(1900)
    };
    assert!((0..8).any(|_| once()));
}

#[test]
fn a_database_that_there_is_not_is_refused_at_once() {
    let server = Server::start();
    let url = format!("redis://{}/99", server.address());
    for wait in [&["run"][..], &["run", "--wait", "forever"]] {
        let words = [&["--url", &url], wait, &["jobs", "--", "true"]].concat();
        // A busy machine may be slow at any time, but is not each time.
        let once = || {
            let begun = Instant::now();
            let seen = done(&server, &words);
            assert_eq!(seen.code, 118, "{}", seen.errors);
            assert!(seen.errors.contains("DB index"), "{}", seen.errors);
            begun.elapsed() < Duration::from_secs(2)
        };
        assert!((0..8).any(|_| once()));
    }
}

#[test]
fn too_few_descriptors_are_an_error_and_no_panic() {
    let server = Server::start();
    let own = env!("CARGO_BIN_EXE_rlock");
    let mut codes = Vec::new();
    // With less no program starts that needs a library.
    for limit in 4..24 {
        let mut run = Command::new("sh");
        let script = format!("ulimit -n {limit}; exec {own} run jobs -- true");
        run.args(["-c", &script]).env("RLOCK_URL", server.address());
        dies_with_us(&mut run);
        let run = run.stdin(Stdio::null()).stderr(Stdio::piped());
        let seen = end(run.spawn().unwrap());
        let says = seen.errors.contains("file descriptors");
        assert!(
            (seen.code == 125 && says) || (seen.code == 0 && seen.errors.is_empty()),
            "{limit}: {} {}",
            seen.code,
            seen.errors
        );
        codes.push(seen.code);
    }
    assert_eq!((codes[0], codes[4], codes[19]), (125, 125, 0));
}

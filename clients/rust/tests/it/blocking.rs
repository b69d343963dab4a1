//! The blocking face, and the examples.

use std::process::Command;
use std::time::Duration;

use rlock_client::blocking::Locks;
use rlock_client::{Error, Reason};

use crate::server::Server;

#[test]
fn without_tokio() {
    let server = Server::start();
    let locks = Locks::new(server.client());
    let hold = locks
        .acquire("jobs")
        .wait(Duration::from_secs(10))
        .get()
        .unwrap();
    assert!(matches!(
        locks
            .acquire("jobs")
            .wait(Duration::from_millis(50))
            .get()
            .unwrap_err(),
        Error::NotAcquired { .. }
    ));
    let inner = hold.again().unwrap();
    inner.release().unwrap();
    hold.renew(Duration::from_secs(20)).unwrap();
    hold.release().unwrap();
    assert!(server.is_free("jobs"));
    let hold = locks.acquire("jobs").read().get().unwrap();
    let (send, receive) = std::sync::mpsc::channel();
    hold.on_lost(move |reason| _ = send.send(reason));
    server.ask::<i64>("RLOCK.FORCE jobs");
    assert_eq!(receive.recv(), Ok(Reason::Forced));
    assert_eq!(hold.release(), Err(Error::Lost(Reason::Forced)));
    let (kept, plain) = (
        locks.acquire("kept").get().unwrap(),
        locks.acquire("plain").plain().get().unwrap(),
    );
    drop((locks, kept, plain));
    let end = std::time::Instant::now() + crate::server::PATIENCE;
    while !(server.is_free("kept") && server.is_free("plain")) {
        assert!(std::time::Instant::now() < end);
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn the_first_program_runs_and_is_what_the_readme_shows() {
    let server = Server::start();
    let directory = std::env::current_exe().unwrap();
    let first = directory.ancestors().nth(2).unwrap().join("examples/first");
    let url = format!("redis://127.0.0.1:{}/", server.port);
    let seen = Command::new(first).env("REDIS_URL", url).output().unwrap();
    let seen = String::from_utf8(seen.stdout).unwrap();
    assert!(
        seen.contains("have it, with token") && seen.contains("done"),
        "{seen}"
    );
    assert!(server.is_free("jobs"));
    let readme = include_str!("../../README.md");
    assert!(
        readme.contains(include_str!("../../examples/first.rs")),
        "the README quotes it"
    );
}

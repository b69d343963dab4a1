//! `rlock run --at-least`: a lock that outlasts a short command.

use std::time::{Duration, Instant};

use crate::server::{Server, until};
use crate::tool::{done, end, rlock};

fn left(server: &Server) -> i64 {
    server.ask("PTTL jobs")
}

#[test]
fn two_hosts_whose_clocks_differ_run_a_short_job_once() {
    let server = Server::start();
    let job = ["run", "--at-least", "1m", "jobs", "--", "true"];
    let begun = Instant::now();
    assert_eq!(done(&server, &job).code, 0);
    // `rlock` does not stay for it, and the lease of 30 s is not what counts.
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert!(left(&server) > 30_000 && left(&server) <= 60_000);
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(done(&server, &job).code, 115);
}

#[test]
fn it_is_kept_however_the_command_ends_and_free_after_that_time() {
    let server = Server::start();
    let words = ["run", "--at-least", "4s", "jobs", "--", "sh", "-c"];
    let begun = Instant::now();
    assert_eq!(done(&server, &[&words[..], &["exit 7"]].concat()).code, 7);
    let at_least = Duration::from_secs(4);
    assert!(left(&server) > 0 || begun.elapsed() >= at_least);
    let next = ["run", "--wait", "1m", "jobs", "--", "true"];
    assert_eq!(done(&server, &next).code, 0);
    assert!(begun.elapsed() >= at_least, "{:?}", begun.elapsed());
    assert!(server.is_free("jobs"));
    // Longer than that: it is released as always.
    let words = ["run", "--at-least", "1s", "jobs", "--", "sleep", "1.5"];
    assert_eq!(done(&server, &words).code, 0);
    assert!(server.is_free("jobs"));
    // What never ran may be run by others.
    let words = ["run", "--at-least", "1m", "jobs", "--", "/no/such/command"];
    assert_eq!(done(&server, &words).code, 127);
    assert!(server.is_free("jobs"));
}

#[test]
fn readers_and_permits_are_kept_too_and_a_lost_lock_is_reported() {
    let server = Server::start();
    for words in [&["--read"][..], &["--limit", "2"]] {
        let words = [&["run", "--at-least", "1m"], words, &["jobs", "--", "true"]].concat();
        assert_eq!(done(&server, &words).code, 0);
        assert!(left(&server) > 30_000);
        server.ask::<i64>("RLOCK.FORCE jobs");
    }
    let words = ["run", "--at-least", "1m", "jobs", "--", "sleep", "60"];
    let runs = rlock(&server, &words).spawn().unwrap();
    until(|| !server.is_free("jobs"));
    server.ask::<i64>("RLOCK.FORCE jobs");
    assert_eq!(end(runs).code, 116);
    assert!(server.is_free("jobs"));
}

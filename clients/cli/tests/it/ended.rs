//! The command's whole group is ended in time, whatever happens to the lock or to `rlock`.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::server::{Server, until};
use crate::tool::{Notes, end, is_alive, rlock, signal};

/// A command with a child and a grandchild, which notes who they are. `stubborn` ones end by
/// KILL only.
fn family(server: &Server, notes: &Notes, lease: &str, stubborn: bool) -> (Child, Vec<i32>) {
    let trap = if stubborn { "trap '' TERM;" } else { "" };
    let (ids, out) = (notes.path("ids"), notes.path("term"));
    let own = if stubborn {
        String::new()
    } else {
        format!("trap 'echo had >> {out}; exit 9' TERM;")
    };
    let script = format!(
        "{trap} sh -c 'echo $$ >> {ids}; sleep 600 & echo $! >> {ids}; wait' & {own} \
         echo $$ >> {ids}; while :; do sleep 0.05; done"
    );
    let mut run = rlock(
        server,
        &["run", "--lease", lease, "jobs", "--", "sh", "-c", &script],
    );
    let run = run
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let ids = notes.ids("ids", 3);
    (run, ids)
}

fn all_gone(ids: &[i32]) -> bool {
    ids.iter().all(|&id| !is_alive(id))
}

#[test]
fn at_once_by_term_when_the_lock_is_forced() {
    let server = Server::start();
    let notes = Notes::new();
    let (run, ids) = family(&server, &notes, "60s", false);
    server.ask::<i64>("RLOCK.FORCE jobs");
    let seen = end(run);
    assert_eq!(seen.code, 116);
    assert!(seen.errors.contains("forced"), "{}", seen.errors);
    assert_eq!(notes.read("term"), "had\n");
    assert!(all_gone(&ids));
}

#[test]
fn at_once_when_the_key_is_deleted() {
    let server = Server::start();
    let notes = Notes::new();
    let (run, ids) = family(&server, &notes, "60s", false);
    server.ask::<i64>("DEL jobs");
    let seen = end(run);
    assert!(
        seen.code == 116 && seen.errors.contains("deleted"),
        "{}",
        seen.errors
    );
    assert!(all_gone(&ids));
}

/// The time from the moment at which the server froze to the end of the last process.
/// The lease cannot have been renewed after that moment.
fn with_a_frozen_server(stubborn: bool, lease: &str) -> (Duration, i32, Notes) {
    let server = Server::start();
    let notes = Notes::new();
    let (run, ids) = family(&server, &notes, lease, stubborn);
    let begun = Instant::now();
    server.signal(libc::SIGSTOP);
    until(|| all_gone(&ids));
    let took = begun.elapsed();
    server.signal(libc::SIGCONT);
    (took, end(run).code, notes)
}

#[test]
fn by_term_at_two_thirds_of_a_lease_that_is_not_renewed() {
    let (took, code, notes) = with_a_frozen_server(false, "18s");
    // Of the last renewal, which was up to a third of a lease before, or more on a busy machine.
    assert!(
        took >= Duration::from_millis(3900) && took < Duration::from_millis(15_000),
        "{took:?}"
    );
    assert_eq!((code, notes.read("term").as_str()), (116, "had\n"));
}

#[test]
fn by_kill_before_the_lease_ends_if_term_is_not_enough() {
    let (took, code, _) = with_a_frozen_server(true, "18s");
    assert!(
        took >= Duration::from_millis(7900) && took < Duration::from_millis(17_850),
        "{took:?}"
    );
    assert_eq!(code, 116);
}

#[test]
fn when_rlock_itself_is_killed() {
    let server = Server::start();
    for stubborn in [false, true] {
        let notes = Notes::new();
        let (mut run, ids) = family(&server, &notes, "18s", stubborn);
        assert!(!server.is_free("jobs"));
        run.kill().unwrap();
        _ = run.wait();
        let begun = Instant::now();
        until(|| all_gone(&ids));
        let took = begun.elapsed();
        assert!(took < Duration::from_millis(17_850), "{took:?}");
        assert!(
            !server.is_free("jobs") || took > Duration::from_secs(12),
            "before the lock was free"
        );
        until(|| server.is_free("jobs"));
    }
}

#[test]
fn when_rlock_is_stopped() {
    let server = Server::start();
    let notes = Notes::new();
    let (run, ids) = family(&server, &notes, "18s", true);
    signal(&run, libc::SIGSTOP);
    let begun = Instant::now();
    until(|| all_gone(&ids));
    assert!(
        begun.elapsed() < Duration::from_millis(17_850),
        "{:?}",
        begun.elapsed()
    );
    signal(&run, libc::SIGCONT);
    assert_eq!(end(run).code, 116);
}

#[test]
fn when_the_guard_is_killed() {
    let server = Server::start();
    let notes = Notes::new();
    let (run, ids) = family(&server, &notes, "60s", false);
    let children = format!("/proc/{0}/task/{0}/children", run.id());
    let guard: i32 = std::fs::read_to_string(children)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    // SAFETY: a signal to a child of our child.
    unsafe { libc::kill(guard, libc::SIGKILL) };
    let seen = end(run);
    assert!(
        seen.code == 125 && seen.errors.contains("guard"),
        "{}",
        seen.errors
    );
    until(|| all_gone(&ids));
}

//! What has left the command's group, or its session, does not outlive the lock either.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::server::{Server, dies_with_us, until};
use crate::tool::{Notes, end, is_alive, rlock, signal};

/// A command whose children are in groups and sessions of their own, are orphans, and run under
/// another `rlock run`; each notes who it is. `stubborn` ones end by KILL only.
fn runaways(server: &Server, notes: &Notes, lease: &str, stubborn: bool, last: &str) -> Child {
    let trap = if stubborn { "trap '' TERM;" } else { "" };
    let ids = notes.path("ids");
    let one = format!("sh -c \"{trap} echo \\$\\$ >> {ids}; while :; do sleep 0.1; done\"");
    let own = env!("CARGO_BIN_EXE_rlock");
    let script = format!(
        "{trap}
        setsid {one} &
        timeout 600 {one} &
        (setsid {one} & exit)
        sh -c 'exec setsid {one} & exec sleep 600' &
        {own} run --lease 60s inner -- setsid -w {one} &
        bash -c 'set -m; {one} & wait' &
        {last}"
    );
    begun(server, lease, &script)
}

fn begun(server: &Server, lease: &str, script: &str) -> Child {
    let words = ["run", "--lease", lease, "jobs", "--", "sh", "-c", script];
    let mut run = rlock(server, &words);
    run.stdout(Stdio::null()).stderr(Stdio::piped());
    run.spawn().unwrap()
}

/// All of them run.
fn started(notes: &Notes) -> Vec<i32> {
    notes.ids("ids", 6)
}

fn all_gone(ids: &[i32]) -> bool {
    ids.iter().all(|&id| !is_alive(id))
}

#[test]
fn it_is_ended_by_term_when_the_lock_is_forced() {
    let server = Server::start();
    let notes = Notes::new();
    let run = runaways(&server, &notes, "60s", false, "wait");
    let ids = started(&notes);
    server.ask::<i64>("RLOCK.FORCE jobs");
    let begun = Instant::now();
    assert_eq!(end(run).code, 116);
    assert!(all_gone(&ids));
    // Not by KILL, which comes after 40 s.
    assert!(begun.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_command_that_has_stopped_the_guard_is_ended_all_the_same() {
    let server = Server::start();
    let notes = Notes::new();
    // Its parent.
    let script = format!(
        "kill -STOP $PPID; echo $$ > {}; sleep 600",
        notes.path("ids")
    );
    let run = begun(&server, "60s", &script);
    let ids = notes.ids("ids", 1);
    server.ask::<i64>("RLOCK.FORCE jobs");
    assert_eq!(end(run).code, 116);
    assert!(all_gone(&ids));
}

#[test]
fn it_is_killed_before_the_lease_ends() {
    let server = Server::start();
    let notes = Notes::new();
    let run = runaways(&server, &notes, "18s", true, "wait");
    let ids = started(&notes);
    server.signal(libc::SIGSTOP);
    let begun = Instant::now();
    until(|| all_gone(&ids));
    assert!(
        begun.elapsed() < Duration::from_millis(17_850),
        "{:?}",
        begun.elapsed()
    );
    server.signal(libc::SIGCONT);
    assert_eq!(end(run).code, 116);
}

#[test]
fn it_is_killed_when_rlock_is() {
    let server = Server::start();
    let notes = Notes::new();
    let mut run = runaways(&server, &notes, "18s", true, "wait");
    let ids = started(&notes);
    run.kill().unwrap();
    let begun = Instant::now();
    until(|| all_gone(&ids));
    assert!(
        begun.elapsed() < Duration::from_millis(17_850),
        "{:?}",
        begun.elapsed()
    );
    _ = run.wait();
}

#[test]
fn it_is_killed_when_the_guard_is() {
    let server = Server::start();
    let notes = Notes::new();
    let run = runaways(&server, &notes, "60s", true, "wait");
    let ids = started(&notes);
    let children = format!("/proc/{0}/task/{0}/children", run.id());
    let guard = std::fs::read_to_string(children).unwrap();
    // SAFETY: a signal to a child of our child.
    unsafe { libc::kill(guard.trim().parse().unwrap(), libc::SIGKILL) };
    let seen = end(run);
    assert!(all_gone(&ids));
    assert_eq!(seen.code, 125, "{}", seen.errors);
}

/// Before it could say that the command runs, or just after that.
#[test]
fn it_is_killed_when_the_guard_is_at_once() {
    let server = Server::start();
    let notes = Notes::new();
    let script = format!(
        "kill -KILL $PPID; echo $$ >> {}; exec sleep 600",
        notes.path("ids")
    );
    for _ in 0..10 {
        let run = rlock(&server, &["run", "jobs", "--", "sh", "-c", &script]);
        let run = { run }.spawn().unwrap();
        assert_eq!(end(run).code, 125);
        // Nobody has released it.
        server.ask::<i64>("DEL jobs");
    }
    let ids = notes.read("ids");
    until(|| ids.lines().all(|id| !is_alive(id.parse().unwrap())));
}

/// A busy machine may be slow at any time, but is not each time.
#[test]
fn who_was_there_before_is_not_ended() {
    for _ in 0..8 {
        if ended_without_who_was_there_before() < Duration::from_millis(1800) {
            return;
        }
    }
    panic!("it waits for who stays");
}

/// How long that took.
fn ended_without_who_was_there_before() -> Duration {
    let server = Server::start();
    let notes = Notes::new();
    let (ids, own) = (notes.path("ids"), env!("CARGO_BIN_EXE_rlock"));
    let inner = format!("echo $$ >> {ids}; exec sleep 600");
    let script =
        format!("sleep 600 2>/dev/null & echo $! > {ids}; exec {own} run jobs -- sh -c '{inner}'");
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &script])
        .env("RLOCK_URL", server.address());
    dies_with_us(&mut shell);
    let run = shell.stderr(Stdio::piped()).spawn().unwrap();
    let ids = notes.ids("ids", 2);
    let stat = |id: &str| std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let children = format!("/proc/{0}/task/{0}/children", run.id());
    let children = std::fs::read_to_string(children).unwrap();
    let mut children = children.split_whitespace();
    let guard = children
        .find(|id| stat(id).contains("(rlock-guard)"))
        .unwrap();
    // SAFETY: a signal to a child of our child.
    unsafe { libc::kill(guard.parse().unwrap(), libc::SIGKILL) };
    let begun = Instant::now();
    assert_eq!(end(run).code, 125);
    let took = begun.elapsed();
    assert!(is_alive(ids[0]) && !is_alive(ids[1]));
    // SAFETY: a process of this test.
    unsafe { libc::kill(ids[0], libc::SIGKILL) };
    took
}

#[test]
fn it_is_ended_with_the_command() {
    let server = Server::start();
    for stubborn in [false, true] {
        let notes = Notes::new();
        let ids = notes.path("ids");
        let last = format!("until [ \"$(wc -l < {ids})\" = 6 ]; do sleep 0.05; done; exit 4");
        let run = runaways(&server, &notes, "60s", stubborn, &last);
        let seen = end(run);
        assert_eq!(seen.code, 4, "{}", seen.errors);
        assert!(all_gone(&started(&notes)));
        assert!(server.is_free("jobs"));
    }
}

#[test]
fn who_ends_at_once_costs_no_time() {
    let server = Server::start();
    // A child of the command, an orphan, and one whose parent does not wait for it.
    let script = "sleep 600 & (setsid sleep 600 &) ; sh -c 'sleep 0 & exec sleep 600' & exit 4";
    // A busy machine may be slow at any time, but is not each time.
    let once = || {
        let begun = Instant::now();
        let run = rlock(&server, &["run", "jobs", "--", "sh", "-c", script]);
        let run = { run }.spawn().unwrap();
        assert_eq!(end(run).code, 4);
        begun.elapsed() < Duration::from_millis(1900)
    };
    assert!((0..8).any(|_| once()));
}

#[test]
fn a_lock_within_a_lock_is_released() {
    let server = Server::start();
    let notes = Notes::new();
    let script = format!("echo $$ > {}; exec sleep 600", notes.path("ids"));
    let own = env!("CARGO_BIN_EXE_rlock");
    let inner = [own, "run", "inner", "--", "sh", "-c", &script];
    let run = rlock(&server, &[&["run", "outer", "--"][..], &inner].concat());
    let run = { run }.spawn().unwrap();
    let ids = notes.ids("ids", 1);
    signal(&run, libc::SIGTERM);
    assert_eq!(end(run).code, 128 + libc::SIGTERM);
    assert!(all_gone(&ids) && server.is_free("inner") && server.is_free("outer"));
}

/// The names of processes are any bytes.
#[test]
fn a_daemon_whose_name_is_no_utf8_does_not_stay() {
    let server = Server::start();
    let notes = Notes::new();
    let (ids, folder) = (notes.path("ids"), notes.path(""));
    // Under a name of its own, in a session of its own.
    let script = format!(
        "odd=\"{folder}$(printf '\\377')\"; cp \"$(command -v sleep)\" \"$odd\"; \
         setsid \"$odd\" 600 & echo $! >> {ids}; sleep 0.3"
    );
    let run = rlock(&server, &["run", "jobs", "--", "sh", "-c", &script]);
    assert_eq!(end({ run }.spawn().unwrap()).code, 0);
    assert!(all_gone(&notes.ids("ids", 1)));
}

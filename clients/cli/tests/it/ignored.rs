//! Signals that were ignored when `rlock` was started stay ignored, as for a command without it.

use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};

use crate::server::{Server, until};
use crate::tool::{Notes, end, rlock, signal};

const KINDS: [i32; 6] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGUSR1,
    libc::SIGUSR2,
];

/// As `trap '' HUP INT …` and `nohup` leave it.
fn deaf(server: &Server, words: &[&str]) -> Child {
    let mut command = rlock(server, words);
    command.stdin(Stdio::piped());
    // SAFETY: signal may be called between fork and exec.
    unsafe {
        command.pre_exec(|| {
            for kind in KINDS.into_iter().chain([libc::SIGPIPE]) {
                libc::signal(kind, libc::SIG_IGN);
            }
            Ok(())
        })
    };
    command.stdout(Stdio::piped()).spawn().unwrap()
}

/// Which the process ignores, by its own number.
fn ignores(id: i32) -> Vec<i32> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = u64::from_str_radix(mask.unwrap().trim(), 16).unwrap();
    let has = |kind: &i32| mask & (1 << (kind - 1)) != 0;
    (1..32).filter(has).collect()
}

#[test]
fn while_it_waits_and_while_the_command_runs() {
    let server = Server::start();
    let notes = Notes::new();
    server.ask::<i64>("RLOCK.ACQUIRE jobs other 60000");
    let script = format!("echo $$ > {}; read line; echo ran", notes.path("ids"));
    let words = ["run", "--wait", "1h", "jobs", "--", "sh", "-c", &script];
    let mut waits = deaf(&server, &words);
    until(|| server.waiters("jobs") == 1);
    for kind in KINDS {
        signal(&waits, kind);
    }
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(server.waiters("jobs"), 1, "it waits still");
    server.ask::<i64>("RLOCK.RELEASE jobs other");
    let id = notes.ids("ids", 1)[0];
    for kind in KINDS {
        signal(&waits, kind);
    }
    let ignored = ignores(id);
    let all = KINDS.iter().chain([&libc::SIGPIPE]);
    assert!(
        all.clone().all(|kind| ignored.contains(kind)),
        "{ignored:?}"
    );
    std::io::Write::write_all(&mut waits.stdin.take().unwrap(), b"end\n").unwrap();
    let seen = end(waits);
    assert_eq!((seen.code, seen.out.as_str()), (0, "ran\n"));
}

#[test]
fn and_those_that_were_not_are_not() {
    let server = Server::start();
    let notes = Notes::new();
    let script = format!("echo $$ > {}; exec sleep 60", notes.path("ids"));
    let words = ["run", "jobs", "--", "sh", "-c", &script];
    let runs = rlock(&server, &words).spawn().unwrap();
    let ignored = ignores(notes.ids("ids", 1)[0]);
    assert!(
        KINDS
            .iter()
            .chain([&libc::SIGPIPE])
            .all(|kind| !ignored.contains(kind))
    );
    signal(&runs, libc::SIGHUP);
    assert_eq!(end(runs).code, 128 + libc::SIGHUP);
}

#[test]
fn ends_of_children_and_a_signal_that_is_held_back() {
    let server = Server::start();
    let notes = Notes::new();
    let run = |words: &[&str]| {
        let mut run = rlock(&server, &[&["run", "jobs", "--"], words].concat());
        // SAFETY: these may be called between fork and exec.
        unsafe {
            run.pre_exec(|| {
                libc::signal(libc::SIGCHLD, libc::SIG_IGN);
                let mut set = std::mem::zeroed();
                libc::sigemptyset(&mut set);
                libc::sigaddset(&mut set, libc::SIGTERM);
                libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
                Ok(())
            })
        };
        run.stdout(Stdio::piped()).spawn().unwrap()
    };
    assert_eq!(end(run(&["sh", "-c", "exit 7"])).code, 7);
    // The command ignores it still.
    let seen = end(run(&["grep", "SigIgn", "/proc/self/status"]));
    let mask = seen.out.trim().rsplit('\t').next().unwrap();
    let mask = u64::from_str_radix(mask, 16).unwrap();
    assert_ne!(mask & (1 << (libc::SIGCHLD - 1)), 0);
    let script = format!("echo $$ > {}; exec sleep 60", notes.path("ids"));
    let waits = run(&["sh", "-c", &script]);
    notes.ids("ids", 1);
    signal(&waits, libc::SIGTERM);
    assert_eq!(end(waits).code, 128 + libc::SIGTERM);
    assert!(server.is_free("jobs"));
}

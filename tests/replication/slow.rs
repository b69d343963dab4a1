//! Slow commands, one after the other: what is due comes about after one or two of them, and not
//! only when they end.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::stall::{granted, waited_for};
use crate::support::{pair, Ask, Server, Waiter};

/// Takes longer than replicas are silent, however busy the machine is.
const SLOW: &str = "DEBUG SLEEP 1.1";

/// So many, if nothing comes of it.
const MOST: usize = 12;

/// After how many of them, since the lock was taken, it goes to the next.
fn grants_after(server: &Server, pause: u64) -> usize {
    let done = AtomicUsize::new(0);
    let mut slow = server.raw();
    let mut control = server.raw();
    let granted = AtomicUsize::new(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            while done.load(Ordering::SeqCst) < MOST && granted.load(Ordering::SeqCst) == 0 {
                slow.ok(SLOW);
                done.fetch_add(1, Ordering::SeqCst);
                thread::sleep(Duration::from_millis(pause));
            }
        });
        control.token("RLOCK.ACQUIRE k a 500");
        let before = done.load(Ordering::SeqCst);
        let mut next = Waiter::new(server, "k", "b");
        next.token();
        let after = done.load(Ordering::SeqCst) - before;
        granted.store(1, Ordering::SeqCst);
        control.release("k", "b");
        after
    })
}

/// The one in which the lock is taken, the one in which it ends and another, and some for a
/// machine that has others to serve.
#[track_caller]
fn all_goes_on(server: &Server) {
    for pause in [0, 50] {
        let commands = grants_after(server, pause);
        println!("granted after {commands} with pauses of {pause} ms");
        assert!(commands <= 5, "{commands}");
    }
}

#[test]
fn without_a_replica_leases_end() {
    all_goes_on(&Server::start());
}

#[test]
fn with_a_replica_leases_end() {
    let (server, _replica) = pair(&[]);
    all_goes_on(&server);
}

#[test]
fn with_a_replica_that_is_needed_leases_end() {
    let (server, _replica) = pair(&["--min-replicas-to-write", "1"]);
    all_goes_on(&server);
}

#[test]
fn where_the_cron_runs_once_a_second_a_stop_costs_no_second_more() {
    let (server, _replica) = pair(&["--hz", "1"]);
    // A busy machine may be slow at any time, but is not each time.
    let soon = (0..8).any(|n| {
        let mut waiters = waited_for(&server, 1);
        server.pause_process();
        thread::sleep(Duration::from_millis(3000));
        server.resume_process();
        let woken = Instant::now();
        waiters[0].token();
        let took = woken.elapsed();
        println!("{n}: {took:?}");
        server.raw().release("k0", "b");
        took < Duration::from_millis(600)
    });
    assert!(soon, "it took 600 ms and more each time");
}

/// Nobody can have replaced it.
#[test]
fn a_server_that_never_had_a_replica_need_not_learn_anything() {
    let server = Server::start();
    // Its cron looks like one that does not run: it may have stood still for ever.
    server.raw().ok("DEBUG PAUSE-CRON 1");
    let mut waiters = waited_for(&server, 5);
    assert_eq!(granted(&mut waiters, Duration::from_millis(4000)), 5);
}

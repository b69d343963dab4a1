//! The wall clock is stepped, back and forth: what goes by the monotonic clock does not
//! notice, what goes by the wall clock goes by the new one, and nothing stands still.

use std::time::{Duration, Instant};

use redis::Value;

use crate::support::{eventually, longest, Ask, Bound, Clock, RawClient, Server, Waiter, BOUND};

const HOUR: i64 = 3_600_000;

/// Far less than any step here, and far more than what is promised.
const PROMPT: Duration = Duration::from_secs(8);

/// Steps of the wall clock, ms.
const BACK: [i64; 2] = [-HOUR, -20_000];

/// Runs on a server with a wall clock that can be stepped.
fn with_clock(run: impl FnOnce(&Clock, &Server)) {
    let clock = Clock::new();
    if let Some(server) = Server::start_by(&clock, &["--appendonly", "yes"]) {
        run(&clock, &server);
        server.alive();
    }
}

/// A lock that ends in an hour and more, so that the timer is armed for long.
fn far(control: &mut RawClient) {
    control.token("RLOCK.ACQUIRE far z 36000000");
}

/// Until whatever was armed before the step should have fired.
fn settle() {
    let since = Instant::now();
    eventually("time passes", || {
        since.elapsed() > Duration::from_millis(1200)
    });
}

#[track_caller]
fn prompt(what: &str, since: Instant, due: Duration) {
    let late = since.elapsed().saturating_sub(due);
    println!("{what}: {} ms late", late.as_millis());
    assert!(late < PROMPT, "{what}: {late:?} late");
}

#[test]
fn block_times_end_when_they_should_after_a_step_back() {
    with_clock(|clock, server| {
        let mut control = server.raw();
        far(&mut control);
        control.token("RLOCK.ACQUIRE k a 36000000");
        for back in BACK {
            let since = Instant::now();
            let mut waiter = Waiter::with(server, "k b 1000 BLOCK 700");
            clock.set_off(back);
            assert_eq!(waiter.client.read(), Value::Nil);
            assert!(since.elapsed() >= Duration::from_millis(690), "too early");
            prompt("a BLOCK time", since, Duration::from_millis(700));
            clock.set_off(0);
        }
    });
}

#[test]
fn locks_that_others_free_are_granted_after_a_step_back() {
    with_clock(|clock, server| {
        let mut control = server.raw();
        far(&mut control);
        for back in BACK {
            for free in ["DEL k", "FLUSHALL", "RLOCK.FORCE k", "PEXPIRE k 1"] {
                control.token("RLOCK.ACQUIRE k a 36000000");
                let mut waiter = Waiter::new(server, "k", "b");
                clock.set_off(back);
                settle();
                let since = Instant::now();
                control.ask(free);
                waiter.token();
                prompt(free, since, Duration::ZERO);
                assert_eq!(control.int("RLOCK.RELEASE k b"), 0);
                clock.set_off(0);
                control.ask("FLUSHALL");
                far(&mut control);
            }
        }
    });
}

#[test]
fn leases_taken_after_a_step_back_end_by_the_new_clock() {
    with_clock(|clock, server| {
        let mut control = server.raw();
        far(&mut control);
        for back in BACK {
            clock.set_off(back);
            settle();
            let since = Instant::now();
            control.token("RLOCK.ACQUIRE k a 300");
            let mut waiter = Waiter::new(server, "k", "b");
            waiter.token();
            prompt("a lease", since, Duration::from_millis(300));
            assert_eq!(control.int("RLOCK.RELEASE k b"), 0);
            clock.set_off(0);
        }
    });
}

#[test]
fn a_lease_from_before_a_step_back_lasts_longer_by_the_step() {
    with_clock(|clock, server| {
        let mut control = server.raw();
        control.token("RLOCK.ACQUIRE k a 500");
        let mut waiter = Waiter::with(server, "k b 1000 BLOCK 1500");
        clock.set_off(-HOUR);
        assert_eq!(waiter.client.read(), Value::Nil);
        let left = control.int("PTTL k");
        assert!((HOUR - 5000..=HOUR + 500).contains(&left), "{left}");
        assert_eq!(control.int("RLOCK.RENEW k a 500"), 1);
        let mut waiter = Waiter::new(server, "k", "b");
        waiter.token();
    });
}

#[test]
fn watchdogs_keep_and_free_their_locks_after_a_step_back() {
    with_clock(|clock, server| {
        let mut control = server.raw();
        for back in BACK {
            let mut kept = Bound::with(server, "kept a 600");
            let held = Bound::with(server, "k a 600");
            let mut next = Waiter::new(server, "k", "b");
            clock.set_off(back);
            settle();
            let since = Instant::now();
            held.client.close();
            next.token();
            prompt("a close", since, Duration::ZERO);
            let mut after = Bound::with(server, "after a 600");
            eventually("time passes", || {
                since.elapsed() > Duration::from_millis(2000)
            });
            for (held, key) in [(&mut kept, "kept"), (&mut after, "after")] {
                held.client.in_step();
                let hold = control.only(key);
                assert_eq!(
                    (hold.token, hold.watchdog),
                    (Some(held.token), Some(held.id))
                );
            }
            let left = control.int("PTTL after");
            assert!((1..=longest(600)).contains(&left), "renewed: {left}");
            clock.set_off(0);
            control.ask("FLUSHALL");
        }
    });
}

#[test]
fn a_step_back_while_the_timer_fires_holds_nobody_up() {
    // The server fires whatever is due by the time at which it began to fire timers. What
    // is armed meanwhile by a clock that was set back is due by that at once, again and again.
    with_clock(|clock, server| {
        let mut control = server.raw();
        for key in ["k0", "k1", "k2", "k3", "k4"] {
            // Renewed each 10 ms, far more often than the cron looks.
            let mut held = Bound::with(server, &format!("{key} a 30"));
            clock.set_off_at_next_look(-20_000);
            eventually("the module has looked", || clock.has_looked());
            let since = Instant::now();
            control.in_step();
            prompt("a PING", since, Duration::ZERO);
            held.client.in_step();
            assert_eq!(control.only(key).token, Some(held.token));
            held.client.close();
            control.goes_free(key);
            clock.set_off(0);
        }
    });
}

#[test]
fn a_step_forward_ends_leases_and_no_block_time() {
    with_clock(|clock, server| {
        let mut control = server.raw();
        far(&mut control);
        control.token("RLOCK.ACQUIRE k a 60000");
        control.token("RLOCK.ACQUIRE other a 36000000");
        let mut granted = Waiter::new(server, "k", "b");
        let since = Instant::now();
        let mut waits = Waiter::with(server, "other b 1000 BLOCK 12000");
        let mut held = Bound::with(server, "watched a 60000");
        clock.set_off(HOUR);
        granted.token();
        prompt("a lease", since, Duration::ZERO);
        // Nobody came between.
        control.goes_to("watched", "a exclusive 1");
        assert_eq!(control.only("watched").token, Some(held.token));
        held.client.in_step();
        control.has_waiters("other", 1);
        waits.still_waits();
        assert_eq!(waits.client.read(), Value::Nil);
        assert!(
            since.elapsed() >= Duration::from_millis(11_900),
            "too early"
        );
        prompt("a BLOCK time", since, Duration::from_millis(12_000));
    });
}

#[test]
fn tokens_rise_through_steps_of_the_clock() {
    with_clock(|clock, server| {
        let mut control = server.raw();
        let mut last = 0;
        for off in [0, HOUR, -HOUR, 1000, -20_000, 0] {
            clock.set_off(off);
            eventually("the server has seen it", || {
                (server.clock_is_ahead() * 1000 - off).abs() < 2000
            });
            for _ in 0..10 {
                let next = control.token("RLOCK.ACQUIRE k a 1000");
                assert!(next > last, "{next} after {last} at {off}");
                last = next;
                assert_eq!(control.int("RLOCK.RELEASE k a"), 0);
            }
        }
    });
}

#[test]
fn a_replica_follows_a_master_whose_clock_is_stepped() {
    let clock = Clock::new();
    let Some(server) = Server::start_by(&clock, &["--min-replicas-to-write", "1"]) else {
        return;
    };
    // The replica's clock is right.
    let replica = Server::start_replica_of(&server);
    server.counts_its_replica();
    let (mut control, mut copy) = (server.raw(), replica.raw());
    for off in [-HOUR, 0, 30_000, 0, -20_000, 0] {
        // It looks for its replicas once a second: by then it knows of the last step.
        settle();
        eventually("it may write", || control.ask("SET probe 1") == Value::Okay);
        control.token("RLOCK.ACQUIRE k a 36000000");
        let mut waiter = Waiter::with(&server, "k b 36000000 BLOCK 0");
        let mut timed_out = Waiter::with(&server, "k c 1000 BLOCK 300");
        let since = Instant::now();
        clock.set_off(off);
        assert_eq!(timed_out.client.read(), Value::Nil);
        prompt("a BLOCK time", since, Duration::from_millis(300));
        // After a step forward it may be without its replica for a second.
        let freed = |reply: &Value| matches!(reply, Value::Int(_));
        eventually("it is released", || {
            freed(&control.ask("RLOCK.RELEASE k a"))
        });
        waiter.token();
        eventually("the replica has the same", || copy.hash("k") == "b=1");
        assert_eq!(control.held_by("k"), "b exclusive 1");
        eventually("it is released", || {
            freed(&control.ask("RLOCK.RELEASE k b"))
        });
        control.goes_free("k");
    }
    replica.alive();
    server.alive();
}

#[test]
fn after_a_fault_in_the_timer_it_fires_again() {
    // The only way there is to make the module panic: its looks at the clock fail.
    with_clock(|clock, server| {
        let mut control = server.raw();
        control.token("RLOCK.ACQUIRE k a 1500");
        let mut waiter = Waiter::new(server, "k", "b");
        let mut timed_out = Waiter::with(server, "k c 1000 BLOCK 1000");
        // The cron looks ten times a second, the timer by the end of the BLOCK time.
        clock.fail(30);
        eventually("they have failed", || clock.to_fail() <= 0);
        assert_eq!(timed_out.client.read_within(BOUND), Some(Value::Nil));
        waiter.token();
        assert!(
            server.log().contains("a fault in a timer"),
            "{}",
            server.log()
        );
        // It goes on doing so.
        assert_eq!(control.int("RLOCK.RELEASE k b"), 0);
        control.token("RLOCK.ACQUIRE k a 300");
        Waiter::new(server, "k", "b").token();
    });
}

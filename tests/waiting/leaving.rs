//! Waiters that go before they are granted: nobody waits behind a ghost, and
//! nothing is granted to one.

use crate::support::{both_ways, Ask, Leave, Server, Waiter, Way};

/// With `before` waiters ahead of the one that leaves and `after` behind it.
fn leaves_from_the_middle(by: Way, server: &Server, way: Leave, before: usize, after: usize) {
    let mut control = server.raw();
    control.ask("FLUSHALL");
    control.ask("RLOCK.ACQUIRE k a 100000");
    let all = |prefix: &str, count| -> Vec<(String, Waiter)> {
        (0..count)
            .map(|n| format!("{prefix}{n}"))
            .map(|owner| (owner.clone(), by.wait(server, "k", &owner)))
            .collect()
    };
    let mut staying = all("ahead", before);
    let gone = by.with(server, "k gone 100000 BLOCK 60000");
    staying.extend(all("behind", after));
    let gone = way.leave(&mut control, gone);
    control.has_waiters("k", staying.len() as i64);

    let mut last = "a".to_owned();
    for (owner, waiter) in &mut staying {
        control.ask(&format!("RLOCK.RELEASE k {last}"));
        assert_eq!(control.hash("k"), format!("{owner}=1"));
        waiter.token();
        last.clone_from(owner);
    }
    control.ask(&format!("RLOCK.RELEASE k {last}"));
    control.is_free("k");

    // Who still has a connection was told once, and can wait again.
    if let Some(waiter) = gone {
        control.ask("RLOCK.ACQUIRE k a 100000");
        let mut again = by.on(waiter.client, "RLOCK.ACQUIRE k gone 100000 BLOCK 0");
        assert_eq!(control.waiters("k"), 1);
        control.ask("RLOCK.RELEASE k a");
        again.token();
        again.client.in_step();
    }
}

both_ways!(a_waiter_that_leaves_is_passed_over);
fn a_waiter_that_leaves_is_passed_over(by: Way) {
    let server = Server::start();
    for way in Leave::early(by) {
        println!("{way:?}");
        for (before, after) in [(0, 0), (0, 2), (2, 0), (1, 1)] {
            leaves_from_the_middle(by, &server, way, before, after);
        }
    }
    server.alive();
}

both_ways!(all_waiters_leave_and_nothing_is_left_of_them);
fn all_waiters_leave_and_nothing_is_left_of_them(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    control.ask("RLOCK.ACQUIRE k a 100000");
    for way in Leave::early(by) {
        let waiters: Vec<_> = (0..20)
            .map(|n| by.wait(&server, "k", &format!("w{n}")))
            .collect();
        let left: Vec<_> = waiters
            .into_iter()
            .map(|waiter| way.leave(&mut control, waiter))
            .collect();
        control.has_waiters("k", 0);
        assert_eq!(control.info("k").oldest_wait_ms, None, "{way:?}");
        for mut waiter in left.into_iter().flatten() {
            waiter.client.in_step();
        }
    }
    assert_eq!(control.int("RLOCK.RELEASE k a"), 0);
    control.is_free("k");
}

both_ways!(only_the_request_that_left_is_gone_not_its_owners_other_ones);
fn only_the_request_that_left_is_gone_not_its_owners_other_ones(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    // CANCEL would end all of them.
    for way in Leave::early(by).filter(|way| *way != Leave::Cancel) {
        control.ask("FLUSHALL");
        control.ask("RLOCK.ACQUIRE k a 100000");
        let gone = by.wait(&server, "k", "b");
        let mut other = by.wait(&server, "k", "c");
        let mut second = by.wait(&server, "k", "b");
        let mut elsewhere = server.raw();
        elsewhere.ask("SELECT 1");
        elsewhere.ask("RLOCK.ACQUIRE k a 100000");
        elsewhere.send("RLOCK.ACQUIRE k b 100000 BLOCK 0");
        let kept = way.leave(&mut control, gone);
        control.has_waiters("k", 2);
        control.ask("RLOCK.RELEASE k a");
        assert_eq!(control.hash("k"), "c=1", "{way:?}");
        other.token();
        control.ask("RLOCK.RELEASE k c");
        second.token();
        drop(kept);
    }
}

both_ways!(a_waiter_that_leaves_behind_a_dying_holder_leaves_the_lock_to_the_next);
fn a_waiter_that_leaves_behind_a_dying_holder_leaves_the_lock_to_the_next(by: Way) {
    // The holder's connection means nothing to a plain lock: the lease does.
    let server = Server::start();
    let mut control = server.raw();
    let mut holding = server.raw();
    holding.ask("RLOCK.ACQUIRE k a 100000");
    let gone = by.wait(&server, "k", "b");
    let mut next = by.wait(&server, "k", "c");
    holding.close();
    gone.client.close();
    control.has_waiters("k", 1);
    control.ask("PEXPIRE k 100");
    next.token();
    assert_eq!(control.hash("k"), "c=1");
}

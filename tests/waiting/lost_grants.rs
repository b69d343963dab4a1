//! A grant ends answered or lost, exactly one of them: whatever hits the waiter
//! between the grant and its reply, it gets one reply, and the lock is held by a
//! client that was told so.

use std::thread;

use redis::Value;

use crate::support::{both_ways, int, token, wait_for, Ask, RawClient, Server, Waiter, Way};

const ROUNDS: usize = 50;

/// What a waiter was told.
#[derive(Debug, PartialEq)]
enum Told {
    Token(i64),
    Nothing,
    Unblocked,
    Closed,
}

/// How a waiter is hit.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Hit {
    TimeOut,
    Error,
    Kill,
    Cancel,
}

impl Hit {
    /// Those that a waiter of this way can be hit by.
    fn of(by: Way) -> impl Iterator<Item = Self> {
        let all = [Self::Kill, Self::Cancel, Self::TimeOut, Self::Error].into_iter();
        all.filter(move |hit| by == Way::Block || matches!(hit, Self::Kill | Self::Cancel))
    }

    fn on(self, waiter: &Waiter) -> String {
        match self {
            Self::TimeOut => format!("CLIENT UNBLOCK {} TIMEOUT", waiter.id),
            Self::Error => format!("CLIENT UNBLOCK {} ERROR", waiter.id),
            Self::Kill => format!("CLIENT KILL ID {}", waiter.id),
            Self::Cancel => waiter.cancel.clone(),
        }
    }

    /// The one reply that a waiter which was hit gets, and its connection is in
    /// step after it.
    #[track_caller]
    fn told(self, waiter: &mut Waiter) -> Told {
        if self == Self::Kill {
            assert!(waiter.client.is_closed());
            return Told::Closed;
        }
        let told = match waiter.end() {
            Value::Nil => Told::Nothing,
            Value::ServerError(error) if error.code() == "UNBLOCKED" => Told::Unblocked,
            other => Told::Token(token(other)),
        };
        waiter.client.in_step();
        match (self, &told) {
            (_, Told::Token(_)) | (Self::TimeOut | Self::Cancel, Told::Nothing) => {}
            (Self::Error, Told::Unblocked) => {}
            _ => panic!("{self:?} and it was told {told:?}"),
        }
        told
    }
}

/// Sends requests as they are, or in a transaction; their replies.
#[track_caller]
fn run(control: &mut RawClient, lines: &[String], transaction: bool) -> Vec<Value> {
    if !transaction {
        return control.ask_all(lines);
    }
    let mut all = vec!["MULTI".to_owned()];
    all.extend_from_slice(lines);
    all.push("EXEC".to_owned());
    match control.ask_all(&all).pop() {
        Some(Value::Array(replies)) => replies,
        other => panic!("EXEC: {other:?}"),
    }
}

/// `release`, and at once the first waiters are hit. Whoever was told a token has
/// the lock and can release it; whoever was not, has not.
fn hit_right_after_the_grant(by: Way, control: &mut RawClient, server: &Server, case: &Case) {
    control.ask("RLOCK.ACQUIRE k a 100000");
    let mut hit: Vec<_> = case
        .hits
        .iter()
        .zip(["b", "c"])
        .map(|(hit, owner)| (*hit, owner, by.wait(server, "k", owner)))
        .collect();
    let mut last = by.wait(server, "k", "last");

    let mut lines = vec![case.release.to_owned()];
    lines.extend(hit.iter().map(|(hit, _, waiter)| hit.on(waiter)));
    let replies = run(control, &lines, case.transaction);
    assert_eq!(replies.len(), lines.len());
    for reply in &replies[1..] {
        assert!((0..=1).contains(&int(reply.clone())), "{replies:?}");
    }

    for (hit, owner, waiter) in &mut hit {
        let told = hit.told(waiter);
        if let Told::Token(token) = told {
            // It holds the lock, and keeps it until it lets go.
            let held = [(*owner, 1, Some(token))];
            assert_eq!(control.info("k").holds(), held, "{case:?}");
            assert_eq!(
                control.int(&format!("RLOCK.RELEASE k {owner}")),
                0,
                "{case:?}"
            );
        }
    }
    last.token();
    assert_eq!(control.hash("k"), "last=1", "{case:?}");
    assert_eq!(control.int("RLOCK.RELEASE k last"), 0);
    control.is_free("k");
    last.client.in_step();
}

#[derive(Debug)]
struct Case {
    release: &'static str,
    hits: &'static [Hit],
    transaction: bool,
}

fn every_case(by: Way, hits: &[&'static [Hit]]) {
    let server = Server::start();
    let mut control = server.raw();
    for release in ["RLOCK.RELEASE k a", "DEL k", "RLOCK.FORCE k"] {
        for hits in hits.iter().copied() {
            for transaction in [false, true] {
                let case = Case {
                    release,
                    hits,
                    transaction,
                };
                for _ in 0..ROUNDS {
                    hit_right_after_the_grant(by, &mut control, &server, &case);
                }
            }
        }
    }
    server.alive();
}

#[test]
fn a_grant_and_an_unblock_in_one_write_are_one_reply() {
    every_case(Way::Block, &[&[Hit::TimeOut], &[Hit::Error]]);
}

both_ways!(a_grant_and_a_cancel_in_one_write_are_one_end);
fn a_grant_and_a_cancel_in_one_write_are_one_end(by: Way) {
    every_case(by, &[&[Hit::Cancel]]);
}

both_ways!(a_grant_to_a_client_that_is_killed_in_the_same_write_goes_on);
fn a_grant_to_a_client_that_is_killed_in_the_same_write_goes_on(by: Way) {
    every_case(by, &[&[Hit::Kill]]);
}

both_ways!(a_grant_that_is_lost_twice_reaches_the_third);
fn a_grant_that_is_lost_twice_reaches_the_third(by: Way) {
    every_case(by, &[&[Hit::Kill, Hit::Kill], &[Hit::Kill, Hit::Cancel]]);
    if by == Way::Block {
        every_case(
            by,
            &[
                &[Hit::Error, Hit::Error],
                &[Hit::TimeOut, Hit::Error],
                &[Hit::Error, Hit::TimeOut],
                &[Hit::Kill, Hit::Error],
            ],
        );
    }
}

both_ways!(a_waiter_hit_just_before_the_release_leaves_the_lock_to_the_next);
fn a_waiter_hit_just_before_the_release_leaves_the_lock_to_the_next(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    for hit in Hit::of(by) {
        for transaction in [false, true] {
            for _ in 0..ROUNDS {
                control.ask("RLOCK.ACQUIRE k a 100000");
                let mut gone = by.wait(&server, "k", "b");
                let mut next = by.wait(&server, "k", "c");
                let lines = [hit.on(&gone), "RLOCK.RELEASE k a".to_owned()];
                let replies = run(&mut control, &lines, transaction);
                assert_eq!(replies, [Value::Int(1), Value::Int(0)]);
                let told = hit.told(&mut gone);
                assert!(!matches!(told, Told::Token(_)), "{told:?}");
                next.token();
                assert_eq!(control.int("RLOCK.RELEASE k c"), 0);
                control.is_free("k");
            }
        }
    }
}

both_ways!(a_lost_grant_of_one_nested_hold_leaves_the_others);
fn a_lost_grant_of_one_nested_hold_leaves_the_others(by: Way) {
    // b waits on two connections; the first to be granted is lost.
    let server = Server::start();
    let mut control = server.raw();
    for hit in Hit::of(by).filter(|hit| matches!(hit, Hit::Error | Hit::Kill)) {
        for _ in 0..ROUNDS {
            control.ask("RLOCK.ACQUIRE k a 100000");
            let mut lost = by.wait(&server, "k", "b");
            let mut kept = by.wait(&server, "k", "b");
            control.ask_all(&["RLOCK.RELEASE k a".to_owned(), hit.on(&lost)]);
            let told = hit.told(&mut lost);
            let granted = kept.token();
            let holds = if told == Told::Token(granted) { 2 } else { 1 };
            wait_for("as many holds as were told", || {
                let held = [("b", holds, Some(granted))];
                (control.info("k").holds() == held).then_some(())
            });
            assert_eq!(control.int("RLOCK.RELEASE k b ALL"), 0);
            control.is_free("k");
        }
    }
}

both_ways!(a_waiter_that_closes_right_before_the_release_is_not_granted);
fn a_waiter_that_closes_right_before_the_release_is_not_granted(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    for round in 0..10 * ROUNDS {
        control.ask("RLOCK.ACQUIRE k a 100000");
        let dead = by.wait(&server, "k", "dead");
        let mut next = by.wait(&server, "k", "next");
        if round % 2 == 0 {
            dead.client.close();
            control.ask("RLOCK.RELEASE k a");
        } else {
            // The close and the release reach the server in one turn of its loop.
            let closing = thread::spawn(move || dead.client.close());
            closing.join().expect("closed");
            control.ask("DEL k");
        }
        next.token();
        assert_eq!(control.hash("k"), "next=1");
        assert_eq!(control.int("RLOCK.RELEASE k next"), 0);
        control.is_free("k");
    }
}

both_ways!(many_waiters_die_while_the_lock_goes_round);
fn many_waiters_die_while_the_lock_goes_round(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    for _ in 0..ROUNDS / 5 {
        control.ask("RLOCK.ACQUIRE k a 100000");
        let dying: Vec<_> = (0..40)
            .map(|n| by.wait(&server, "k", &format!("dying{n}")))
            .collect();
        let mut last = by.wait(&server, "k", "last");
        let mut killer = server.raw();
        let ids: Vec<_> = dying.iter().map(|waiter| waiter.id).collect();
        let killing = thread::spawn(move || {
            for id in ids {
                killer.ask(&format!("CLIENT KILL ID {id}"));
            }
        });
        // Each grant to one that was told is passed on, as its owner would.
        let mut current = "a".to_owned();
        let end = wait_for("the survivor has the lock", || {
            control.ask(&format!("RLOCK.RELEASE k {current}"));
            if let Some(owner) = control.hash("k").strip_suffix("=1") {
                owner.clone_into(&mut current);
            }
            (current == "last").then(|| current.clone())
        });
        killing.join().expect("killed");
        last.token();
        assert_eq!(control.int(&format!("RLOCK.RELEASE k {end}")), 0);
        control.has_waiters("k", 0);
        control.is_free("k");
    }
    server.alive();
}

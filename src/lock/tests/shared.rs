//! Read/write locks that were changed by hand, or whose leases end at odd moments.

use super::shell::{by, key, Shell};
use crate::lock::memory::{lease_key, Value};
use crate::lock::{Cause, Event, Key, Mode, Notice, Verdict, WakeTarget, WallMs};

fn lock() -> Key {
    key(0, "r")
}

/// PERSIST of a reader's first lease key.
fn persist_lease(s: &mut Shell, owner: &str) {
    let name = lease_key(&lock(), owner.as_bytes(), 1);
    s.ks.keys.get_mut(&name).expect("it reads").1 = None;
}

fn ends(s: &Shell) -> Option<WallMs> {
    s.ks.keys.get(&lock()).and_then(|(_, ends)| *ends)
}

#[test]
fn a_nested_lease_lengthens_the_hash_of_a_reader_without_one() {
    let mut s = Shell::new();
    s.get(by("a").on("r").read().lease(20));
    persist_lease(&mut s, "a");
    s.get(by("a").on("r").read().lease(500));
    assert_eq!(ends(&s), Some(s.now.deadline(500)));
}

#[test]
fn a_watchdog_keeps_the_hash_beside_a_reader_without_a_lease() {
    let mut s = Shell::new();
    s.get(by("a").on("r").read().lease(200));
    persist_lease(&mut s, "a");
    s.get(by("c").on("r").read().lease(150).watched());
    s.told.clear();
    for _ in 0..10 {
        s.pass_and_tick(50);
    }
    assert_eq!(s.events(), []);
    assert!(ends(&s) > Some(s.now.wall_ms()));
}

#[test]
fn a_reader_that_left_unheard_does_not_outlast_the_last_one() {
    let mut s = Shell::new();
    s.get(by("gone").on("r").read().lease(300));
    s.get(by("b").on("r").read().lease(40));
    // A script gives back what the other one has, and nobody listens.
    if let Some((Value::Hash(fields), _)) = s.ks.keys.get_mut(&lock()) {
        fields.remove(&b"gone"[..]);
    }
    for owner in ["gone", "b"] {
        s.ks.keys.remove(&lease_key(&lock(), owner.as_bytes(), 1));
    }
    s.pass(45);
    s.reader_changed(&lock(), "b", Cause::Expired);
    s.read_notes();
    assert!(s.core.is_idle());
    assert_eq!(ends(&s), None);
}

#[test]
fn force_tells_of_a_reader_whose_lease_was_over() {
    let mut s = Shell::new();
    s.get(by("a").on("r").read().lease(40));
    s.get(by("b").on("r").read().lease(1000));
    s.told.clear();
    s.pass(45);
    assert_eq!(s.force_on(&lock()), Ok(true));
    assert_eq!(
        s.events(),
        [(lock(), Event::Expired), (lock(), Event::Forced)]
    );
}

#[test]
fn a_request_finds_the_leases_of_others_ended_before_the_timer_does() {
    let mut s = Shell::new();
    s.get(by("gone").on("r").read().lease(40));
    let token = s.get(by("a").on("r").read());
    let upgrade = s.wait(by("a").on("r").write());
    s.told.clear();
    s.pass(45);
    // The upgrade was first, and reading under it is nested.
    assert!(s.get(by("a").on("r").read()) > token);
    assert_eq!(s.answers()[0].0, upgrade);
}

#[test]
fn a_reader_is_told_of_as_expired_when_its_only_lease_is_given_back() {
    let mut s = Shell::new();
    s.get(by("a").on("r").read());
    s.get(by("a").on("r").read());
    // By hand the first of its lease keys ends sooner.
    let first = lease_key(&lock(), b"a", 1);
    s.ks.keys.get_mut(&first).expect("it reads").1 = Some(s.now.deadline(20));
    s.pass_and_tick(30);
    s.told.clear();
    assert_eq!(s.release_as(&lock(), "a", Mode::Read, false), Ok(1));
    assert_eq!(
        s.events(),
        [(lock(), Event::Released), (lock(), Event::Expired)]
    );
    assert!(s.core.is_idle());
}

#[test]
fn a_writer_that_reads_too_has_one_lease_though_the_hash_was_lengthened_by_hand() {
    let mut s = Shell::new();
    s.get(by("c").on("r").write().lease(40));
    s.get(by("c").on("r").read().lease(40));
    s.ks.keys.get_mut(&lock()).expect("it is held").1 = Some(s.now.deadline(200));
    s.get(by("c").on("r").write().lease(10));
    s.pass_and_tick(100);
    assert_eq!(s.release_as(&lock(), "c", Mode::Read, false), Ok(0));
    assert_eq!(s.release_as(&lock(), "c", Mode::Write, true), Ok(0));
}

#[test]
fn nesting_in_a_plain_lock_that_became_a_read_lock_keeps_the_readers_deadlines() {
    let mut s = Shell::new();
    s.get(by("plain").on("r").lease(100));
    // A script that sees no plain locks lets a reader in.
    if let Some((Value::Hash(fields), _)) = s.ks.keys.get_mut(&lock()) {
        fields.insert(b"mode".to_vec(), b"read".to_vec());
        fields.insert(b"b".to_vec(), b"1".to_vec());
    }
    let ends = s.now.deadline(50);
    let lease = lease_key(&lock(), b"b", 1);
    s.ks.keys.insert(lease, (Value::Text, Some(ends)));
    s.get(by("plain").on("r").lease(500));
    assert_eq!(s.core.next_expiry(), Some(ends.plus_ms(1)));
}

#[test]
fn a_plain_hold_that_went_unheard_keeps_no_reader_out() {
    let mut s = Shell::new();
    s.get(by("plain").on("r").lease(1000));
    // A script that sees no plain locks lets a reader in, and then ends the plain hold.
    let enters = |s: &mut Shell, owner: &str, gone: &str| {
        if let Some((Value::Hash(fields), _)) = s.ks.keys.get_mut(&lock()) {
            fields.insert(b"mode".to_vec(), b"read".to_vec());
            fields.insert(owner.as_bytes().to_vec(), b"1".to_vec());
            fields.remove(gone.as_bytes());
        }
        let lease = lease_key(&lock(), owner.as_bytes(), 1);
        let end = Some(s.now.deadline(500));
        s.ks.keys.insert(lease, (Value::Text, end));
    };
    enters(&mut s, "b", "");
    let read = by("a").on("r").read().lease(100);
    assert_eq!(s.acquire(read), Ok(Verdict::Refused));
    enters(&mut s, "c", "plain");
    s.get(read);
}

#[test]
fn every_upgrade_goes_before_one_whose_read_lease_has_ended() {
    let mut s = Shell::new();
    s.get(by("a").on("r").read().lease(1000));
    s.get(by("b").on("r").read().lease(40));
    s.get(by("c").on("r").read().lease(1000));
    s.wait(by("b").on("r").write());
    s.pass_and_tick(45);
    s.wait(by("a").on("r").write());
    s.wait(by("a").on("r").write());
    let queue = s.core.waiters_of(s.now, &lock(), 9);
    let owners: Vec<&[u8]> = queue.iter().map(|waiter| &*waiter.owner).collect();
    assert_eq!(owners, [b"a", b"a", b"b"]);
}

#[test]
fn a_plain_hold_that_a_refused_try_has_seen_is_not_taken_for_a_dead_reader() {
    for names in ["r", "q r"] {
        let mut s = Shell::new();
        // Somebody else's, from before rlock was there.
        let fields = [(b"plain".to_vec(), b"1".to_vec())];
        let end = Some(s.now.deadline(1000));
        s.ks.keys.insert(lock(), (Value::Hash(fields.into()), end));
        assert_eq!(s.acquire(by("a").on(names)), Ok(Verdict::Refused));
        // And a foreign writer takes it over, and leaves again.
        if let Some((Value::Hash(fields), _)) = s.ks.keys.get_mut(&lock()) {
            fields.insert(b"mode".to_vec(), b"write".to_vec());
        }
        s.changed(&lock(), Cause::Unknown);
        for request in [by("b").read(), by("b").write(), by("b")] {
            assert_eq!(s.acquire(request.on("r")), Ok(Verdict::Refused), "{names}");
        }
        assert_eq!(ends(&s), end);
    }
}

#[test]
fn who_waits_by_subscription_is_woken_when_the_last_reader_runs_out_with_the_hash() {
    let mut s = Shell::new();
    s.get(by("a").on("r").read().lease(100));
    s.told.clear();
    s.pass_and_tick(101);
    let target = WakeTarget::OneShared;
    assert!(
        s.told.contains(&Notice::Wake {
            key: lock(),
            target
        }),
        "{:?}",
        s.told
    );
}

#[test]
fn another_end_of_the_hash_is_seen_by_whoever_looks_though_nobody_told() {
    let mut s = Shell::new();
    s.get(by("a").on("r").write().lease(100));
    let end = Some(s.now.deadline(500));
    s.ks.keys.get_mut(&lock()).expect("it writes").1 = end;
    assert_eq!(s.acquire(by("b").on("r").read()), Ok(Verdict::Refused));
    assert_eq!(s.core.locks.lease_end(&lock(), &b"a"[..].into()), end);
}

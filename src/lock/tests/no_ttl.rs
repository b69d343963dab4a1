//! A hash without a TTL is a lock only if it is known for one.

use super::shell::{by, key, Shell};
use crate::lock::memory::Value;
use crate::lock::{Core, Foreign, Outcome, Refusal, Verdict, WallMs};

fn no_lock() -> Refusal {
    Refusal::NotALock {
        key: key(0, "k"),
        why: Foreign::NoTtl,
    }
}

/// A hash of one field, without a TTL.
fn data(field: &str, value: &str) -> (Value, Option<WallMs>) {
    let fields = [(field.into(), value.into())];
    (Value::Hash(fields.into()), None)
}

#[test]
fn a_persisted_lock_that_is_known_is_forced_and_released() {
    let mut s = Shell::new();
    for _ in 0..2 {
        s.get(by("a"));
        s.pexpire(&key(0, "k"), None);
        s.get(by("a"));
        assert_eq!(s.release("a"), Ok(1));
        assert_eq!(s.force(), Ok(true));
        s.get(by("a"));
        s.pexpire(&key(0, "k"), None);
        assert_eq!(s.release("a"), Ok(0));
    }
}

/// Whoever looks at a lock knows it from then on, and it stays one.
#[test]
fn a_found_lock_is_known_once_a_request_has_looked_at_it() {
    type Look = fn(&mut Shell);
    let looks: [Look; 6] = [
        |s| _ = s.acquire(by("b")),
        |s| _ = s.get(by("a")),
        |s| _ = s.release("b"),
        |s| _ = s.release("a"),
        |s| _ = s.renew("a", 100),
        |s| _ = s.release_many("j k", "b"),
    ];
    for look in looks {
        let mut s = Shell::new();
        s.script_takes(&key(0, "k"), "a", 1000);
        s.get(by("a"));
        // As after a restart.
        s.core = Core::default();
        look(&mut s);
        s.pexpire(&key(0, "k"), None);
        s.read_notes();
        assert_eq!(s.acquire(by("b")), Ok(Verdict::Refused));
        assert_eq!(s.release_all("a"), Ok(0));
    }
}

#[test]
fn a_lock_that_was_persisted_before_rlock_knew_it_is_data_until_it_has_a_ttl() {
    let mut s = Shell::new();
    s.get(by("a"));
    s.pexpire(&key(0, "k"), None);
    // As after a restart.
    s.core = Core::default();
    s.told.clear();
    let before = s.ks.keys.clone();
    assert_eq!(s.acquire(by("a").block(0)), Err(no_lock()));
    assert_eq!(s.acquire(by("b").read()), Err(no_lock()));
    assert_eq!(s.acquire(by("b").on("j k")), Err(no_lock()));
    assert_eq!(s.release("a"), Err(no_lock()));
    assert_eq!(s.release_many("j k", "a"), Err(no_lock()));
    assert_eq!(s.renew("a", 10), Err(no_lock()));
    assert_eq!(s.force(), Err(no_lock()));
    assert_eq!(s.ks.keys, before);
    assert!(s.told.is_empty() && s.core.is_idle());
    s.pexpire(&key(0, "k"), Some(100));
    assert_eq!(s.release("a"), Ok(0));
}

/// As for any key that is no lock.
#[test]
fn waiters_stay_when_the_name_becomes_a_hash_without_a_ttl() {
    let mut s = Shell::new();
    s.get(by("a"));
    let waiter = s.wait(by("b"));
    s.del(&key(0, "k"));
    s.ks.keys.insert(key(0, "k"), data("a", "3"));
    s.read_notes();
    assert_eq!(s.release("a"), Err(no_lock()));
    assert_eq!(s.core.waiting(), 1);
    s.pexpire(&key(0, "k"), Some(100));
    s.pass_and_tick(101);
    assert!(matches!(s.answers()[..], [(id, Outcome::Granted(_))] if id == waiter));
}

/// Which of its names the lock has makes no difference, if rlock has seen it go there.
#[test]
fn a_persisted_lock_stays_known_where_it_goes() {
    let mut s = Shell::new();
    s.get(by("a"));
    s.pexpire(&key(0, "k"), None);
    s.rename(&key(0, "k"), &key(0, "j"));
    s.read_notes();
    assert_eq!(s.acquire(by("b").on("j")), Ok(Verdict::Refused));
    s.rename(&key(0, "j"), &key(1, "j"));
    s.swap(0, 1);
    s.read_notes();
    assert_eq!(s.force_on(&key(0, "j")), Ok(true));
}

/// It is the name that is known by what lay there: what came in its place is not.
#[test]
fn what_takes_the_place_of_a_known_lock_is_not_known() {
    let mut s = Shell::new();
    s.get(by("a"));
    s.del(&key(0, "k"));
    s.ks.keys.insert(key(0, "k"), data("a", "1"));
    assert_eq!(s.release("a"), Err(no_lock()));
    s.del(&key(0, "k"));
    s.get(by("a"));
    s.ks.keys.insert(key(0, "j"), data("a", "1"));
    s.rename(&key(0, "j"), &key(0, "k"));
    assert_eq!(s.release("a"), Err(no_lock()));
}

#[test]
fn readers_do_not_make_a_known_lock_of_the_name_that_theirs_is_given() {
    let mut s = Shell::new();
    s.get(by("a").read());
    s.pexpire(&key(0, "k"), None);
    s.get(by("b").read());
    s.rename(&key(0, "k"), &key(0, "j"));
    s.rename(&key(0, "j"), &key(0, "k"));
    assert_eq!(s.force(), Err(no_lock()));
}

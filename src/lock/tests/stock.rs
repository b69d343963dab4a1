//! Keys that could be locks: their ends are served, and nothing is said of them.

use super::shell::{by, key, Shell};
use crate::lock::{Event, Key, Keyspace, Notice, WakeTarget};

impl Shell {
    /// The walk that takes stock comes by a key.
    pub fn take_stock(&mut self, key: &Key) {
        let ends = self.ks.keys.get(key).map(|(_, ends)| *ends);
        if ends.is_some_and(|at| at.is_none_or(|at| at >= self.ks.now_ms)) {
            let look = self.ks.look(key, &[]);
            self.core.presume(self.now, key, &look);
        }
    }
}

/// A lock that a script took, `k`, and that stock was taken of.
fn presumed(ms: i64) -> Shell {
    let mut shell = Shell::new();
    shell.script_takes(&key(0, "k"), "someone", ms);
    shell.take_stock(&key(0, "k"));
    assert_eq!(shell.core.presumed(), 1);
    shell
}

fn woken(shell: &mut Shell) -> Vec<(String, WakeTarget)> {
    let told = std::mem::take(&mut shell.told);
    let woken = told.iter().map(|notice| match notice {
        Notice::WakeListeners { key, target } => {
            (String::from_utf8_lossy(&key.name).into(), *target)
        }
        other => panic!("told of it: {other:?}"),
    });
    woken.collect()
}

#[test]
fn it_ends_in_time_and_silently() {
    let mut shell = presumed(50);
    shell.pass_and_tick(50);
    assert_eq!(shell.core.presumed(), 1);
    shell.pass_and_tick(1);
    assert_eq!(woken(&mut shell), [("k".to_owned(), WakeTarget::One)]);
    assert!(shell.core.is_idle());
    assert_eq!(shell.core.counters.expired, 0);
}

#[test]
fn it_follows_its_key() {
    let mut shell = presumed(50);
    let (from, to) = (key(0, "k"), key(1, "other"));
    shell.pexpire(&from, Some(100));
    shell.read_notes();
    shell.rename(&from, &to);
    shell.read_notes();
    assert_eq!(shell.core.presumed(), 1);
    shell.swap(1, 2);
    shell.read_notes();
    shell.core.check();
    assert!(shell.core.knows(2, b"other"));
    shell.pass_and_tick(101);
    assert_eq!(woken(&mut shell), [("other".to_owned(), WakeTarget::One)]);
    assert!(shell.core.is_idle());
}

#[test]
fn what_is_no_lock_any_more_is_forgotten() {
    for change in [
        Shell::del as fn(&mut Shell, &crate::lock::Key),
        |shell, key| shell.pexpire(key, None),
        |shell, key| shell.set(key, Some(100)),
        |shell, _| shell.flush(None),
    ] {
        let mut shell = presumed(50);
        change(&mut shell, &key(0, "k"));
        shell.read_notes();
        assert!(shell.core.is_idle());
        assert_eq!(woken(&mut shell), []);
    }
}

#[test]
fn a_request_that_finds_it_held_makes_it_known() {
    let mut shell = presumed(50);
    shell.wait(by("b"));
    assert_eq!(shell.core.presumed(), 0);
    shell.pass_and_tick(51);
    let told = shell.events();
    assert_eq!(told[0], (key(0, "k"), Event::Expired));
    assert_eq!(shell.held().map(|held| held.0), Some("b".to_owned()));
}

#[test]
fn what_is_known_stays_and_what_is_presumed_can_be_forgotten() {
    let mut shell = Shell::new();
    shell.get(by("a"));
    shell.take_stock(&key(0, "k"));
    assert_eq!(shell.core.presumed(), 0);
    for n in 0..100 {
        let key = key(n % 3, &format!("other {n}"));
        shell.script_takes(&key, "someone", 50);
        shell.take_stock(&key);
    }
    assert_eq!(shell.core.presumed(), 100);
    let mut all = shell.core.begin_to_forget();
    while shell.core.forget_presumed(&mut all, 7) {}
    shell.core.check();
    assert_eq!(shell.core.presumed(), 0);
    assert_eq!(shell.core.locks.keys(), [key(0, "k")]);
    shell.demoted();
    assert!(shell.core.is_idle());
}

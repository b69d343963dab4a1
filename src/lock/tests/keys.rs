//! Keys that others remove, move, replace or give another TTL.

use std::collections::BTreeMap;

use super::shell::{by, key, Shell};
use crate::lock::memory::Value;
use crate::lock::{Cause, Event, Outcome, Refusal, Slot, WaiterId};

fn granted(s: &mut Shell) -> Vec<WaiterId> {
    let answers = s.answers().into_iter();
    let granted = answers.filter(|(_, outcome)| matches!(outcome, Outcome::Granted(_)));
    granted.map(|(id, _)| id).collect()
}

#[test]
fn del_grants_the_next_and_is_no_event_of_ours() {
    let mut s = Shell::new();
    s.get(by("a"));
    s.told.clear();
    let b = s.wait(by("b"));
    s.del(&key(0, "k"));
    s.read_notes();
    assert_eq!(
        super::shell::events(&s.told),
        [(key(0, "k"), Event::Acquired)]
    );
    assert_eq!(granted(&mut s), [b]);
}

#[test]
fn a_deleted_lock_is_forgotten() {
    let mut s = Shell::new();
    let token = s.get(by("a"));
    s.told.clear();
    s.del(&key(0, "k"));
    s.pass_and_tick(2000);
    assert_eq!(s.events(), []);
    assert!(s.core.is_idle());
    assert!(s.get(by("a")) > token);
}

/// As Redis 8.2 does where the last field of a hash has run out.
#[test]
fn who_waits_is_granted_a_lock_that_is_deleted_after_it_was_told_so() {
    let mut s = Shell::new();
    let k = key(0, "k");
    s.get(by("a"));
    let b = s.wait(by("b"));
    let ends = s.ks.keys[&k].1;
    s.ks.keys
        .insert(k.clone(), (Value::Hash(BTreeMap::new()), ends));
    s.changed(&k, Cause::Removed);
    s.read_notes();
    assert_eq!(granted(&mut s), []);
    s.ks.keys.remove(&k);
    s.pass_and_tick(2);
    assert_eq!(granted(&mut s), [b]);
}

#[test]
fn an_evicted_lock_is_told_of() {
    let mut s = Shell::new();
    s.get(by("a"));
    s.told.clear();
    s.evict(&key(0, "k"));
    s.tick();
    assert_eq!(s.events(), [(key(0, "k"), Event::Evicted)]);
}

#[test]
fn pexpire_by_hand_is_taken_as_it_is() {
    let mut s = Shell::new();
    s.get(by("a").lease(100));
    s.pexpire(&key(0, "k"), Some(20));
    s.read_notes();
    s.told.clear();
    s.pass_and_tick(21);
    assert_eq!(s.events(), [(key(0, "k"), Event::Expired)]);
    s.get(by("a").lease(100));
    s.pexpire(&key(0, "k"), Some(200));
    s.read_notes();
    s.told.clear();
    s.pass_and_tick(150);
    assert_eq!(s.events(), []);
    assert_eq!(s.held(), Some(("a".to_owned(), 1, Some(50))));
}

#[test]
fn a_rename_carries_hold_deadline_and_token() {
    let mut s = Shell::new();
    let token = s.get(by("a").lease(100));
    s.rename(&key(0, "k"), &key(0, "j"));
    s.tick();
    s.told.clear();
    assert!(!s.core.knows(0, b"k"));
    assert_eq!(s.get(by("a").on("j").lease(1)), token);
    assert_eq!(
        s.held_on(&key(0, "j")),
        Some(("a".to_owned(), 2, Some(100)))
    );
    s.told.clear();
    s.pass_and_tick(101);
    assert_eq!(s.events(), [(key(0, "j"), Event::Expired)]);
}

#[test]
fn a_rename_grants_the_old_name_and_holds_the_new_one() {
    let mut s = Shell::new();
    s.get(by("a"));
    s.get(by("z").on("j"));
    let old = s.wait(by("b"));
    s.wait(by("c").on("j"));
    s.rename(&key(0, "k"), &key(0, "j"));
    s.read_notes();
    assert_eq!(granted(&mut s), [old]);
    assert_eq!(
        s.held_on(&key(0, "j")),
        Some(("a".to_owned(), 1, Some(1000)))
    );
    assert_eq!(s.core.waiting(), 1);
}

#[test]
fn a_rename_that_makes_a_waiter_the_holder_nests_it() {
    let mut s = Shell::new();
    let token = s.get(by("a"));
    s.get(by("z").on("j"));
    let nests = s.wait(by("a").on("j"));
    let once = s.wait(by("a").on("j").strictly());
    s.rename(&key(0, "k"), &key(0, "j"));
    s.read_notes();
    let held = Refusal::Held {
        key: key(0, "j"),
        owner: b"a"[..].into(),
    };
    let expected = [
        (nests, Outcome::Granted(token)),
        (once, Outcome::Refused(held)),
    ];
    assert_eq!(s.answers(), expected);
    assert_eq!(
        s.held_on(&key(0, "j")),
        Some(("a".to_owned(), 2, Some(1000)))
    );
}

#[test]
fn a_script_that_takes_the_lock_for_a_waiter_makes_it_nest() {
    let mut s = Shell::new();
    s.get(by("a").lease(10));
    let b = s.wait(by("b").lease(70));
    s.wait(by("c"));
    s.pass(11);
    s.script_takes(&key(0, "k"), "b", 30);
    s.read_notes();
    assert_eq!(granted(&mut s), [b]);
    assert_eq!(s.held(), Some(("b".to_owned(), 2, Some(70))));
}

#[test]
fn waiters_stay_while_the_key_is_no_lock() {
    let mut s = Shell::new();
    s.get(by("a"));
    let b = s.wait(by("b"));
    s.set(&key(0, "k"), None);
    s.told.clear();
    s.pass_and_tick(2000);
    assert!(s.told.is_empty());
    s.acquire(by("c").block(0)).unwrap_err();
    s.del(&key(0, "k"));
    s.read_notes();
    assert_eq!(granted(&mut s), [b]);
}

#[test]
fn the_end_of_a_key_that_is_no_lock_is_not_told_as_a_lease_that_ended() {
    let mut s = Shell::new();
    s.get(by("a"));
    let b = s.wait(by("b"));
    s.set(&key(0, "k"), Some(20));
    s.tick();
    s.told.clear();
    s.pass_and_tick(21);
    assert_eq!(
        super::shell::events(&s.told),
        [(key(0, "k"), Event::Acquired)]
    );
    assert_eq!(granted(&mut s), [b]);
}

#[test]
fn a_lease_that_ended_is_told_though_a_script_took_the_lock_at_once() {
    let mut s = Shell::new();
    s.get(by("a").lease(10));
    s.told.clear();
    s.pass(11);
    s.script_takes(&key(0, "k"), "r", 30);
    s.tick();
    assert_eq!(s.events(), [(key(0, "k"), Event::Expired)]);
}

#[test]
fn a_lease_that_ended_is_told_though_the_key_was_set_at_once() {
    let mut s = Shell::new();
    s.get(by("a").lease(10));
    s.told.clear();
    s.pass(11);
    s.set(&key(0, "k"), None);
    s.tick();
    assert_eq!(s.events(), [(key(0, "k"), Event::Expired)]);
}

#[test]
fn a_flush_grants_all_who_wait_in_that_database() {
    let mut s = Shell::new();
    s.get(by("a"));
    s.get(by("a").on("j"));
    let k = s.wait(by("b"));
    let j = s.wait(by("b").on("j"));
    s.flush(Some(1));
    s.read_notes();
    assert_eq!(granted(&mut s), []);
    s.flush(None);
    s.read_notes();
    let mut both = granted(&mut s);
    both.sort_unstable();
    assert_eq!(both, [k, j]);
}

#[test]
fn a_swap_moves_holds_and_leaves_queues() {
    let mut s = Shell::new();
    let token = s.get(by("a").lease(100));
    let b = s.wait(by("b"));
    s.told.clear();
    s.swap(0, 1);
    s.read_notes();
    assert_eq!(granted(&mut s), [b]);
    let there = s.known(&key(1, "k"), "a").map(|hold| hold.0);
    assert_eq!(there, Some(token));
    s.pass_and_tick(101);
    assert_eq!(s.events(), [(key(1, "k"), Event::Expired)]);
}

#[test]
fn a_lease_that_ended_is_told_though_the_databases_were_swapped() {
    let mut s = Shell::new();
    s.get(by("a").lease(10));
    s.told.clear();
    s.pass(11);
    s.swap(0, 1);
    s.tick();
    assert_eq!(s.events().len(), 1);
}

/// SWAPDB 0 0 is an event too. Before the writes of a look are done there may be
/// no second look at the key: two would be granted.
#[test]
fn a_database_swapped_with_itself_grants_one() {
    let mut s = Shell::new();
    s.get(by("a").lease(10));
    s.wait(by("b"));
    s.wait(by("c"));
    s.pass(11);
    s.swap(0, 0);
    s.tick();
    assert_eq!(granted(&mut s).len(), 1);
}

#[test]
fn a_demoted_server_forgets_holds_and_keeps_who_waits() {
    let mut s = Shell::new();
    s.get(by("a").lease(10));
    s.get(by("a").on("j").lease(10));
    let b = s.wait(by("b"));
    s.told.clear();
    s.demoted();
    assert!(!s.core.knows(0, b"j") && s.core.next_expiry().is_none());
    crate::lock::leave(&mut s.core, b);
    assert!(s.core.is_idle());
}

#[test]
fn a_key_that_moved_to_another_node_is_left_alone() {
    let mut s = Shell::new();
    s.get(by("a"));
    let b = s.wait(by("b"));
    s.told.clear();
    s.ks.slot = Slot::Others;
    s.del(&key(0, "k"));
    s.read_notes();
    s.pass_and_tick(2000);
    assert!(s.told.is_empty());
    crate::lock::leave(&mut s.core, b);
    assert!(s.core.is_idle());
}

/// What was heard before a grant says nothing of the hold that it made.
#[test]
fn what_was_heard_before_a_grant_is_not_held_against_it() {
    let mut s = Shell::new();
    s.get(by("a"));
    let b = s.wait(by("b"));
    let c = s.wait(by("c"));
    s.del(&key(0, "k"));
    s.flush(None);
    s.read_notes();
    assert_eq!(granted(&mut s), [b]);
    assert!(s.known(&key(0, "k"), "b").is_some());
    s.lose(b);
    assert_eq!(granted(&mut s), [c]);
}

#[test]
fn a_lock_that_is_gone_and_there_again_is_another_hold_be_it_the_same_owners() {
    let mut s = Shell::new();
    let k = key(0, "k");
    s.get(by("a"));
    assert!(s.known(&k, "a").is_some());
    s.del(&k);
    s.script_takes(&k, "a", 1000);
    s.read_notes();
    assert_eq!(s.known(&k, "a"), None);
}

#[test]
fn a_key_that_is_no_lock_is_forgotten_where_nobody_waits_for_it() {
    let mut s = Shell::new();
    s.get(by("a"));
    s.set(&key(0, "k"), Some(5000));
    s.read_notes();
    assert!(s.core.is_idle());
}

#[test]
fn a_key_that_is_no_lock_is_forgotten_with_the_last_who_waits_for_it() {
    let mut s = Shell::new();
    s.get(by("a"));
    s.wait(by("b").block(50));
    s.set(&key(0, "k"), Some(5000));
    s.read_notes();
    assert!(!s.core.is_idle());
    s.pass_and_tick(51);
    assert!(s.core.is_idle());
}

#[test]
fn the_end_of_a_lock_that_was_found_and_released_once_is_told() {
    let mut s = Shell::new();
    let k = key(0, "k");
    s.script_takes(&k, "a", 100);
    let nested = Value::Hash(BTreeMap::from([(b"a".to_vec(), b"2".to_vec())]));
    s.ks.keys.get_mut(&k).unwrap().0 = nested;
    assert_eq!(s.release("a"), Ok(1));
    s.told.clear();
    s.pass_and_tick(101);
    assert_eq!(s.events(), [(k, Event::Expired)]);
}

/// It is not asked then, so what is known of it is to stay what it was.
#[test]
fn who_releases_a_lock_whose_end_was_changed_unheard_gives_it_back_all_the_same() {
    let mut s = Shell::new();
    let k = key(0, "k");
    s.get(by("a"));
    s.get(by("a"));
    let later = s.ks.keys[&k].1.map(|at| at.plus_ms(60_000));
    s.ks.keys.get_mut(&k).unwrap().1 = later;
    assert_eq!(s.release("a"), Ok(1));
    assert_eq!(
        s.ks.keys[&k].1, later,
        "a nested hold leaves the lease alone"
    );
    // One hold more is on a lock that ends as it does in truth.
    s.get(by("a"));
    assert_eq!(s.ks.keys[&k].1, later);
    assert_eq!(s.release("a"), Ok(1));
    assert_eq!(s.release("a"), Ok(0));
    assert!(s.core.is_idle() && s.ks.keys.is_empty());
    // Of somebody's hash without an end only that is known that others wait for it to go.
    s.get(by("a"));
    s.ks.keys.get_mut(&k).unwrap().1 = None;
    s.core = Default::default();
    assert!(matches!(s.release("a"), Err(Refusal::NotALock { .. })));
}

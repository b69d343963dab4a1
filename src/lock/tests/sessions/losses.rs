//! What is told of holds that are lost.

use super::*;

#[test]
fn a_release_from_another_connection_is_told_to_the_one_that_was_bound() {
    let mut s = Shell::new();
    s.get(by("b").from(ONE).tag("t"));
    release_by(&mut s, "b", OTHER);
    assert_eq!(said(&mut s), ["1: lost t Released"]);
    s.get(by("b").from(ONE).tag("t"));
    release_by(&mut s, "b", ONE);
    assert_eq!(said(&mut s), Vec::<String>::new());
}

#[test]
fn the_loss_of_a_hold_is_told_with_its_reason() {
    type Do = fn(&mut Shell);
    let ways: [(&str, Do); 9] = [
        ("Expired", |s| s.pass_and_tick(1001)),
        ("Forced", |s| assert!(s.force().unwrap())),
        ("Deleted", |s| gone(s, Cause::Removed)),
        ("Evicted", |s| gone(s, Cause::Evicted)),
        ("Flushed", |s| {
            s.ks.keys.clear();
            s.replaced(None);
            s.read_notes();
        }),
        ("Overwritten", |s| {
            let text = (lock::memory::Value::Text, None);
            s.ks.keys.insert(key(0, "k"), text);
            s.changed(&key(0, "k"), Cause::Overwritten);
            s.read_notes();
        }),
        ("Demoted", Shell::demoted),
        ("Moved", |s| {
            let value = s.ks.keys.remove(&key(0, "k")).unwrap();
            s.ks.keys.insert(key(0, "j"), value);
            s.renamed(&key(0, "k"), &key(0, "j"));
            s.read_notes();
        }),
        ("Moved", |s| {
            s.ks.slot = Slot::Others;
            s.changed(&key(0, "k"), Cause::Removed);
            s.read_notes();
        }),
    ];
    for (reason, happens) in ways {
        for mode in [Mode::Exclusive, Mode::Read, Mode::Write] {
            let mut s = Shell::new();
            s.get(Request {
                mode,
                ..by("b").from(ONE).tag("t")
            });
            happens(&mut s);
            let show = format!("{mode:?}");
            assert_eq!(said(&mut s), [format!("1: lost t {reason}")], "{show}");
            assert!(s.core.sessions.is_empty(), "{show}");
        }
    }
}

fn gone(s: &mut Shell, cause: Cause) {
    s.ks.keys.retain(|at, _| *at != key(0, "k"));
    s.changed(&key(0, "k"), cause);
    s.read_notes();
}

#[test]
fn a_renewal_with_watchdog_leaves_the_address_where_it_was() {
    let mut s = Shell::new();
    s.get(by("b").from(ONE).tag("t"));
    let renewal = Renewal {
        db: 0,
        owner: b"b",
        mode: Mode::Exclusive,
        lease: 1000,
        watch: Some(client(OTHER)),
        notify: None,
        fence: None,
    };
    s.step(|d| lock::renew(d, b"k", &renewal)).unwrap();
    close(&mut s, OTHER);
    assert_eq!(said(&mut s), ["1: lost t Released"]);
}

#[test]
fn behind_the_gate_a_lease_that_is_over_is_told_once() {
    let mut s = Shell::new();
    s.get(by("b").from(ONE).tag("t").watched());
    s.pass(1001);
    s.lapse();
    assert_eq!(said(&mut s), ["1: lost t Expired"]);
    s.lapse();
    s.tick();
    assert_eq!(said(&mut s), Vec::<String>::new());
}

/// Of nested holds each had a name of its own.
#[test]
fn once_names_the_only_connection_that_is_told_and_it_is_not_closed() {
    for first in ["", "watched"] {
        let mut s = Shell::new();
        for tag in ["t", "u"] {
            let ask = by("a").from(ONE).tag(tag);
            s.get(if first.is_empty() { ask } else { ask.watched() });
        }
        s.told.clear();
        s.get(by("a").from(OTHER).tag("v").once().watched());
        let mut told = said(&mut s);
        told.sort();
        assert_eq!(told, ["1: lost t Rebound", "1: lost u Rebound"]);
        s.force().unwrap();
        let closed = closed_by(&s.told);
        assert_eq!(said(&mut s), ["2: lost v Forced"]);
        assert_eq!(closed, []);
    }
}

/// What a connection watches and is told of is bound to it by one bond.
#[test]
fn once_with_notify_alone_takes_the_whole_bond() {
    let mut s = Shell::new();
    s.get(by("a").from(ONE).tag("t").watched());
    s.get(by("a").from(OTHER).tag("t").once());
    assert_eq!(said(&mut s), ["1: lost t Rebound"]);
    close(&mut s, ONE);
    assert!(s.held().is_some());
    s.force().unwrap();
    let closed = closed_by(&s.told);
    assert_eq!(said(&mut s), ["2: lost t Forced"]);
    assert_eq!(closed, []);
}

#[test]
fn who_watches_without_a_name_is_closed_still() {
    let mut s = Shell::new();
    s.get(by("a").from(ONE).watched());
    s.get(by("a").from(OTHER).tag("t").once());
    assert_eq!(said(&mut s), Vec::<String>::new());
    s.force().unwrap();
    let closed = closed_by(&s.told);
    assert_eq!(said(&mut s), ["2: lost t Forced"]);
    assert_eq!(closed, [client(ONE)]);
}

/// The connections that learn of a loss by their close, for they are not told.
fn closed_by(told: &[Notice]) -> Vec<ClientId> {
    let closed = |notice: &Notice| match notice {
        Notice::Lost(loss) if loss.reason != Reason::Rebound => {
            let told = loss.address.as_ref().map(|to| to.client);
            loss.watcher.filter(|watcher| told != Some(*watcher))
        }
        _ => None,
    };
    told.iter().filter_map(closed).collect()
}

/// The one may be deaf when its message is due: it is closed then, as the other is.
#[test]
fn who_is_told_and_who_is_closed_are_both_known_where_a_watch_has_moved_alone() {
    let mut s = Shell::new();
    s.get(by("a").write().from(ONE).tag("t").watched());
    s.get(by("a").write().from(OTHER).once().watched());
    s.get(by("a").read().from(ONE).watched());
    s.told.clear();
    s.force().unwrap();
    assert_eq!(watchers(&s.told), [client(ONE), client(OTHER)]);
    assert_eq!(said(&mut s), ["1: lost t Forced"]);
}

#[test]
fn a_demotion_tells_of_holds_in_slices_and_what_a_request_comes_to_is_told_then() {
    let mut s = Shell::new();
    let keys: Vec<String> = (0..1000).map(|number| format!("k{number}")).collect();
    for key in &keys {
        s.get(by("b").on(key).from(ONE).tag(key).watched());
    }
    s.told.clear();
    s.piece_us = 200;
    s.demoted();
    let mut told = said(&mut s);
    assert!((100..1000).contains(&told.len()), "{}", told.len());
    // It is a master again.
    let left = |key: &&String| !told.contains(&format!("1: lost {key} Demoted"));
    let key = keys.iter().find(left).unwrap();
    assert!(s
        .acquire(by("c").on(key))
        .is_ok_and(|v| v == Verdict::Refused));
    assert_eq!(said(&mut s), [format!("1: lost {key} Demoted")]);
    told.push(format!("1: lost {key} Demoted"));
    while lets_go(&s) {
        s.lapse();
        told.extend(said(&mut s));
    }
    let mut all: Vec<_> = keys
        .iter()
        .map(|key| format!("1: lost {key} Demoted"))
        .collect();
    all.sort();
    told.sort();
    assert_eq!(told, all);
    assert!(!s.core.is_watching() && s.core.sessions.is_empty());
    assert_eq!(s.core.locks.keys(), [super::super::shell::key(0, key)]);
}

//! A request with ONCE is sent again after its connection has closed: its place is kept.

use super::*;
use crate::lock::WaiterId;

const KEPT_MS: i64 = 15_000;

/// `a` holds `k` for long.
fn held() -> Shell {
    let mut s = new();
    s.get(by("a").lease(100_000));
    s.told.clear();
    s
}

fn new() -> Shell {
    let mut s = Shell::new();
    s.core.rules.keep_place = Some(KEPT_MS);
    s
}

/// Who is granted when those who hold it let go, one after the other.
fn order(s: &mut Shell, last: &str) -> Vec<String> {
    let mut owners = Vec::new();
    let mut holder = last.to_owned();
    while s.release(&holder).is_ok() {
        let Some((owner, ..)) = s.held() else {
            return owners;
        };
        owners.push(owner.clone());
        holder = owner;
    }
    owners
}

fn first_in_line(s: &Shell) -> Option<WaiterId> {
    s.core.queues.line(&key(0, "k")).first().map(|(_, id)| id)
}

#[test]
fn its_place_is_kept_for_it() {
    for by_message in [true, false] {
        let mut s = held();
        let first = match by_message {
            true => by("b").once().from(ONE).tag("t").queue(0),
            false => by("b").once().from(ONE).block(0),
        };
        s.wait(first);
        s.wait(by("c"));
        s.wait(by("d").once());
        close(&mut s, ONE);
        s.core.check();
        s.wait(by("e"));
        s.pass_and_tick(KEPT_MS - 1);
        let id = s.wait(by("b").once().from(OTHER).block(0));
        assert_eq!(first_in_line(&s), Some(id));
        assert_eq!(order(&mut s, "a"), ["b", "c", "d", "e"]);
    }
}

#[test]
fn the_lock_goes_to_the_next_meanwhile() {
    let mut s = held();
    s.wait(by("b").once().from(ONE).block(0));
    s.wait(by("c"));
    s.wait(by("d"));
    close(&mut s, ONE);
    s.release("a").unwrap();
    assert_eq!(s.held().unwrap().0, "c");
    s.wait(by("b").once().from(OTHER).block(0));
    assert_eq!(order(&mut s, "c"), ["b", "d"]);
}

#[test]
fn another_request_stands_at_the_tail() {
    let again = || by("b").once().from(OTHER).block(0);
    for (what, first, second, late) in [
        ("not ONCE", by("b").from(ONE).block(0), again(), false),
        ("too late", by("b").once().from(ONE).block(0), again(), true),
        (
            "other keys",
            by("b").once().on("k j").from(ONE).block(0),
            again(),
            false,
        ),
        (
            "no ONCE now",
            by("b").once().from(ONE).block(0),
            by("b"),
            false,
        ),
    ] {
        let mut s = held();
        s.wait(first);
        s.wait(by("c"));
        close(&mut s, ONE);
        s.pass_and_tick(KEPT_MS - 1 + i64::from(late));
        s.wait(second);
        assert_eq!(order(&mut s, "a"), ["c", "b"], "{what}");
    }
}

#[test]
fn a_place_is_taken_once() {
    let mut s = held();
    s.wait(by("b").once().from(ONE).block(0));
    s.wait(by("c"));
    close(&mut s, ONE);
    s.wait(by("b").once().from(OTHER).block(0));
    assert_eq!(cancel(&mut s, "b", None), 1);
    s.wait(by("b").once().from(ONE).block(0));
    assert_eq!(order(&mut s, "a"), ["c", "b"]);
}

#[test]
fn a_place_is_kept_no_more_once_its_request_is_granted() {
    for names in ["k", "k j"] {
        let mut s = held();
        let again = || by("b").once().on(names);
        s.wait(again().from(ONE));
        close(&mut s, ONE);
        s.release("a").unwrap();
        s.get(again());
        s.wait(by("c"));
        s.release_many(names, "b").unwrap();
        s.wait(by("d"));
        s.wait(again());
        assert_eq!(order(&mut s, "c"), ["d", "b"]);
    }
}

#[test]
fn a_place_that_is_called_off_is_kept_no_more() {
    for (names, mode, is_kept) in [
        ("k", None, false),
        ("k", Some(Mode::Exclusive), false),
        ("k", Some(Mode::Write), true),
        ("j k", None, false),
    ] {
        let mut s = held();
        let again = || by("b").once().on(names);
        s.wait(again().from(ONE));
        s.wait(by("c"));
        close(&mut s, ONE);
        assert_eq!(cancel(&mut s, "b", mode), 0);
        s.wait(again());
        let order = order(&mut s, "a");
        assert_eq!(order[0] == "b", is_kept, "{names} {mode:?}: {order:?}");
    }
}

#[test]
fn several_keep_their_order() {
    let mut s = held();
    let clients = [1_000_011, 1_000_012, 1_000_013];
    for (owner, from) in ["b", "c", "d"].into_iter().zip(clients) {
        s.wait(by(owner).once().from(from).block(0));
    }
    s.wait(by("e"));
    for from in clients {
        close(&mut s, from);
    }
    for owner in ["d", "b", "c"] {
        s.wait(by(owner).once());
    }
    assert_eq!(order(&mut s, "a"), ["b", "c", "d", "e"]);
}

/// The reply to the request tells of the grant, and needs no channel.
#[test]
fn who_is_granted_at_its_request_need_not_hear() {
    let mut s = new();
    s.get(by("w").write());
    s.wait(by("r").read().once().from(ONE));
    s.wait(by("x").write());
    close(&mut s, ONE);
    s.get(by("w").read());
    s.release_as(&key(0, "k"), "w", Mode::Write, false).unwrap();
    s.ks.deaf.insert(client(OTHER));
    s.get(by("r").read().once().from(OTHER).tag("t").queue(0));
}

#[test]
fn a_reader_whose_place_is_before_the_writers_reads_at_once() {
    let mut s = new();
    s.get(by("w").write());
    s.wait(by("r").read().once().from(ONE).block(0));
    s.wait(by("x").write());
    close(&mut s, ONE);
    s.get(by("w").read());
    let k = key(0, "k");
    s.release_as(&k, "w", Mode::Write, false).unwrap();
    s.get(by("r").read().once().from(OTHER).block(0));
    assert!(s.core.locks.knows_reader(0, b"k", b"r"));
    assert_eq!(s.core.queues.len(), 1);
}

#[test]
fn a_place_in_which_it_would_wait_for_itself_is_given_up() {
    let mut s = held();
    s.get(by("c").on("j"));
    s.wait(by("b").once().from(ONE).block(0));
    s.wait(by("c"));
    close(&mut s, ONE);
    // `c` waits for `b` if that stands before it, and `b` waits for `c`.
    s.wait(by("b").on("j"));
    s.told.clear();
    s.wait(by("b").once().from(OTHER).block(0));
    assert_eq!(order(&mut s, "a")[0], "c");
}

#[test]
fn so_many_are_kept_and_then_the_oldest_go() {
    let mut s = held();
    let names: Vec<_> = (0..16_385).map(|n| format!("b{n}")).collect();
    for (n, owner) in names.iter().enumerate() {
        let from = 2_000_000 + n as u64;
        s.wait(by(owner).once().from(from).block(0));
        close(&mut s, from);
        s.pass(i64::from(n == 0));
    }
    s.wait(by("c"));
    s.wait(by(&names[0]).once());
    s.wait(by(&names[1]).once());
    assert_eq!(order(&mut s, "a"), [&names[1], "c", &names[0]]);
}

#[test]
fn none_is_kept_where_that_is_set() {
    let mut s = held();
    s.core.rules.keep_place = None;
    s.wait(by("b").once().from(ONE).block(0));
    s.wait(by("c"));
    close(&mut s, ONE);
    s.wait(by("b").once().from(OTHER).block(0));
    assert_eq!(order(&mut s, "a"), ["c", "b"]);
}

//! Nobody is refused for a circle that is none: what others took away or took
//! themselves holds nobody up, whether it was heard of or not.

use super::shell::{by, key, Shell};
use crate::lock::{Outcome, WaiterId};

/// `a` waits for `c`, which `b` holds; `b` waits for `a`, which another one holds.
fn chain(s: &mut Shell) -> (WaiterId, WaiterId) {
    s.get(by("other").on("a"));
    s.get(by("b").on("c"));
    let for_c = s.wait(by("a").on("c"));
    let for_a = s.wait(by("b").on("a"));
    s.told.clear();
    (for_c, for_a)
}

fn only_granted(s: &mut Shell, id: WaiterId) {
    match &s.answers()[..] {
        [(who, Outcome::Granted(_))] if *who == id => {}
        other => panic!("{id} was to be granted: {other:?}"),
    }
}

#[test]
fn a_flush_that_takes_several_locks_leaves_no_circle() {
    let mut s = Shell::new();
    let (for_c, _) = chain(&mut s);
    s.flush(None);
    s.script_takes(&key(0, "a"), "a", 1000);
    s.read_notes();
    only_granted(&mut s, for_c);
}

#[test]
fn neither_do_keys_deleted_one_by_one() {
    for order in [["a", "c"], ["c", "a"]] {
        let mut s = Shell::new();
        let (for_c, _) = chain(&mut s);
        for name in order {
            s.del(&key(0, name));
            if name == "a" {
                s.script_takes(&key(0, name), "a", 1000);
            }
        }
        s.read_notes();
        only_granted(&mut s, for_c);
    }
}

//! Very many holds of one owner on one lock.

use super::{end_in_pieces, losses, owner, LONG, MANY, PIECE};
use crate::lock::tests::shell::{by, key, Shell};
use crate::lock::{Cause, ClientId, Mode, Reason, Refusal, Renewal};

/// An owner that holds `k` very many times, of each of which a connection is told.
fn nested() -> Shell {
    let mut s = Shell::new();
    for number in 0..MANY {
        s.get(by("a").lease(LONG).from(1).tag(&owner(number)));
    }
    s.told.clear();
    s.piece_us = 10_000;
    s
}

/// How they end, or are bound to something else.
type Way<'a> = &'a dyn Fn(&mut Shell);

#[test]
fn very_many_holds_of_one_owner_are_told_of_in_pieces() {
    let k = key(0, "k");
    let renewed_elsewhere = |s: &mut Shell| {
        let client = ClientId::new(7).unwrap();
        let notify = s.core.address(client, b"channel", b"elsewhere", false);
        let renewal = Renewal {
            db: 0,
            owner: b"a",
            mode: Mode::Exclusive,
            lease: LONG,
            watch: None,
            notify: Some(&notify),
            fence: None,
        };
        assert_eq!(s.step(|d| crate::lock::renew(d, b"k", &renewal)), Ok(None));
    };
    let deleted = |s: &mut Shell| {
        s.ks.keys.remove(&k);
        s.changed(&k, Cause::Removed);
    };
    let released_elsewhere = |s: &mut Shell| {
        assert_eq!(s.release_all("a"), Ok(0));
    };
    let ways: [(Way<'_>, Reason); 4] = [
        (&|s| assert_eq!(s.force(), Ok(true)), Reason::Forced),
        (&deleted, Reason::Deleted),
        (&renewed_elsewhere, Reason::Rebound),
        (&released_elsewhere, Reason::Released),
    ];
    for (happens, reason) in ways {
        let mut s = nested();
        happens(&mut s);
        s.core.check();
        assert!(s.told.len() <= PIECE, "{} were told at once", s.told.len());
        let mut lost = losses(&s.told, reason);
        s.told.clear();
        // Its tags are in use until that is told.
        let last = s.acquire(by("b").on("other").from(1).tag(&owner(MANY - 1)));
        assert!(matches!(last, Err(Refusal::TagInUse { .. })), "{last:?}");
        lost += losses(&s.told, reason);
        s.told.clear();
        end_in_pieces(&mut s, |_, told| lost += losses(told, reason));
        assert_eq!(lost, MANY, "each is told once: {reason:?}");
        s.get(by("b").on("other").from(1).tag(&owner(MANY - 1)));
    }
}

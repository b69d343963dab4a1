//! Very many holds that end together, and one of their owners that holds a lock again meanwhile.

use super::{losses, owner, readers, LONG, MANY};
use crate::lock::tests::shell::{by, Request, Shell};
use crate::lock::Reason;

/// How many losses are told as the reader with this number takes a lock again.
fn told_of(s: &mut Shell, number: usize, name: &str, db: i32) -> usize {
    let owner = owner(number);
    s.told.clear();
    let again = by(&owner).on(name).read().lease(LONG);
    s.get(Request { db, ..again });
    losses(&s.told, Reason::Forced)
}

#[test]
fn who_takes_the_lock_again_is_told_first_that_it_was_lost() {
    let mut s = readers(true);
    assert_eq!(s.force(), Ok(true));
    let last = MANY - 1;
    // Another lock, and one of this name in another database, are others.
    assert_eq!(told_of(&mut s, last, "other", 0), 0);
    assert_eq!(told_of(&mut s, last, "k", 1), 0);
    assert_eq!(told_of(&mut s, last, "k", 0), 1);
    s.core.check();
}

#[test]
fn where_two_databases_were_exchanged_it_is_told_first_in_both() {
    let mut s = readers(true);
    assert_eq!(s.force(), Ok(true));
    s.swap(0, 1);
    s.read_notes();
    let last = MANY - 1;
    // There its hold was, and here lie its lease keys.
    assert_eq!(told_of(&mut s, last, "k", 0), 1);
    assert_eq!(told_of(&mut s, last - 1, "k", 1), 1);
    assert_eq!(told_of(&mut s, last - 2, "k", 2), 0);
    s.core.check();
}

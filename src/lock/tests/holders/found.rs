//! Very many who are found to hold a lock, or not to hold it any more.

use super::{losses, owner, readers, LONG, MANY, PIECE};
use crate::lock::memory::{lease_key, Fields, Value};
use crate::lock::tests::shell::{by, key, Request, Shell};
use crate::lock::{Cause, Core, Key, Mode, Reason, Refusal, Verdict, WallMs};

#[test]
fn a_few_of_very_many_readers_are_told_of_without_a_look_at_all() {
    let mut s = Shell::new();
    let (now, k) = (s.now, key(0, "k"));
    // More than are read in one go.
    for number in 0..1_100 {
        s.get(by(&owner(number)).read().lease(LONG));
    }
    let looks = s.ks.looks;
    let holders = s.core.holders_of(&mut s.ks, now, &k, 2).unwrap();
    let names: Vec<_> = holders.iter().map(|holder| holder.owner.to_vec()).collect();
    assert_eq!(names, [b"r0000".to_vec(), b"r0001".to_vec()]);
    assert_eq!((s.ks.looks - looks, s.ks.read), (3, 0));
    // Of a server that knows none of them no more are read than are asked for, or are few.
    let other = Core::default();
    let holders = other.holders_of(&mut s.ks, now, &k, 2).unwrap();
    assert!(holders.iter().all(|holder| holder.mode == Mode::Read));
    assert!(s.ks.read <= 1_024, "{} were read", s.ks.read);
}

#[test]
fn a_large_hash_that_is_no_lock_is_not_read_to_its_end() {
    let mut s = Shell::new();
    let k = key(0, "k");
    let mut fields: Fields = (0..5_000)
        .map(|number| (owner(number).into_bytes(), b"x".to_vec()))
        .collect();
    fields.insert(b"mode".to_vec(), b"read".to_vec());
    let end = Some(WallMs(s.now.wall_ms().0 + LONG));
    s.ks.keys.insert(k.clone(), (Value::Hash(fields), end));
    let refused = s.acquire(by("a").read());
    assert!(
        matches!(refused, Err(Refusal::NotALock { .. })),
        "{refused:?}"
    );
    let now = s.now;
    let refused = s.core.holders_of(&mut s.ks, now, &k, 2);
    assert!(
        matches!(refused, Err(Refusal::NotALock { .. })),
        "{refused:?}"
    );
    // Without an end neither, though INFO tells why it is no lock.
    if let Some((_, end)) = s.ks.keys.get_mut(&k) {
        *end = None;
    }
    let refused = s.core.holders_of(&mut s.ks, now, &k, 2);
    assert!(
        matches!(refused, Err(Refusal::NotALock { .. })),
        "{refused:?}"
    );
    assert_eq!(s.ks.read, 0);
}

/// Until all who hold it are known; no turn looks at many of them.
fn read_in_pieces(s: &mut Shell) {
    for _ in 0..MANY {
        let before = s.ks.looks;
        s.tick();
        let looks = s.ks.looks - before;
        assert!(looks <= 6 * PIECE, "{looks} looks in one turn");
        if !s.core.any_unread() {
            return;
        }
    }
    panic!("it goes on for ever");
}

fn knows(s: &Shell, at: &Key) -> usize {
    s.core.locks.get(at).map_or(0, |entry| entry.fields())
}

/// Another's hand takes away fields of the hash, or adds some with a lease.
fn change(s: &mut Shell, gone: &[usize], new: &[usize]) {
    let k = key(0, "k");
    let Some((Value::Hash(fields), _)) = s.ks.keys.get_mut(&k) else {
        panic!("no hash");
    };
    for number in gone {
        fields.remove(owner(*number).as_bytes());
    }
    for number in new {
        fields.insert(owner(*number).into_bytes(), b"1".to_vec());
    }
    let end = Some(WallMs(s.now.wall_ms().0 + LONG));
    for number in new {
        let lease = lease_key(&k, owner(*number).as_bytes(), 1);
        s.ks.keys.insert(lease, (Value::Text, end));
    }
    s.changed(&k, Cause::Unknown);
}

#[test]
fn who_reads_by_anothers_hand_or_does_not_any_more_is_found_in_pieces() {
    let k = key(0, "k");
    let gone_and_new: [(&[usize], &[usize]); 4] = [
        (&[5], &[]),
        (&[5, 300, 599], &[]),
        (&[], &[1_000]),
        (&[7], &[1_000, 1_001, 1_002]),
    ];
    for (gone, new) in gone_and_new {
        let mut s = readers(true);
        s.ks.parts = 20;
        let waits = s.wait(by("writer").write());
        change(&mut s, gone, new);
        // Others go on meanwhile.
        let looks = s.ks.looks;
        s.get(by(&owner(9)).read().lease(LONG));
        s.release_as(&k, &owner(10), Mode::Read, false).unwrap();
        assert!(s.ks.looks - looks < 6 * PIECE);
        assert_eq!(s.ks.read, 0);
        let mut told = losses(&s.told, Reason::Deleted);
        s.told.clear();
        read_in_pieces(&mut s);
        told += losses(&s.told, Reason::Deleted);
        assert_eq!(told, gone.len());
        assert_eq!(knows(&s, &k), MANY - 1 - gone.len() + new.len());
        for number in new {
            assert!(s.core.locks.hold(&k, owner(*number).as_bytes()).is_some());
        }
        s.core.check();
        // Who waits to write has it when the last has gone.
        let all = (0..MANY).chain(new.iter().copied());
        for number in all.filter(|number| *number != 10 && !gone.contains(number)) {
            assert!(s.core.queues.get(waits).is_some());
            s.release_as(&k, &owner(number), Mode::Read, true).unwrap();
        }
        assert!(s.core.queues.get(waits).is_none());
    }
}

/// As after a restart.
fn unknown(mut s: Shell) -> Shell {
    s.core = Core::default();
    s.ks.parts = 20;
    s
}

#[test]
fn very_many_readers_that_are_found_are_read_in_pieces() {
    let k = key(0, "k");
    let mut s = unknown(readers(false));
    let looks = s.ks.looks;
    // Some of them are known by then: it is a lock, and others may read it too.
    s.get(by("another").read().lease(LONG));
    assert!(s.ks.looks - looks <= 6 * PIECE);
    assert!(matches!(s.acquire(by("w").write()), Ok(Verdict::Refused)));
    let waits = s.wait(by("writer").write());
    read_in_pieces(&mut s);
    assert_eq!(knows(&s, &k), MANY + 1);
    s.core.check();
    // Each lease ends by itself.
    s.pass(LONG + 1);
    (0..MANY).for_each(|_| s.tick());
    assert!(s.core.queues.get(waits).is_none());
}

#[test]
fn a_hash_of_very_many_dead_readers_is_free_when_all_were_looked_at() {
    let k = key(0, "k");
    let mut s = unknown(readers(false));
    s.ks.keys.retain(|at, _| *at == k);
    // Whether anybody is there is not known yet.
    let refused = |s: &mut Shell, request: Request<'_>| {
        let looks = s.ks.looks;
        assert!(matches!(s.acquire(request), Ok(Verdict::Refused)));
        assert!(s.ks.looks - looks <= 10 * PIECE);
    };
    refused(&mut s, by("a").read());
    refused(&mut s, by("a").write());
    refused(&mut s, by("a"));
    let waits = s.wait(by("writer").write());
    (0..MANY).for_each(|_| s.tick());
    assert!(s.core.queues.get(waits).is_none());
    s.core.check();
    s.release_as(&k, "writer", Mode::Write, true).unwrap();
    assert!(s.ks.keys.is_empty() && s.core.is_idle());
}

#[test]
fn a_large_hash_that_turns_out_to_be_no_lock_is_let_alone() {
    let k = key(0, "k");
    let mut s = unknown(readers(false));
    if let Some((Value::Hash(fields), _)) = s.ks.keys.get_mut(&k) {
        fields.insert(b"another".to_vec(), b"x".to_vec());
    }
    s.ks.keys.retain(|at, _| *at == k);
    let _ = s.acquire(by("a").write());
    for _ in 0..MANY {
        s.tick();
        if !s.core.any_unread() {
            break;
        }
    }
    for mode in [Mode::Read, Mode::Write] {
        let refused = s.acquire(Request { mode, ..by("a") });
        assert!(
            matches!(refused, Err(Refusal::NotALock { .. })),
            "{refused:?}"
        );
    }
}

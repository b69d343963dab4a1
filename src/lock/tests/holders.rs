//! Locks that very many hold, and hashes of very many fields: who asks for a few of them makes
//! the server read no more than that.

use super::shell::{by, key, Shell};
use crate::lock::memory::{Fields, Value};
use crate::lock::{Core, Mode, Refusal, WallMs};

const LONG: i64 = 1_000_000;

fn owner(number: usize) -> String {
    format!("r{number:04}")
}

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

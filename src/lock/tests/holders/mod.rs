//! Locks that very many hold, and hashes of very many fields: no request, and no piece of what
//! is due, does something for each of them.

mod ended;
mod found;
mod nested;

use super::shell::{by, key, Request, Shell};
use crate::lock::memory::{lease_key, Fields, Value};
use crate::lock::{Cause, ClientId, Due, Key, Mode, Note, Notice, Reason, Renewal, WallMs};

const MANY: usize = 600;

/// In one turn of the timer, or one request, no more than so many are told something, or have
/// something written for them.
const PIECE: usize = 100;

const LONG: i64 = 1_000_000;

fn owner(number: usize) -> String {
    format!("r{number:04}")
}

/// So many readers of the lock `k`, of whose loss a connection is told.
fn readers(told: bool) -> Shell {
    holders(told, |request| request.read())
}

/// So many who have a permit of it.
fn with_permits(told: bool) -> Shell {
    let limit = u32::try_from(MANY).unwrap() + 1;
    holders(told, |request| request.permits(1, limit))
}

fn holders(told: bool, as_one: impl Fn(Request<'_>) -> Request<'_>) -> Shell {
    let mut s = Shell::new();
    for number in 0..MANY {
        let owner = owner(number);
        let request = as_one(by(&owner).lease(LONG));
        match told {
            true => s.get(request.from(1).tag(&owner)),
            false => s.get(request),
        };
    }
    s.told.clear();
    // A turn of the timer ends after each piece of work.
    s.piece_us = 10_000;
    s
}

fn lease_keys(s: &Shell) -> usize {
    s.ks.keys
        .keys()
        .filter(|key| key.name.starts_with(b"{k}:"))
        .count()
}

/// What follows comes in pieces, until nothing of it is left.
fn end_in_pieces(s: &mut Shell, mut each: impl FnMut(&mut Shell, &[Notice])) {
    let mut turns = 0;
    while !s.notes.is_empty() || Due::any_now(&s.core) {
        let before = lease_keys(s);
        s.tick();
        let told = std::mem::take(&mut s.told);
        assert!(
            before - lease_keys(s) <= PIECE,
            "lease keys went in one piece"
        );
        assert!(
            told.len() <= 2 * PIECE,
            "{} were told of in one piece",
            told.len()
        );
        each(s, &told);
        turns += 1;
        assert!(turns < MANY, "it goes on for ever");
    }
    s.core.check();
}

#[test]
fn a_lock_of_very_many_readers_that_is_deleted_ends_in_pieces() {
    let mut s = readers(false);
    let k = key(0, "k");
    s.ks.keys.remove(&k);
    s.changed(&k, Cause::Removed);
    end_in_pieces(&mut s, |_, _| {});
    assert_eq!(lease_keys(&s), 0);
    assert_eq!(
        s.core
            .stats(s.now)
            .iter()
            .find(|(name, _)| *name == c"held")
            .unwrap()
            .1,
        0
    );
}

#[test]
fn a_lock_of_very_many_readers_that_is_forced_ends_in_pieces() {
    let mut s = readers(true);
    assert_eq!(s.force(), Ok(true));
    assert!(
        s.told.len() <= PIECE,
        "{} were told of at once",
        s.told.len()
    );
    s.told.clear();
    // It is free at once; who reads again meanwhile keeps its lease key.
    let last = owner(MANY - 1);
    s.get(by(&last).read().lease(LONG).from(2).tag("again"));
    let mut lost = 0;
    let reason =
        |notice: &Notice| matches!(notice, Notice::Lost(loss) if loss.reason == Reason::Forced);
    lost += s.told.iter().filter(|notice| reason(notice)).count();
    s.told.clear();
    end_in_pieces(&mut s, |_, told| {
        lost += told.iter().filter(|one| reason(one)).count()
    });
    assert_eq!(lost, MANY, "each is told once");
    assert_eq!(lease_keys(&s), 1);
    let lease = lease_key(&key(0, "k"), last.as_bytes(), 1);
    assert!(s.ks.keys.contains_key(&lease));
}

#[test]
fn who_reads_again_by_anothers_hand_keeps_its_lease_key() {
    let mut s = readers(false);
    let k = key(0, "k");
    assert_eq!(s.force(), Ok(true));
    let fields = Fields::from([
        (b"mode".to_vec(), b"read".to_vec()),
        (owner(7).into_bytes(), b"1".to_vec()),
    ]);
    let end = Some(WallMs(s.now.wall_ms().0 + LONG));
    s.ks.keys.insert(k.clone(), (Value::Hash(fields), end));
    end_in_pieces(&mut s, |_, _| {});
    assert_eq!(lease_keys(&s), 1);
}

#[test]
fn a_lock_of_very_many_readers_that_is_renamed_ends_in_pieces() {
    let mut s = readers(true);
    let (k, other) = (key(0, "k"), key(0, "other"));
    let value = s.ks.keys.remove(&k).unwrap();
    s.ks.keys.insert(other.clone(), value);
    s.renamed(&k, &other);
    let mut lost = 0;
    end_in_pieces(&mut s, |_, told| {
        let is_lost = |one: &&Notice| matches!(one, Notice::Lost(_));
        lost += told.iter().filter(is_lost).count();
    });
    assert_eq!(lost, MANY, "each is told once");
}

/// The hash of the lock `k` ends now, by another's hand.
fn run_out(s: &mut Shell) {
    let end = Some(s.now.wall_ms());
    s.ks.keys.get_mut(&key(0, "k")).unwrap().1 = end;
    s.changed(&key(0, "k"), Cause::Unknown);
    s.tick();
    s.pass(2);
}

#[test]
fn a_lock_of_very_many_who_are_told_of_its_end_runs_out_in_pieces() {
    for mut s in [readers(true), with_permits(true)] {
        // Elsewhere a watchdog is late.
        s.get(by("watched").on("other").from(2).lease(3).watched());
        run_out(&mut s);
        let (mut lost, mut turns) = (0, 0);
        while lost < MANY && turns < MANY {
            s.tick();
            let told = std::mem::take(&mut s.told);
            assert!(told.len() <= 2 * PIECE, "{} at once", told.len());
            lost += losses(&told, Reason::Expired);
            turns += 1;
        }
        assert_eq!(lost, MANY, "each is told once");
        s.core.check();
    }
}

#[test]
fn a_lock_of_very_many_who_have_permits_is_renamed_in_pieces() {
    for told in [true, false] {
        let mut s = with_permits(told);
        let (k, other) = (key(0, "k"), key(1, "other"));
        let value = s.ks.keys.remove(&k).unwrap();
        s.ks.keys.insert(other.clone(), value);
        s.renamed(&k, &other);
        let mut lost = 0;
        end_in_pieces(&mut s, |_, told| lost += losses(told, Reason::Moved));
        assert_eq!(lost, if told { MANY } else { 0 }, "each is told once");
        // They are held still, under the other name, and come back as they end.
        while s.core.any_unread() {
            s.tick();
        }
        let shared = s.core.locks.shared(&other).unwrap();
        assert_eq!(shared.permits(), MANY as i64);
        s.pass(LONG + 1);
        (0..MANY).for_each(|_| s.tick());
        assert!(s.ks.keys.is_empty() && s.core.is_idle());
    }
}

#[test]
fn a_server_that_turns_replica_tells_very_many_readers_in_pieces_and_writes_nothing() {
    let mut s = readers(true);
    crate::lock::demoted(&mut s.core);
    s.gate = crate::lock::Gate::Shut;
    let mut lost = 0;
    end_in_pieces(&mut s, |_, told| {
        let is_lost = |one: &&Notice| matches!(one, Notice::Lost(_));
        lost += told.iter().filter(is_lost).count();
    });
    assert_eq!(lost, MANY, "each is told once");
    assert_eq!(lease_keys(&s), MANY, "a replica deletes nothing");
}

fn losses(told: &[Notice], reason: Reason) -> usize {
    let is_loss = |notice: &&Notice| matches!(notice, Notice::Lost(loss) if loss.reason == reason);
    told.iter().filter(is_loss).count()
}

#[test]
fn while_very_many_readers_end_a_connection_closes_databases_are_exchanged_and_renewals_are_due() {
    let mut s = Shell::new();
    for number in 0..MANY {
        let (owner, client) = (owner(number), 1 + number as u64 % 2);
        s.get(
            by(&owner)
                .read()
                .lease(LONG)
                .from(client)
                .tag(&owner)
                .watched(),
        );
    }
    s.piece_us = 10_000;
    s.told.clear();
    assert_eq!(s.force(), Ok(true));
    s.core.check();
    // What was in one database is in the other.
    let keys = std::mem::take(&mut s.ks.keys);
    let other = |at: Key| Key { db: 1, ..at };
    s.ks.keys = keys
        .into_iter()
        .map(|(at, value)| (other(at), value))
        .collect();
    s.swapped(0, 1);
    s.read_notes();
    s.core.check();
    s.notes.push(Note::Closed(ClientId::new(2).unwrap()));
    s.read_notes();
    s.core.check();
    s.pass(LONG / 2);
    let mut lost = losses(&s.told, Reason::Forced);
    s.told.clear();
    end_in_pieces(&mut s, |s, told| {
        s.core.check();
        lost += losses(told, Reason::Forced);
    });
    assert!((MANY / 2..=MANY).contains(&lost), "{lost} were told of");
    assert_eq!(lease_keys(&s), 0);
    assert!(!s.core.is_watching());
}

#[test]
fn who_is_bound_again_before_its_end_is_told_is_told_of_both() {
    let mut s = readers(true);
    let (k, last) = (key(0, "k"), owner(MANY - 1));
    let found = s.ks.keys.get(&k).cloned().unwrap();
    assert_eq!(s.force(), Ok(true));
    // Another's hand has made it anew, and it is found.
    s.ks.keys.insert(k.clone(), found);
    let client = ClientId::new(7).unwrap();
    let notify = s.core.address(client, b"channel", b"again", false);
    let renewal = Renewal {
        db: 0,
        owner: last.as_bytes(),
        mode: Mode::Read,
        lease: LONG,
        watch: None,
        notify: Some(&notify),
        fence: None,
    };
    s.told.clear();
    assert_eq!(s.step(|d| crate::lock::renew(d, b"k", &renewal)), Ok(None));
    assert_eq!(losses(&s.told, Reason::Forced), 1);
    s.core.check();
    let mut lost = 1;
    s.told.clear();
    end_in_pieces(&mut s, |_, told| lost += losses(told, Reason::Forced));
    assert_eq!(lost, MANY, "each is told once");
    s.ks.keys.remove(&k);
    s.changed(&k, Cause::Removed);
    s.told.clear();
    let mut lost = 0;
    end_in_pieces(&mut s, |_, told| {
        let its = |one: &&Notice| matches!(one, Notice::Lost(loss) if loss.address.as_ref() == Some(&notify));
        lost += told.iter().filter(its).count();
    });
    assert_eq!(lost, 1);
}

#[test]
fn very_many_readers_are_not_read_again_at_each_thing_that_is_heard_of_their_lock() {
    let mut s = readers(true);
    let k = key(0, "k");
    // Also every 100 ms, where nobody tells that a key is overwritten.
    s.misses_overwrites = true;
    s.changed(&k, Cause::Unknown);
    s.pass_and_tick(100);
    s.pass_and_tick(100);
    assert_eq!(s.ks.read, 0);
    // Another's hand adds one: that shows.
    if let Some((Value::Hash(fields), _)) = s.ks.keys.get_mut(&k) {
        fields.insert(b"another".to_vec(), b"1".to_vec());
    }
    let end = Some(WallMs(s.now.wall_ms().0 + LONG));
    let lease = (Value::Text, end);
    s.ks.keys.insert(lease_key(&k, b"another", 1), lease);
    s.changed(&k, Cause::Unknown);
    s.tick();
    assert!(s.core.locks.hold(&k, b"another").is_some());
    // So does an overwriting, and the new end of the hash.
    s.ks.keys.insert(k.clone(), (Value::Text, None));
    s.told.clear();
    s.pass_and_tick(100);
    let mut lost = losses(&s.told, Reason::Overwritten);
    end_in_pieces(&mut s, |_, told| lost += losses(told, Reason::Overwritten));
    assert_eq!(lost, MANY);
}

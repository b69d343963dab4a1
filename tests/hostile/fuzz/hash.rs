//! Keys that anybody may have written: hashes, lease keys and their names. What is no lock is
//! taken for none, by a second reading of the layout that shares nothing with the first; what
//! is written is read back the same.

use std::collections::BTreeMap;

use crate::hostile::{run, Input};
use crate::lock::kind::{self, Hash};
use crate::lock::memory::Fields;
use crate::lock::{leases_looked_at, Hint, Holder, Kind, Lease, Look, Mode, Pool, WallMs};
use crate::redisson;

const NAMES: [&[u8]; 12] = [
    b"o1",
    b"o2",
    b"mode",
    b"o1:write",
    b"mode:write",
    b":write",
    b"",
    b"o1:write:write",
    b"k",
    b"{k}",
    b"a:rwlock_timeout:1",
    b"1",
];

const VALUES: [&[u8]; 22] = [
    b"1",
    b"2",
    b"0",
    b"-1",
    b"+1",
    b"01",
    b"read",
    b"write",
    b"READ",
    b"permits 3 3 1",
    b"permits 3 2 9",
    b"permits 0 1 1",
    b"permits 1000001 1 1",
    b"permits 3 3",
    b"permits 3 3 1 ",
    b"1@5",
    b"2@1900000000000",
    b"0@5",
    b"1@",
    b"1@5@5",
    b"9223372036854775807",
    b"9223372036854775808",
];

/// What names of lease keys are made of.
const PARTS: [&[u8]; 10] = [
    b":rwlock_timeout:",
    b":rwlock_timeout:1",
    b"{",
    b"}",
    b":",
    b"k",
    b"{k}",
    b"o1",
    b"1",
    b"07",
];

/// A number as the server writes it, by printing it.
fn number(value: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(value).ok()?;
    let number: i64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

fn positive(value: &[u8]) -> bool {
    number(value).is_some_and(|number| number > 0)
}

fn pool(value: &[u8]) -> Option<Pool> {
    let text = std::str::from_utf8(value).ok()?;
    let parts: Vec<&str> = text.split(' ').collect();
    let ["permits", asked, limit, out] = parts[..] else {
        return None;
    };
    let of = |text: &str| number(text.as_bytes()).filter(|number| *number >= 0);
    let (asked, limit, out) = (of(asked)?, of(limit)?, of(out)?);
    let fits = |limit| (1..=1_000_000).contains(&limit);
    (fits(asked) && fits(limit)).then_some(Pool { asked, limit, out })
}

/// What a hash is, read anew.
fn kind(fields: &Fields) -> Option<Kind> {
    let mode = fields.get(&b"mode"[..]);
    let shared = mode.and_then(|mode| match mode.as_slice() {
        b"read" => Some(Kind::ReadWrite(Mode::Read)),
        b"write" => Some(Kind::ReadWrite(Mode::Write)),
        mode => pool(mode).map(Kind::Permits),
    });
    match (fields.len(), shared) {
        (_, Some(shared)) => Some(shared),
        (1, None) => fields
            .values()
            .all(|value| positive(value))
            .then_some(Kind::Plain),
        _ => None,
    }
}

fn hashes(data: &[u8]) {
    let mut input = Input(data);
    let owner = input.word(&NAMES);
    let ends = match input.below(3) {
        0 => None,
        _ => Some(WallMs(input.number())),
    };
    let mut fields: Fields = BTreeMap::new();
    while !input.is_over() && fields.len() < 12 {
        let name = input.word(&NAMES).to_vec();
        fields.insert(name, input.word(&VALUES).to_vec());
    }
    let look = kind::look(&fields, owner, ends);
    let known = kind(&fields);
    // Who is known to hold it makes no difference to what is found.
    for holder in fields.keys().map(Vec::as_slice).chain([NAMES[0]]) {
        let beside = {
            let known = Hint {
                holder: Some(holder),
                end: None,
            };
            kind::look_with_hint(&fields, owner, known, || ends)
        };
        let is_its = known == Some(Kind::Plain) && fields.contains_key(holder);
        assert_eq!(
            beside.as_known,
            is_its && holder != owner && holder != b"mode"
        );
        let found = Look {
            as_known: false,
            ..beside
        };
        assert_eq!(found, look, "{fields:?} {owner:?} {holder:?}");
    }
    match look.kind {
        Kind::Free => assert!(fields.is_empty(), "{fields:?}"),
        Kind::Foreign(_) => is_unlike_a_lock(&fields, known, owner, &look),
        taken => {
            assert_eq!(Some(taken), known, "{fields:?}");
            assert_eq!(look.expires, ends);
            counts(&fields, owner, &look);
        }
    }
    for holder in kind::holders(&fields, ends, usize::MAX) {
        is_written(&fields, known, &holder);
    }
}

/// It is none, or the owner's own field says nothing of holds.
fn is_unlike_a_lock(fields: &Fields, known: Option<Kind>, owner: &[u8], look: &Look) {
    assert_eq!((look.holds, look.writes), (0, 0), "{fields:?}");
    let own = [fields.get(owner), fields.get(&kind::writer_field(owner))];
    let is_odd = |value: &&Vec<u8>| !positive(value);
    let odd = own.into_iter().flatten().any(|value| is_odd(&value));
    let permits = matches!(known, Some(Kind::Permits(_)));
    assert!(known.is_none() || odd || permits, "{fields:?} {owner:?}");
}

/// What the owner is said to hold stands there.
fn counts(fields: &Fields, owner: &[u8], look: &Look) {
    let of = |name: &[u8]| {
        fields
            .get(name)
            .and_then(|value| number(value))
            .unwrap_or(0)
    };
    match look.kind {
        Kind::Permits(_) => {
            if let (true, Lease::Until(ends)) = (look.holds > 0, look.lease) {
                let text = kind::permit_text(look.holds, ends).into_bytes();
                assert_eq!(fields.get(owner), Some(&text), "{fields:?}");
            }
        }
        _ if owner == b"mode" && fields.len() > 1 => assert_eq!(look.holds, 0),
        _ if owner.is_empty() && fields.len() > 1 => assert_eq!(look.holds, 0),
        Kind::Plain => assert_eq!(look.holds, of(owner), "{fields:?}"),
        _ if fields.len() == 1 => assert_eq!(look.fields, 0),
        _ => {
            assert_eq!(look.holds, of(owner), "{fields:?}");
            assert_eq!(look.writes, of(&kind::writer_field(owner)), "{fields:?}");
        }
    }
}

/// A holder stands in the hash as rlock would have written it.
fn is_written(fields: &Fields, known: Option<Kind>, holder: &Holder) {
    let (field, value) = match (holder.mode, holder.lease) {
        (Mode::Permits, Lease::Until(ends)) => {
            (holder.owner.to_vec(), kind::permit_text(holder.holds, ends))
        }
        (Mode::Write, _) => (kind::writer_field(&holder.owner), holder.holds.to_string()),
        _ => (holder.owner.to_vec(), holder.holds.to_string()),
    };
    assert_eq!(fields.get(&field), Some(&value.into_bytes()), "{fields:?}");
    assert!(known.is_some(), "{holder:?} of no lock: {fields:?}");
    if let Some(Kind::Permits(pool)) = known {
        assert_eq!(
            fields.field(b"mode", <[u8]>::to_vec),
            Some(kind::pool_text(pool).into_bytes())
        );
    }
}

/// The names of lease keys and counters.
fn names(data: &[u8]) {
    let mut input = Input(data);
    let index = input.number();
    let (lock, owner) = (input.word(&NAMES), input.bytes());
    let name = redisson::lease_key(lock, owner, index);
    if index >= 0 && !owner.is_empty() && owner.len() <= redisson::LONGEST_OWNER {
        let mut found = redisson::readers(&name);
        assert!(
            found.any(|reader| reader == (lock, owner)),
            "{lock:?} {owner:?}"
        );
    }
    // The other way round: whoever a name could be of would have it named so.
    let mut whole: Vec<u8> = Vec::new();
    while !input.is_over() && whole.len() < 600 {
        whole.extend(input.word(&PARTS));
    }
    let whole = &whole[..];
    let digits = whole
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let stem = &whole[..whole.len() - digits];
    for (lock, owner) in redisson::readers(whole) {
        assert!(redisson::is_lease_key(whole), "{whole:?}");
        let name = redisson::lease_key(lock, owner, 0);
        assert_eq!(&name[..name.len() - 1], stem, "{whole:?}");
        assert!(!owner.is_empty() && owner.len() <= redisson::LONGEST_OWNER);
    }
    for probe in redisson::probes(whole).into_iter().flatten() {
        assert_eq!(redisson::slot_part(&probe), redisson::slot_part(whole));
    }
    let looked: Vec<i64> = leases_looked_at(index).collect();
    assert!(
        looked.len() <= 64 && looked.windows(2).all(|pair| pair[0] < pair[1]),
        "{index}"
    );
    assert!(looked.iter().all(|at| (1..=index).contains(at)), "{index}");
}

#[test]
fn fuzz_hashes() {
    run("hashes", hashes);
}

#[test]
fn fuzz_names() {
    run("names", names);
}

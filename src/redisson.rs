//! The names that Redisson gives to what belongs to a lock.

use std::ops::Deref;

/// Names of no more bytes than this need no memory of their own: three are put
/// together for each lock that is taken and released.
const SHORT: usize = 128;

/// A name that was put together.
pub struct Name {
    short: [u8; SHORT],
    len: usize,
    /// In place of the above, if it is longer.
    long: Vec<u8>,
}

impl Name {
    fn of(parts: &[&[u8]]) -> Self {
        let mut name = Self {
            short: [0; SHORT],
            len: 0,
            long: Vec::new(),
        };
        for part in parts {
            let end = name.len.saturating_add(part.len());
            let Some(room) = name.short.get_mut(name.len..end) else {
                name.long = parts.concat();
                return name;
            };
            room.copy_from_slice(part);
            name.len = end;
        }
        name
    }
}

impl Deref for Name {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        if self.long.is_empty() {
            self.short.get(..self.len).unwrap_or_default()
        } else {
            &self.long
        }
    }
}

/// The channel on which those who wait for a lock are woken, by the message `1`,
/// which wakes all of them and is due where readers may enter, or `0`, which wakes
/// one waiter of each client. A read/write lock has one of its own.
pub fn channel(name: &[u8], shared: bool) -> Name {
    prefixed(if shared { READ_WRITE } else { PLAIN }, name)
}

const PLAIN: &[u8] = b"redisson_lock__channel:";
const READ_WRITE: &[u8] = b"redisson_rwlock:";

/// Whether it is the channel of a read/write lock; `None`: of no lock.
pub fn is_channel(channel: &[u8]) -> Option<bool> {
    let is_plain = channel.starts_with(PLAIN);
    let shared = !is_plain && channel.starts_with(READ_WRITE);
    (is_plain || shared).then_some(shared)
}

/// The channel on which the first of those who wait for a RFairLock is woken.
pub fn fair_channel(name: &[u8], owner: &[u8]) -> Name {
    Name::of(&[&channel(name, false), b":", owner])
}

/// The list of those who wait for a RFairLock.
pub fn fair_queue(name: &[u8]) -> Name {
    prefixed(b"redisson_lock_queue:", name)
}

/// The sorted set of the moments at which they give up.
pub fn fair_timeouts(name: &[u8]) -> Name {
    prefixed(b"redisson_lock_timeout:", name)
}

const COUNTER: &[u8] = b"redisson_lock_token:";

/// The counter that RFencedLock draws the tokens of a lock from.
pub fn counter(name: &[u8]) -> Name {
    prefixed(COUNTER, name)
}

/// Whether this is the counter of this lock.
pub fn is_counter_of(counter: &[u8], name: &[u8]) -> bool {
    let (open, close) = braces(name);
    let rest = counter.strip_prefix(COUNTER);
    let rest = rest.and_then(|rest| rest.strip_prefix(open));
    rest.and_then(|rest| rest.strip_suffix(close)) == Some(name)
}

/// Whether in a cluster the counter lies in the slot of the lock.
pub fn counter_fits(name: &[u8]) -> bool {
    slot_part(&counter(name)) == slot_part(name)
}

/// Two keys that nobody has, in the slot of the lock. `None`: none can be named there.
pub fn probes(name: &[u8]) -> Option<[Name; 2]> {
    let prefixes: [&[u8]; 2] = [b"rlock_probe:", b"rlock_probe_2:"];
    let probes = prefixes.map(|prefix| prefixed(prefix, name));
    (slot_part(&probes[0]) == slot_part(name)).then_some(probes)
}

/// The lease key of an owner's read hold number `index`:
/// `{name}:owner:rwlock_timeout:index`.
pub fn lease_key(name: &[u8], owner: &[u8], index: i64) -> Name {
    let (open, close) = braces(name);
    let index = index.to_string();
    Name::of(&[open, name, close, b":", owner, LEASE, index.as_bytes()])
}

/// Whether in a cluster a reader's lease keys lie in the slot of the lock.
pub fn lease_key_fits(name: &[u8], owner: &[u8]) -> bool {
    slot_part(&lease_key(name, owner, 1)) == slot_part(name)
}

/// The part of a key's name that its slot is computed from: what stands between the
/// first `{` and the next `}`, if that is anything, else all of it.
pub fn slot_part(name: &[u8]) -> &[u8] {
    let mut parts = name.splitn(2, |byte| *byte == b'{');
    let behind = parts.nth(1).unwrap_or_default();
    let mut parts = behind.splitn(2, |byte| *byte == b'}');
    match (parts.next(), parts.next()) {
        (Some(tag), Some(_)) if !tag.is_empty() => tag,
        _ => name,
    }
}

/// What stands between owner and number in a lease key's name.
const LEASE: &[u8] = b":rwlock_timeout:";

/// The longest owner id, bytes: one of more is none of ours.
pub const LONGEST_OWNER: usize = 512;

/// The locks, with their readers, that a lease key of this name may belong to. More
/// than one, for both names and owners may hold what stands between them; none, if
/// it is no lease key's name.
pub fn readers(lease_key: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let rest = without_index(lease_key).unwrap_or_default();
    let from = rest.len().saturating_sub(LONGEST_OWNER.saturating_add(1));
    let colons = rest.iter().enumerate().skip(from);
    // Looked for once, not in each of up to 512 names.
    let mut braces = rest.iter().enumerate().filter(|(_, byte)| **byte == b'{');
    let mut next_brace = || braces.next().map_or(rest.len(), |(at, _)| at);
    let (first, second) = (next_brace(), next_brace());
    colons
        .filter(|(_, byte)| **byte == b':')
        .filter_map(|(at, _)| Some((rest.get(..at)?, rest.get(at.saturating_add(1)..)?)))
        .filter(|(_, owner)| !owner.is_empty())
        .flat_map(move |(lock, owner)| {
            // A name with a brace in it is used as it is, any other is put in braces.
            let as_it_is = (first < lock.len()).then_some(lock);
            let in_braces = lock
                .strip_prefix(b"{")
                .and_then(|inner| inner.strip_suffix(b"}"))
                .filter(|_| second >= lock.len());
            [as_it_is, in_braces]
                .into_iter()
                .flatten()
                .map(move |lock| (lock, owner))
        })
}

/// Whether it may be the name of a lease key.
pub fn is_lease_key(name: &[u8]) -> bool {
    name.len() > LEASE.len() && without_index(name).is_some()
}

/// The name up to `:rwlock_timeout:` and digits.
fn without_index(name: &[u8]) -> Option<&[u8]> {
    let digits = name.iter().rev().take_while(|byte| byte.is_ascii_digit());
    let digits = digits.count();
    if digits == 0 {
        return None;
    }
    name.get(..name.len().saturating_sub(digits))?
        .strip_suffix(LEASE)
}

/// `prefix{name}`, or `prefixname` with a hash tag in the name.
fn prefixed(prefix: &[u8], name: &[u8]) -> Name {
    let (open, close) = braces(name);
    Name::of(&[prefix, open, name, close])
}

/// What stands around a lock's name in the names of its other keys: braces, but none where it has
/// a hash tag already, so that in a cluster both lie in one slot.
fn braces(name: &[u8]) -> (&'static [u8], &'static [u8]) {
    if name.contains(&b'{') {
        (b"", b"")
    } else {
        (b"{", b"}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_put_in_braces_unless_it_has_some() {
        assert_eq!(*channel(b"jobs", false), *b"redisson_lock__channel:{jobs}");
        assert_eq!(
            *channel(b"{acct}:7", false),
            *b"redisson_lock__channel:{acct}:7"
        );
        assert_eq!(*channel(b"doc", true), *b"redisson_rwlock:{doc}");
    }

    #[test]
    fn a_name_of_any_length_is_put_together_the_same_way() {
        for len in 0..3 * SHORT {
            let name = vec![b'n'; len];
            let whole = [&b"redisson_lock_token:{"[..], &name, b"}"].concat();
            assert_eq!(*counter(&name), *whole, "{len}");
        }
    }

    #[test]
    fn a_lease_key_lies_beside_its_lock() {
        assert_eq!(
            *lease_key(b"doc", b"u:1", 12),
            *b"{doc}:u:1:rwlock_timeout:12"
        );
        assert_eq!(
            *lease_key(b"{acct}:7", b"u:1", 1),
            *b"{acct}:7:u:1:rwlock_timeout:1"
        );
    }

    #[test]
    fn a_lease_key_shows_whose_it_may_be() {
        let found = |name: &[u8]| {
            let owned = |(lock, owner): (&[u8], &[u8])| (lock.to_vec(), owner.to_vec());
            readers(name).map(owned).collect::<Vec<_>>()
        };
        for (lock, owner) in [
            (&b"doc"[..], &b"u:1"[..]),
            (b"a}:b", b"c"),
            (b"a}:b", b"}:c"),
            (b"{acct}:7", b"u:1"),
            (b"x{", b"o"),
            (b"", b"o"),
            (b"{}", b"o"),
            (b"n", b":rwlock_timeout:1"),
            (b"a:rwlock_timeout:", b"o"),
        ] {
            for index in [1, 10, 1024] {
                let name = lease_key(lock, owner, index);
                assert!(is_lease_key(&name), "{lock:?} {owner:?}");
                let all = found(&name);
                let own = (lock.to_vec(), owner.to_vec());
                assert!(all.contains(&own), "{lock:?} {owner:?} {all:?}");
            }
        }
        for no in [
            &b""[..],
            b"doc",
            b"7",
            b":rwlock_timeout:1",
            b"{doc}:u:rwlock_timeout:",
            b"{doc}:u:rwlock_timeout:x1",
            b"{doc}:u:rwlock_timeout1",
            b"doc:u:rwlock_timeout:1",
            b"{doc}u:rwlock_timeout:1",
            b"{doc}::rwlock_timeout:1",
        ] {
            assert_eq!(found(no), [], "{no:?}");
        }
    }

    #[test]
    fn most_lease_keys_lie_in_the_slot_of_their_lock() {
        for name in [&b"doc"[..], b"{acct}:7", b"a{b}c", b"x}"] {
            let fits = !name.contains(&b'}') || name.contains(&b'{');
            assert_eq!(lease_key_fits(name, b"u:1"), fits, "{name:?}");
        }
        for name in [&b"a{b"[..], b"{}a", b"a{}{b}"] {
            assert!(!lease_key_fits(name, b"u:1"), "{name:?}");
        }
    }
}

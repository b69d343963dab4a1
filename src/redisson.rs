//! The names that Redisson gives to what belongs to a lock.

/// The channel on which those who wait for a lock are woken, and whether the
/// message is `1`, which wakes all of them and is due where readers may enter, or
/// `0`, which wakes one waiter of each client.
pub fn wakeup(name: &[u8], shared: bool) -> (Vec<u8>, bool) {
    let prefix: &[u8] = if shared {
        b"redisson_rwlock"
    } else {
        b"redisson_lock__channel"
    };
    (prefixed(prefix, name), shared)
}

/// `prefix:{name}`; a name that has a hash tag already is used as it is, so that
/// in a cluster both lie in one slot.
fn prefixed(prefix: &[u8], name: &[u8]) -> Vec<u8> {
    let parts: &[&[u8]] = if name.contains(&b'{') {
        &[prefix, b":", name]
    } else {
        &[prefix, b":{", name, b"}"]
    };
    parts.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_put_in_braces() {
        let (channel, wakes_all) = wakeup(b"jobs", false);
        assert_eq!(channel, b"redisson_lock__channel:{jobs}");
        assert!(!wakes_all);
    }

    #[test]
    fn a_name_with_a_hash_tag_is_used_as_it_is() {
        let (channel, _) = wakeup(b"{acct}:7", false);
        assert_eq!(channel, b"redisson_lock__channel:{acct}:7");
    }

    #[test]
    fn a_read_write_lock_wakes_all() {
        let (channel, wakes_all) = wakeup(b"doc", true);
        assert_eq!(channel, b"redisson_rwlock:{doc}");
        assert!(wakes_all);
    }
}

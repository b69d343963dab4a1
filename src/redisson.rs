//! The names that Redisson gives to what belongs to a lock.

/// The channel on which those who wait for a lock are woken, and the message: `0`
/// wakes one waiter of each client, `1` all of them, which is due where readers
/// may enter.
pub fn wakeup(name: &[u8], shared: bool) -> (Vec<u8>, &'static [u8]) {
    if shared {
        (prefixed(b"redisson_rwlock", name), b"1")
    } else {
        (prefixed(b"redisson_lock__channel", name), b"0")
    }
}

/// `prefix:{name}`; a name that has a hash tag already is used as it is, so that
/// in a cluster both lie in one slot.
fn prefixed(prefix: &[u8], name: &[u8]) -> Vec<u8> {
    if name.contains(&b'{') {
        [prefix, b":", name].concat()
    } else {
        [prefix, b":{", name, b"}"].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_put_in_braces() {
        let (channel, message) = wakeup(b"jobs", false);
        assert_eq!(channel, b"redisson_lock__channel:{jobs}");
        assert_eq!(message, b"0");
    }

    #[test]
    fn a_name_with_a_hash_tag_is_used_as_it_is() {
        let (channel, _) = wakeup(b"{acct}:7", false);
        assert_eq!(channel, b"redisson_lock__channel:{acct}:7");
    }

    #[test]
    fn a_read_write_lock_wakes_all() {
        let (channel, message) = wakeup(b"doc", true);
        assert_eq!(channel, b"redisson_rwlock:{doc}");
        assert_eq!(message, b"1");
    }
}

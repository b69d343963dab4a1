//! The settings, `rlock.*` in redis.conf and CONFIG SET.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::error;

/// `rlock.redisson-compat yes|no` (default yes): publish the message that wakes
/// Redisson's waiters when a lock is left free.
pub static REDISSON_COMPAT: AtomicBool = AtomicBool::new(true);

pub fn redisson_compat() -> bool {
    REDISSON_COMPAT.load(Ordering::Relaxed)
}

/// Checks what stands behind `loadmodule …`: settings by name, without the prefix,
/// each with its value. What was wrong, if anything.
pub fn check(args: &[&[u8]]) -> Result<(), String> {
    for pair in args.chunks(2) {
        let shown = |word: Option<&&[u8]>| {
            word.map_or_else(|| "nothing".to_owned(), |word| error::shown(word))
        };
        match pair {
            [name, b"yes" | b"no"] if *name == b"redisson-compat" => {}
            [name, ..] if *name == b"redisson-compat" => {
                return Err(format!(
                    "redisson-compat is yes or no, got {}",
                    shown(pair.get(1))
                ));
            }
            _ => {
                return Err(format!(
                    "there is no setting {}; there is redisson-compat yes|no",
                    shown(pair.first())
                ));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_behind_loadmodule_is_checked() {
        assert_eq!(check(&[]), Ok(()));
        assert_eq!(check(&[b"redisson-compat", b"no"]), Ok(()));
        for bad in [
            &[&b"foo"[..]][..],
            &[b"redisson-compat"],
            &[b"redisson-compat", b"maybe"],
            &[b"redisson-compat", b"no", b"x"],
        ] {
            assert!(check(bad).is_err(), "{bad:?}");
        }
    }
}

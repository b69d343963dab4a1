//! What stands behind `loadmodule` and the module's path.

use super::{all, Allowed};
use crate::error;

/// Checks what stands behind `loadmodule …`: settings by name, without the prefix,
/// each with its value. What was wrong, if anything.
pub fn check(args: &[&[u8]]) -> Result<(), String> {
    for (at, pair) in args.chunks(2).enumerate() {
        let shown = |word: Option<&&[u8]>| {
            word.map_or_else(|| "nothing".to_owned(), |word| error::shown(word))
        };
        let (given, value) = (pair.first(), pair.get(1));
        let named = |(name, _): &(&str, Allowed)| given == Some(&name.as_bytes());
        let Some((name, allowed)) = all().find(named) else {
            let known = all().map(|(name, allowed)| format!("{name} ({allowed})"));
            let known = known.collect::<Vec<_>>();
            let (given, known) = (shown(given), known.join(", "));
            return Err(format!(
                "there is no setting {given}; behind the module's path there are {known}"
            ));
        };
        if args
            .chunks(2)
            .take(at)
            .any(|before| before.first() == given)
        {
            return Err(format!("{name} is given twice"));
        }
        if !value.is_some_and(|value| allowed.takes(value)) {
            return Err(format!("{name} is {allowed}, got {}", shown(value)));
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
        for good in [
            &[&b"redisson-compat"[..], b"no"][..],
            &[b"watchdog-lost", b"keep", b"watchdog-max", b"0"],
            &[b"watchdog-max", b"1000", b"keep-place", b"0"],
            &[b"watchdog-max", b"9007199254740991"],
            &[b"deadlock-detection", b"no"],
            &[b"fencing", b"counter", b"redisson-yield", b"0"],
            &[b"grant-after", b"30000"],
            &[b"recovery-scan", b"no", b"recovery-scan-max", b"1000000000"],
            &[b"max-waiters", b"1000000000", b"max-waiters-per-key", b"0"],
        ] {
            assert_eq!(check(good), Ok(()), "{good:?}");
        }
        for bad in [
            &[&b"foo"[..]][..],
            &[b"redisson-compat"],
            &[b"redisson-compat", b"maybe"],
            &[b"redisson-compat", b"no", b"x"],
            &[
                b"fencing",
                b"counter",
                b"keep-place",
                b"0",
                b"fencing",
                b"clock",
            ],
            &[b"rlock.fencing", b"counter"],
            &[b"watchdog-lost", b"yes"],
            &[b"watchdog-max", b"-1"],
            &[b"watchdog-max", b"9007199254740992"],
            &[b"watchdog-max"],
            &[b"fencing", b"yes"],
            &[b"redisson-yield", b"10001"],
            &[b"keep-place", b"600001"],
            &[b"watchdog-max", b"5"],
            &[b"watchdog-max", b"999"],
            &[b"watchdog-max", b"abc"],
            &[b"watchdog-max", b""],
            &[b"watchdog-max", b"+-1"],
            &[b"keep-place", b"15"],
            &[b"grant-after", b"30"],
            &[b"grant-after", b"-1"],
            &[b"recovery-scan", b"0"],
            &[b"recovery-scan-max", b"-1"],
            &[b"max-waiters-per-client", b"1000000001"],
        ] {
            assert!(check(bad).is_err(), "{bad:?}");
        }
    }
}

//! Glob patterns, as KEYS and SCAN take them: `*`, `?`, `[a-c]`, `[^x]` and a backslash
//! before a character that is meant as it is.
//!
//! The module API has no function for it. A `*` takes as little as it can, and when the
//! rest does not fit only the last one is lengthened, which is enough: so the time is at
//! most the length of the pattern times that of the name, whatever is in them.

/// Whether all of the name fits the pattern.
pub fn fits(pattern: &[u8], name: &[u8]) -> bool {
    let (mut pattern, mut name) = (pattern, name);
    // The pattern behind the last `*`, and what was left of the name there.
    let mut star: Option<(&[u8], &[u8])> = None;
    loop {
        if let Some(rest) = pattern.strip_prefix(b"*") {
            if rest.is_empty() {
                return true;
            }
            star = Some((rest, name));
            pattern = rest;
            continue;
        }
        let next = name.split_first();
        if let Some((byte, left)) = next {
            if let Some(rest) = one(pattern, *byte) {
                (pattern, name) = (rest, left);
                continue;
            }
        } else if pattern.is_empty() {
            return true;
        }
        // The `*` takes one more.
        match star.and_then(|(rest, from)| Some((rest, from.get(1..)?))) {
            Some((rest, from)) => {
                star = Some((rest, from));
                (pattern, name) = (rest, from);
            }
            None => return false,
        }
    }
}

/// The pattern behind its first element, if this byte fits that one.
fn one(pattern: &[u8], byte: u8) -> Option<&[u8]> {
    match pattern {
        [b'?', rest @ ..] => Some(rest),
        [b'[', rest @ ..] => {
            let (is_in, rest) = class(rest, byte);
            is_in.then_some(rest)
        }
        [b'\\', same, rest @ ..] | [same, rest @ ..] => (*same == byte).then_some(rest),
        [] => None,
    }
}

/// Whether a byte is in the class that opens the pattern, without its `[`, and what comes
/// behind. One that is not closed goes to the end.
fn class(pattern: &[u8], byte: u8) -> (bool, &[u8]) {
    let inverted = pattern.strip_prefix(b"^");
    let mut rest = inverted.unwrap_or(pattern);
    let mut found = false;
    loop {
        rest = match rest {
            [] => break,
            [b']', behind @ ..] => {
                rest = behind;
                break;
            }
            [b'\\', same, behind @ ..] => {
                found |= *same == byte;
                behind
            }
            [from, b'-', to, behind @ ..] => {
                found |= (*from.min(to)..=*from.max(to)).contains(&byte);
                behind
            }
            [same, behind @ ..] => {
                found |= *same == byte;
                behind
            }
        };
    }
    (found != inverted.is_some(), rest)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn all_fit(pattern: &str, fitting: &[&str], others: &[&str]) {
        for name in fitting {
            assert!(
                fits(pattern.as_bytes(), name.as_bytes()),
                "{pattern} {name}"
            );
        }
        for name in others {
            assert!(
                !fits(pattern.as_bytes(), name.as_bytes()),
                "{pattern} {name}"
            );
        }
    }

    #[test]
    fn stars_take_any_bytes_and_none() {
        all_fit("*", &["", "a", "a*b"], &[]);
        all_fit("a*", &["a", "ab"], &["", "b", "ba"]);
        all_fit("*a", &["a", "ba", "aba"], &["", "ab"]);
        all_fit("a*b*c", &["abc", "a1b2c", "abbcc", "abcbc"], &["acb", "ab"]);
        all_fit("**a**", &["a", "bab"], &["b"]);
        all_fit("*:[0-9]:*", &["x:1:y", ":a::1:"], &["x:12:y"]);
        assert!(fits(b"\xff*", b"\xff\x00\n"));
    }

    #[test]
    fn a_question_mark_is_one_byte() {
        all_fit("h?llo", &["hello", "h?llo"], &["hllo", "heello"]);
        all_fit("?", &["a"], &["", "ab"]);
    }

    #[test]
    fn classes_are_lists_ranges_and_what_is_not_in_them() {
        all_fit("h[ae]llo", &["hello", "hallo"], &["hillo", "hllo"]);
        all_fit("[a-c]", &["a", "b", "c"], &["d", "-", ""]);
        all_fit("[c-a]", &["a", "b", "c"], &["d", "-"]);
        all_fit("[^x]", &["a", "^"], &["x", ""]);
        all_fit("[^a-c]d", &["xd"], &["ad", "d"]);
        // As the server has it: to the bracket, which does not close it then.
        all_fit("[a-]", &["a", "]", "_"], &["b", "-"]);
        all_fit(r"[\]]", &["]"], &[r"\", "["]);
        all_fit(r"[\^a]", &["^", "a"], &["b"]);
        all_fit("[]a", &[], &["a", "]a"]);
        // Not closed.
        all_fit("[ab", &["a", "b"], &["ab", "["]);
        all_fit("[", &[], &["[", ""]);
        all_fit("[^", &["a"], &["", "ab"]);
    }

    #[test]
    fn a_backslash_takes_the_meaning_from_what_follows() {
        all_fit(r"\*", &["*"], &["a", r"\*"]);
        all_fit(r"\?\[", &["?["], &["a["]);
        all_fit(r"\\", &[r"\"], &[r"\\"]);
        // Nothing follows.
        all_fit(r"a\", &[r"a\"], &["a"]);
    }

    #[test]
    fn nothing_fits_only_nothing() {
        all_fit("", &[""], &["a"]);
    }

    #[test]
    fn no_pattern_takes_long() {
        let name = vec![b'a'; 10_000];
        let pattern = [b"a*".repeat(500), b"b".to_vec()].concat();
        let begin = Instant::now();
        assert!(!fits(&pattern, &name));
        assert!(begin.elapsed() < Duration::from_secs(5));
    }
}

//! Whether a line is the one that the page has.

use std::collections::BTreeMap;

/// Numbers of so many digits and more are tokens.
const TOKEN: usize = 16;

/// What can be any number: the values of these fields,
const FIELDS: [&str; 3] = ["-ms\"", "-id\"", "\"watchdog\""];

/// and what stands right behind these.
const BEHIND: [&str; 3] = ["_ms:", "_us:", "/uuid/:"];

/// The tokens of a page, and those that they are here.
#[derive(Default)]
pub struct Tokens {
    here: BTreeMap<String, String>,
    page: BTreeMap<String, String>,
}

impl Tokens {
    /// `before`: the line before it.
    pub fn same(&mut self, page: &str, here: &str, before: &str) -> bool {
        let (page, here) = (without_uuid(page), without_uuid(here));
        let (page, here) = (parts(&page), parts(&here));
        if page.len() != here.len() {
            return false;
        }
        let texts = std::iter::once(&"").chain(&here);
        page.iter()
            .zip(&here)
            .zip(texts)
            .all(|((page, here), text)| {
                let numbers = is_number(page) && is_number(here);
                match numbers && here.len() >= TOKEN {
                    _ if numbers && is_any_behind(text, before) => true,
                    true => self.token(page, here),
                    false => page == here,
                }
            })
    }

    /// What is to be said here in the place of what the page says.
    pub fn said(&self, page: &str) -> String {
        let here = |part: &str| self.here.get(part).cloned().unwrap_or(part.to_owned());
        parts(page).into_iter().map(here).collect()
    }

    /// One is always the same as the other.
    fn token(&mut self, page: &str, here: &str) -> bool {
        match (self.here.get(page), self.page.get(here)) {
            (None, None) => {
                self.here.insert(page.to_owned(), here.to_owned());
                self.page.insert(here.to_owned(), page.to_owned());
                true
            }
            (Some(known), Some(_)) => known == here,
            _ => false,
        }
    }
}

/// RESP3 has a field and its value in one line, RESP2 in two.
fn is_any_behind(text: &str, before: &str) -> bool {
    let value = text.strip_suffix("(integer) ");
    let is_of = |field: &&str| {
        let in_line = |text: &str| text.ends_with(&format!("{field} => "));
        value.is_some_and(|text| in_line(text) || before.ends_with(*field))
    };
    FIELDS.iter().any(is_of) || BEHIND.iter().any(|word| text.ends_with(word))
}

fn is_number(part: &str) -> bool {
    part.starts_with(|c: char| c.is_ascii_digit())
}

/// Numbers, and what is between them.
fn parts(line: &str) -> Vec<&str> {
    let is_digit = |c: &u8| c.is_ascii_digit();
    let runs = line.as_bytes().chunk_by(|a, b| is_digit(a) == is_digit(b));
    let mut rest = line;
    let cut = runs.map(|run| {
        let (part, behind) = rest.split_at(run.len());
        rest = behind;
        part
    });
    cut.collect()
}

/// A connection's own id begins with one.
fn without_uuid(line: &str) -> String {
    const LENGTH: usize = 36;
    let is_uuid = |word: &[u8]| {
        let at_dashes = |at: &usize| [8, 13, 18, 23].contains(at);
        let fits = |(at, c): (usize, &u8)| match at_dashes(&at) {
            true => *c == b'-',
            false => c.is_ascii_hexdigit(),
        };
        word.iter().enumerate().all(fits)
    };
    let found = line.as_bytes().windows(LENGTH).position(is_uuid);
    found.map_or(line.to_owned(), |at| {
        format!("{}/uuid/{}", &line[..at], &line[at + LENGTH..])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = "(integer) 1795272565176233";
    const SECOND: &str = "(integer) 1795272569583159";

    #[test]
    fn a_token_is_the_same_wherever_the_page_has_the_same() {
        let mut tokens = Tokens::default();
        assert!(tokens.same("(integer) 1700000000000001", FIRST, ""));
        assert!(tokens.same("(integer) 1700000000000001", FIRST, ""));
        assert!(!tokens.same("(integer) 1700000000000001", SECOND, ""));
        assert!(!tokens.same("(integer) 1700000000000002", FIRST, ""));
        assert!(tokens.same("(integer) 1700000000000002", SECOND, ""));
        let said = tokens.said("RLOCK.FORCE k IFTOKEN 1700000000000002");
        assert_eq!(said, "RLOCK.FORCE k IFTOKEN 1795272569583159");
    }

    #[test]
    fn times_and_ids_may_be_any_and_other_numbers_are_the_page_s() {
        let mut tokens = Tokens::default();
        let mut same = |page, here, before| tokens.same(page, here, before);
        let [page, here] = [29349, 30000].map(|ms| format!("4# \"held-ms\" => (integer) {ms}"));
        assert!(same(&page, &here, ""));
        assert!(same("8) (integer) 1", "8) (integer) 20", "7) \"held-ms\""));
        assert!(!same("8) (integer) 1", "8) (integer) 20", "7) \"holds\""));
        assert!(!same("9) (integer) 1", "8) (integer) 1", "7) \"held-ms\""));
        assert!(!same("(integer) 0", "(integer) 1", ""));
        assert!(!same("(nil)", "(integer) 1", ""));
    }
}

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
        let known = self.here.entry(page.to_owned()).or_insert(here.to_owned()) == here;
        known && self.page.entry(here.to_owned()).or_insert(page.to_owned()) == page
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

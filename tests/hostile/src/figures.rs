//! What was sent, and what came of it.

use std::collections::BTreeMap;
use std::fmt;

use crate::draw::Args;
use crate::resp::Value;

#[derive(Default)]
pub struct Figures {
    sent: BTreeMap<String, u64>,
    refused: BTreeMap<String, u64>,
    pub replies: u64,
    pub messages: u64,
    pub closed: u64,
    /// Of connections that the server left half closed (see `stuck`).
    pub half_closed: u64,
    /// Refused requests before and after which everything was compared, by their code.
    pub unchanged: BTreeMap<String, u64>,
    /// Requests of users who may little: let in, and denied.
    pub let_in: u64,
    pub denied: u64,
    pub rounds: u64,
    /// Changes that did not come again when the same was done again.
    pub not_seen_again: u64,
}

impl Figures {
    pub fn sent(&mut self, args: &Args) {
        let name = args[0].to_ascii_uppercase();
        let name = String::from_utf8_lossy(&name);
        match self.sent.get_mut(&*name) {
            Some(count) => *count += 1,
            None => drop(self.sent.insert(name.into_owned(), 1)),
        }
    }

    pub fn replied(&mut self, reply: &Value) {
        self.replies += 1;
        if let Some(line) = reply.error() {
            *self.refused.entry(code(line)).or_default() += 1;
        }
    }

    pub fn is_unchanged(&mut self, reply: &Value) {
        let code = reply.error().map_or("null".to_owned(), code);
        *self.unchanged.entry(code).or_default() += 1;
    }

    pub fn total(&self) -> u64 {
        self.sent.values().sum()
    }
}

pub fn code(line: &[u8]) -> String {
    let end = line.iter().position(|byte| *byte == b' ');
    let word = &line[..end.unwrap_or(line.len()).min(16)];
    String::from_utf8_lossy(word).into_owned()
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |all: &BTreeMap<String, u64>| {
            let mut all: Vec<_> = all.iter().collect();
            all.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
            let words = all.iter().map(|(name, count)| format!("{name} {count}"));
            words.collect::<Vec<_>>().join(", ")
        };
        let refused: u64 = self.refused.values().sum();
        let unchanged: u64 = self.unchanged.values().sum();
        writeln!(
            f,
            "sent {} in {} rounds: {}",
            self.total(),
            self.rounds,
            of(&self.sent)
        )?;
        writeln!(
            f,
            "replies {}, messages {}, connections closed {}, left half closed by the server {}",
            self.replies, self.messages, self.closed, self.half_closed
        )?;
        writeln!(f, "refused {refused}: {}", of(&self.refused))?;
        writeln!(
            f,
            "refused and seen to change nothing {unchanged}: {}; changed once and not again {}",
            of(&self.unchanged),
            self.not_seen_again
        )?;
        write!(
            f,
            "of users who may little: {} let in, {} denied",
            self.let_in, self.denied
        )
    }
}

const MOST_SHOWN: usize = 40;

/// A command as it could be typed.
pub fn shown(args: &Args) -> String {
    let word = |arg: &Vec<u8>| {
        let simple = |byte: &u8| byte.is_ascii_graphic() && !b"'\"\\".contains(byte);
        let long = arg.len() > 200;
        if !arg.is_empty() && !long && arg.iter().all(simple) {
            return String::from_utf8_lossy(arg).into_owned();
        }
        let text: String = arg.iter().take(200).map(|byte| byte_shown(*byte)).collect();
        let more = if long {
            format!("...{} bytes", arg.len())
        } else {
            String::new()
        };
        format!("\"{text}\"{more}")
    };
    let more = if args.len() > MOST_SHOWN { " ..." } else { "" };
    let words: Vec<_> = args.iter().take(MOST_SHOWN).map(word).collect();
    words.join(" ") + more
}

fn byte_shown(byte: u8) -> String {
    match byte {
        b'"' | b'\\' => format!("\\{}", char::from(byte)),
        b' '..=b'~' => char::from(byte).to_string(),
        _ => format!("\\x{byte:02x}"),
    }
}

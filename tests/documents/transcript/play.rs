//! Does what a transcript says, and looks that it sees the same.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use redis::Value;

use super::lines::{parse, Line};
use super::same::Tokens;
use super::shown::shown;
use crate::support::{eventually, now_ms, pass, Ask, RawClient, Server};

/// The page leaves out what follows.
const MORE: &str = "…";

pub struct Play<'a> {
    server: &'a Server,
    /// Of RESP that the terminals speak.
    version: u32,
    terminals: BTreeMap<u32, RawClient>,
    tokens: Tokens,
    /// Looks at the server meanwhile.
    beside: RawClient,
    /// The terminals that do.
    waiting: BTreeSet<u32>,
    /// The replies that came.
    replies: Vec<Value>,
    /// Those that are to come, in the place of what the page shows.
    instead: VecDeque<Value>,
}

impl<'a> Play<'a> {
    pub fn on(server: &'a Server, version: u32) -> Self {
        Self {
            server,
            version,
            terminals: BTreeMap::new(),
            tokens: Tokens::default(),
            beside: server.raw(),
            waiting: BTreeSet::new(),
            replies: Vec::new(),
            instead: VecDeque::new(),
        }
    }

    /// The same, but these replies are to come: those in RESP3, as RESP2 has them.
    pub fn as_resp2(server: &'a Server, replies: &[Value]) -> Self {
        Self {
            instead: replies.iter().map(flat).collect(),
            ..Self::on(server, 2)
        }
    }

    /// The replies that came, and the page with the tokens of this run.
    pub fn ended(self, text: &str) -> (Vec<Value>, String) {
        (self.replies, self.tokens.said(text))
    }

    /// Goes on with the terminals that are there.
    #[track_caller]
    pub fn play(&mut self, text: &str) {
        let lines = parse(text);
        let mut lines = lines.into_iter().peekable();
        while let Some(line) = lines.next() {
            let (terminal, first) = match line {
                Line::Close(terminal) => {
                    self.close(terminal);
                    continue;
                }
                Line::Pass(ms) => {
                    pass(now_ms() + ms);
                    continue;
                }
                Line::Say(terminal, words) => {
                    let words = self.tokens.said(&words);
                    self.terminal(terminal).send(&words);
                    (terminal, None)
                }
                Line::See(terminal, words) => {
                    self.waiting.remove(&terminal);
                    (terminal, Some(words))
                }
            };
            let mut page: Vec<String> = first.into_iter().collect();
            while let Some(Line::See(_, more)) =
                lines.next_if(|next| matches!(next, Line::See(on, _) if *on == terminal))
            {
                page.push(more);
            }
            match &page[..] {
                [] => self.waits(terminal),
                [only] if only.starts_with("Error: Server closed") => self.is_closed(terminal),
                _ => self.sees(terminal, &page),
            }
        }
    }

    fn terminal(&mut self, number: u32) -> &mut RawClient {
        let (server, version) = (self.server, self.version);
        self.terminals.entry(number).or_insert_with(|| {
            let mut client = server.raw();
            client.ask(&format!("HELLO {version}"));
            client
        })
    }

    /// As with Ctrl-D: the next in this terminal is a new connection.
    #[track_caller]
    fn close(&mut self, terminal: u32) {
        self.waiting.remove(&terminal);
        let Some(client) = self.terminals.remove(&terminal) else {
            return;
        };
        let before = clients(&mut self.beside, "connected");
        client.close();
        let beside = &mut self.beside;
        eventually("it is closed", || clients(beside, "connected") < before);
    }

    /// What was said waits.
    #[track_caller]
    fn waits(&mut self, terminal: u32) {
        self.waiting.insert(terminal);
        let (beside, waiting) = (&mut self.beside, self.waiting.len());
        eventually("it waits", || clients(beside, "blocked") == waiting);
    }

    #[track_caller]
    fn is_closed(&mut self, terminal: u32) {
        let mut client = self.terminals.remove(&terminal).expect("it is open");
        assert!(client.is_closed(), "terminal {terminal} is open");
    }

    #[track_caller]
    fn sees(&mut self, terminal: u32, page: &[String]) {
        let reply = self.terminal(terminal).read();
        let mut here = shown(&reply);
        if let Value::VerbatimString { .. } = reply {
            // A page may show a part of INFO.
            let field = |line: &str| line.split(':').next().unwrap_or_default().to_owned();
            let named: Vec<String> = page.iter().map(|line| field(line)).collect();
            here.retain(|line| named.contains(&field(line)));
        }
        let mut page = page.to_vec();
        if let Some(instead) = self.instead.pop_front() {
            page = shown(&instead);
        }
        if page.last().is_some_and(|line| line.trim() == MORE) {
            page.pop();
            here.truncate(page.len());
        }
        let before = std::iter::once("").chain(here.iter().map(String::as_str));
        let mut lines = page.iter().zip(&here).zip(before);
        let same = page.len() == here.len()
            && lines.all(|((page, here), before)| self.tokens.same(page, here, before));
        self.replies.push(reply);
        let (page, here) = (page.join("\n"), here.join("\n"));
        assert!(same, "the page has\n{page}\n\nthe server says\n{here}\n");
    }
}

/// How many clients there are of a kind.
fn clients(client: &mut RawClient, kind: &str) -> usize {
    let section = client.text("INFO clients");
    let begin = format!("{kind}_clients:");
    let mut lines = section.lines();
    let count = lines.find_map(|line| line.strip_prefix(&begin));
    count
        .and_then(|count| count.parse().ok())
        .expect("a number")
}

/// A reply of RESP3 as RESP2 has it.
fn flat(reply: &Value) -> Value {
    match reply {
        Value::Array(values) => Value::Array(values.iter().map(flat).collect()),
        Value::Map(pairs) => {
            let both = pairs
                .iter()
                .flat_map(|(key, value)| [flat(key), flat(value)]);
            Value::Array(both.collect())
        }
        other => other.clone(),
    }
}

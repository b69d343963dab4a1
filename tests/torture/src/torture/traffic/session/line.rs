//! A connection of a session, and its channel.

use std::io;

use rlock_torture::clock::now_us;
use rlock_torture::history::Out;

use crate::traffic::conn::{Answer, Args, Conn};
use crate::traffic::draw;

/// What was read at one time: messages, and answers.
pub type Heard = (Vec<String>, Vec<Answer>);

pub struct Line {
    pub conn: Conn,
    pub channel: String,
    /// What its program has not looked at yet.
    pub heard: Vec<Heard>,
    /// When it is to say again that it is alive.
    pub beats_at: u64,
    tag: &'static str,
    db: u32,
    serial: u32,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Deaf,
    Asked,
    Listens,
}

impl Line {
    pub fn open(id: u32, port: u16, db: u32, tag: &'static str) -> io::Result<Self> {
        Ok(Self {
            conn: Conn::open_session(id, port, db)?,
            channel: String::new(),
            heard: Vec::new(),
            beats_at: 0,
            tag,
            db,
            serial: 0,
            state: State::Deaf,
        })
    }

    pub fn listens(&self) -> bool {
        self.state == State::Listens
    }

    /// Whether it is time to say that it is alive.
    pub fn is_to_beat(&self) -> bool {
        self.conn.ready() && self.beats_at <= now_us()
    }

    fn word(&self, word: &str) -> String {
        let sharded = if self.tag.is_empty() { "" } else { "S" };
        format!("{sharded}{word}")
    }

    /// Asks for a channel that nobody had before, if it has none.
    pub fn subscribe(&mut self) -> Option<Args> {
        if self.state != State::Deaf || !self.conn.ready() || self.conn.busy() {
            return None;
        }
        self.serial += 1;
        self.channel = format!("{}ch:{}:{}", self.tag, self.conn.id, self.serial);
        self.state = State::Asked;
        Some(vec![self.word("SUBSCRIBE"), self.channel.clone()])
    }

    /// From all channels, by no name: a server whose slot has gone would send a name on, after
    /// what it had told of the end by itself.
    pub fn unsubscribe(&mut self) -> Args {
        self.state = State::Deaf;
        vec![self.word("UNSUBSCRIBE")]
    }

    /// RESET, and what makes the connection of use again.
    pub fn reset(&mut self) -> Vec<Args> {
        self.state = State::Deaf;
        let mut all = vec![draw::args("RESET"), draw::args("HELLO 3")];
        if self.db != 0 {
            all.push(draw::args(&format!("SELECT {}", self.db)));
        }
        all
    }

    /// Whether this server is the wrong one for the channel.
    pub fn answered(&mut self, answer: &Answer) -> bool {
        let Answer { args, out } = answer;
        match (args[0].as_str(), out) {
            ("SUBSCRIBE" | "SSUBSCRIBE", Out::Text(_)) if args[1] == self.channel => {
                self.state = State::Listens;
                false
            }
            ("SUBSCRIBE" | "SSUBSCRIBE" | "HELLO" | "SELECT", Out::Error(_)) => true,
            _ => false,
        }
    }
}

//! A connection of the storm: sends without waiting, and knows which reply is due.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use crate::draw::{Args, Draw};
use crate::figures::{shown, Figures};
use crate::link::{is_confirmation, Link};
use crate::resp::{encode, parse, Value};
use crate::shape;

/// So many commands are remembered: more than can be due.
const REMEMBERED: usize = 200;
/// So many commands up to the one that is due, and behind it, are told when something was found.
const TOLD: u64 = 20;
const TOLD_BEHIND: u64 = 3;
const TOLD_ANSWERS: usize = 12;

/// What comes next.
pub enum Due {
    Reply(Args),
    Hello,
    Reset,
    /// Of SUBSCRIBE and the like: a push in RESP3, an array else.
    Confirmation,
    Multi,
    /// A command in MULTI: `QUEUED`, or refused.
    Queued(Args),
    Exec,
}

impl fmt::Display for Due {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reply(args) => f.write_str(&shown(args)),
            Self::Queued(args) => write!(f, "in MULTI: {}", shown(args)),
            Self::Hello => f.write_str("HELLO"),
            Self::Reset => f.write_str("RESET"),
            Self::Confirmation => f.write_str("SUBSCRIBE"),
            Self::Multi => f.write_str("MULTI"),
            Self::Exec => f.write_str("EXEC"),
        }
    }
}

pub struct Peer {
    stream: TcpStream,
    pub id: i64,
    pub number: usize,
    out: Vec<u8>,
    read: Vec<u8>,
    /// Each with the number of its command.
    pub due: VecDeque<(u64, Due)>,
    /// The last commands, the newest last.
    recent: VecDeque<Args>,
    said: u64,
    /// The last replies, each with what it is to.
    answered: VecDeque<String>,
    resp3: bool,
    /// It said HELLO 2, perhaps with a subscription: messages come as arrays then.
    mixed: bool,
    queued: Vec<Args>,
    /// Its last reply, or since when one is due.
    pub moved: Instant,
    pub is_open: bool,
    /// The channel of its session, if it has one.
    pub channel: Option<String>,
}

impl Peer {
    pub fn open(port: u16, number: usize) -> io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        let mut peer = Self {
            stream,
            id: 0,
            number,
            out: Vec::new(),
            read: Vec::new(),
            due: VecDeque::new(),
            recent: VecDeque::new(),
            said: 0,
            answered: VecDeque::new(),
            resp3: false,
            mixed: false,
            queued: Vec::new(),
            moved: Instant::now(),
            is_open: true,
            channel: None,
        };
        peer.stream.write_all(b"CLIENT ID\r\n")?;
        while peer.id == 0 {
            let mut buffer = [0; 64];
            match peer.stream.read(&mut buffer)? {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                count => peer.read.extend(&buffer[..count]),
            }
            if let Some((reply, taken)) = parse(&peer.read).map_err(io::Error::other)? {
                let id = reply.int();
                peer.id = id.ok_or_else(|| io::Error::other(format!("CLIENT ID: {reply}")))?;
                peer.read.drain(..taken);
            }
        }
        peer.stream.set_nonblocking(true)?;
        Ok(peer)
    }

    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    pub fn wants_to_write(&self) -> bool {
        !self.out.is_empty()
    }

    pub fn say(&mut self, figures: &mut Figures, args: Args, due: Option<Due>) {
        figures.sent(&args);
        encode(&args, &mut self.out);
        if self.recent.len() == REMEMBERED {
            self.recent.pop_front();
        }
        self.recent.push_back(args);
        self.said += 1;
        if self.due.is_empty() {
            self.moved = Instant::now();
        }
        self.due.extend(due.map(|due| (self.said, due)));
    }

    /// Writes and reads what it can. An error is a finding.
    pub fn turn(&mut self, draw: &mut Draw, figures: &mut Figures) -> Result<(), String> {
        if self.push_out().and_then(|()| self.pull_in()).is_err() {
            self.is_open = false;
            figures.closed += 1;
        }
        let mut at = 0;
        while let Some((value, taken)) = parse(&self.read[at..])? {
            at += taken;
            self.take(value, draw, figures)?;
        }
        self.read.drain(..at);
        Ok(())
    }

    fn push_out(&mut self) -> io::Result<()> {
        while !self.out.is_empty() {
            match self.stream.write(&self.out) {
                Ok(count) => drop(self.out.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn pull_in(&mut self) -> io::Result<()> {
        let mut buffer = [0; 1 << 16];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.read.extend(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    fn take(&mut self, value: Value, draw: &mut Draw, figures: &mut Figures) -> Result<(), String> {
        let is_push = matches!(value, Value::Push(_)) || self.mixed && is_message(&value);
        if is_push && !is_confirmation(&value) {
            figures.messages += 1;
            return message(&value);
        }
        let due = self.due.pop_front();
        let (_, due) = due.ok_or_else(|| format!("a reply that nobody asked for: {value}"))?;
        self.moved = Instant::now();
        figures.replied(&value);
        let checked = self.fits(&due, &value);
        if let Due::Reply(args) = &due {
            learn(draw, args, &value);
        }
        let ago = &self.answered;
        checked.map_err(|what| {
            format!("{what}; the last of these replies: {ago:#?}\nto {due} came {value}")
        })?;
        if self.answered.len() == TOLD_ANSWERS {
            self.answered.pop_front();
        }
        self.answered.push_back(format!("{due}: {value}"));
        Ok(())
    }

    fn fits(&mut self, due: &Due, value: &Value) -> Result<(), String> {
        let wrong = || Err("the wrong kind of reply".to_owned());
        match due {
            Due::Reply(args) => return shape::check(args, value, self.resp3),
            Due::Hello if value.error().is_none() => {
                self.resp3 = matches!(value, Value::Map(_));
                self.mixed = !self.resp3;
            }
            Due::Hello => {}
            Due::Reset if value.bytes() == Some(b"RESET") => {
                (self.resp3, self.mixed) = (false, false);
            }
            Due::Reset => return wrong(),
            Due::Confirmation => {
                let good = matches!(value, Value::Push(_) | Value::Array(_) | Value::Error(_));
                return if good { Ok(()) } else { wrong() };
            }
            Due::Multi => self.queued.clear(),
            Due::Queued(args) if value.bytes() == Some(b"QUEUED") => self.queued.push(args.clone()),
            Due::Queued(_) if value.error().is_some() => {}
            Due::Queued(_) => return wrong(),
            Due::Exec => return self.executed(value),
        }
        Ok(())
    }

    fn executed(&mut self, value: &Value) -> Result<(), String> {
        let queued = std::mem::take(&mut self.queued);
        match value {
            Value::Array(replies) if replies.len() == queued.len() => {
                let mut pairs = queued.iter().zip(replies);
                pairs.try_for_each(|(args, reply)| {
                    let waits = matches!(reply, Value::Simple(text) if text == b"QUEUED");
                    if waits {
                        return Err("queued in the middle of EXEC".to_owned());
                    }
                    let checked = shape::check(args, reply, self.resp3);
                    checked.map_err(|what| format!("{what} in EXEC: {}", shown(args)))
                })
            }
            value if value.error().is_some() || value.is_null() => Ok(()),
            _ => Err("EXEC replied with something else".to_owned()),
        }
    }

    /// The command whose reply is due, if it is one that stands alone.
    pub fn waits_for(&self) -> Option<&Args> {
        match self.due.front() {
            Some((_, Due::Reply(args) | Due::Queued(args))) => Some(args),
            _ => None,
        }
    }

    /// Whether it asked for silence before the reply that is due.
    pub fn asked_for_silence(&self) -> bool {
        let asks = |args: &Args| {
            let words = args.iter().map(Vec::as_slice);
            matches!(
                words.collect::<Vec<_>>()[..],
                [b"CLIENT", b"REPLY", b"OFF" | b"SKIP"]
            )
        };
        self.until_due().any(|(_, args)| asks(args))
    }

    /// What was said up to the command whose reply is due, with the numbers of the commands.
    fn until_due(&self) -> impl Iterator<Item = (u64, &Args)> {
        let first = self.said - self.recent.len() as u64 + 1;
        let last = self.due.front().map_or(self.said, |(number, _)| *number);
        let numbered = (first..).zip(&self.recent);
        numbered.take_while(move |(number, _)| *number <= last + TOLD_BEHIND)
    }

    /// Its last commands up to the one that is due, and some behind it.
    pub fn told(&self) -> String {
        let first = self.due.front().map(|(number, _)| *number);
        let from = first.unwrap_or(self.said).saturating_sub(TOLD);
        let line = |(number, args): (u64, &Args)| {
            let sign = if Some(number) == first { '>' } else { ' ' };
            format!(" {sign}{}", shown(args))
        };
        let last = self.until_due().filter(|(number, _)| *number > from);
        let lines: Vec<_> = last.map(line).collect();
        let due = match self.due.front() {
            Some((_, first)) => format!("{} replies due, the first to {first}", self.due.len()),
            None => "no reply due".to_owned(),
        };
        let replied = match self.answered.back() {
            Some(last) => format!("the last reply: {last}\n"),
            None => String::new(),
        };
        let part = &self.read[..self.read.len().min(300)];
        let part = match part {
            [] => String::new(),
            part => format!("begun and not ended: {}\n", part.escape_ascii()),
        };
        let who = format!("connection {} (id {}, {due})", self.number, self.id);
        let unsent = match self.out.len() {
            0 => String::new(),
            bytes => format!("{bytes} bytes that the server has not taken\n"),
        };
        format!("{who}:\n{replied}{part}{unsent}{}", lines.join("\n"))
    }
}

fn is_message(value: &Value) -> bool {
    matches!(value, Value::Array(items) if items.len() >= 3) && !is_confirmation(value)
}

fn message(push: &Value) -> Result<(), String> {
    let (channel, payload) = match push.items() {
        [_, channel, payload] | [_, _, channel, payload] => (channel.bytes(), payload.bytes()),
        _ => (None, None),
    };
    match (channel, payload) {
        (Some(channel), Some(payload)) if channel.starts_with(crate::draw::SESSION.as_bytes()) => {
            shape::check_message(payload)
        }
        (Some(_), Some(_)) => Ok(()),
        _ => Err(format!("a message of another form: {push}")),
    }
}

/// What is of use for what is drawn later.
fn learn(draw: &mut Draw, args: &Args, value: &Value) {
    match (args[0].as_slice(), value) {
        (b"RLOCK.ACQUIRE" | b"RLOCK.MACQUIRE", Value::Int(token)) => draw.saw_token(*token),
        (b"DUMP", Value::Bulk(dump)) if dump.len() < 5000 => draw.saw_dump(dump.clone()),
        _ => {}
    }
}

/// Whether a blocked connection was let go.
pub fn unblock(control: &mut Link, id: i64, how: &str) -> io::Result<bool> {
    let reply = control.ask(&["CLIENT", "UNBLOCK", &id.to_string(), how])?;
    Ok(reply.int() == Some(1))
}

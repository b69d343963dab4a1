//! One connection of a client: requests go out at once, replies come when they come,
//! and both are recorded.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

use rlock_torture::clock::now_us;
use rlock_torture::history::{self, End, Message, Op, Out, Record, Recorder, Stray};

use crate::resp::{encode, parse, Value};
use crate::traffic::abort::reset_on_close;
use crate::traffic::out;

pub type Args = Vec<String>;

/// What is still to be answered, in order.
enum Expect {
    Op(Pending),
    /// MULTI, QUEUED, ASKING.
    Skip,
    Exec(Vec<Pending>),
    Setup(Setup),
}

#[derive(Clone, Copy)]
enum Setup {
    Plain,
    ClientId,
    Owner,
}

struct Pending {
    args: Args,
    call: u64,
    sent: u64,
    multi: bool,
    behind: bool,
}

/// A request that is over.
pub struct Answer {
    pub args: Args,
    pub out: Out,
}

pub struct Conn {
    pub id: u32,
    pub port: u16,
    db: u32,
    stream: TcpStream,
    received: Vec<u8>,
    expected: VecDeque<Expect>,
    opened: u64,
    last: u64,
    client_id: Option<i64>,
    pub owner: Option<String>,
    refused: bool,
    /// Nothing that is asked here blocks what is behind it.
    flows: bool,
    /// What came on its channels, and nobody has looked at yet.
    pub messages: Vec<String>,
}

impl Conn {
    /// Connects, and asks who it is; usable once `ready`.
    pub fn open(id: u32, port: u16, db: u32, resp3: bool) -> io::Result<Self> {
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let stream = TcpStream::connect_timeout(&address, Duration::from_millis(500))?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let opened = now_us();
        let mut conn = Self {
            id,
            port,
            db,
            stream,
            received: Vec::new(),
            expected: VecDeque::new(),
            opened,
            last: opened,
            client_id: None,
            owner: None,
            refused: false,
            flows: false,
            messages: Vec::new(),
        };
        let mut bytes = Vec::new();
        let mut ask = |line: &str, step| {
            encode(&line.split(' ').collect::<Vec<_>>(), &mut bytes);
            conn.expected.push_back(Expect::Setup(step));
        };
        if resp3 {
            ask("HELLO 3", Setup::Plain);
        }
        if db != 0 {
            ask(&format!("SELECT {db}"), Setup::Plain);
        }
        ask("CLIENT ID", Setup::ClientId);
        ask("RLOCK.OWNER", Setup::Owner);
        conn.stream.write_all(&bytes)?;
        Ok(conn)
    }

    /// One that never blocks, and is told by messages.
    pub fn open_session(id: u32, port: u16, db: u32) -> io::Result<Self> {
        let mut conn = Self::open(id, port, db, true)?;
        conn.flows = true;
        Ok(conn)
    }

    pub fn fd(&self) -> RawFd {
        self.stream.as_raw_fd()
    }

    pub fn ready(&self) -> bool {
        self.owner.is_some()
    }

    pub fn busy(&self) -> bool {
        !self.expected.is_empty()
    }

    /// Sends the requests in one write, as a transaction if so asked, or behind
    /// ASKING.
    pub fn send(&mut self, requests: &[Args], multi: bool, asking: bool) -> io::Result<()> {
        let call = now_us();
        let mut bytes = Vec::new();
        let first = self.expected.len();
        let mut pending = Vec::new();
        if asking {
            encode(&["ASKING"], &mut bytes);
            self.expected.push_back(Expect::Skip);
        }
        if multi {
            encode(&["MULTI"], &mut bytes);
            self.expected.push_back(Expect::Skip);
        }
        for (at, args) in requests.iter().enumerate() {
            encode(args, &mut bytes);
            let one = Pending {
                args: args.clone(),
                call,
                sent: u64::MAX,
                multi,
                behind: multi || (!self.flows && (at > 0 || first > 0)),
            };
            match multi {
                true => {
                    self.expected.push_back(Expect::Skip);
                    pending.push(one);
                }
                false => self.expected.push_back(Expect::Op(one)),
            }
        }
        if multi {
            encode(&["EXEC"], &mut bytes);
            self.expected.push_back(Expect::Exec(pending));
        }
        let written = self.stream.write_all(&bytes);
        let sent = now_us();
        for expect in self.expected.iter_mut().skip(first) {
            match expect {
                Expect::Op(one) => one.sent = sent,
                Expect::Exec(many) => many.iter_mut().for_each(|one| one.sent = sent),
                _ => (),
            }
        }
        written
    }

    /// Reads what there is. False: the server has closed the connection.
    pub fn read(&mut self, to: &mut Recorder, answers: &mut Vec<Answer>) -> io::Result<bool> {
        loop {
            let mut chunk = [0; 16384];
            match self.stream.read(&mut chunk) {
                Ok(0) => return Ok(false),
                Ok(got) => self.received.extend(&chunk[..got]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => (),
                Err(_) => return Ok(false),
            }
            self.last = now_us();
            self.take(to, answers)?;
        }
        Ok(!self.refused)
    }

    fn take(&mut self, to: &mut Recorder, answers: &mut Vec<Answer>) -> io::Result<()> {
        loop {
            match parse(&self.received) {
                Ok(Some((value, taken))) => {
                    self.received.drain(..taken);
                    self.answered(value, to, answers)?;
                }
                Ok(None) => return Ok(()),
                Err(error) => {
                    self.stray(error, to)?;
                    self.received.clear();
                    self.refused = true;
                    return Ok(());
                }
            }
        }
    }

    fn answered(
        &mut self,
        value: Value,
        to: &mut Recorder,
        answers: &mut Vec<Answer>,
    ) -> io::Result<()> {
        let at = Some(self.last);
        if let Value::Push(parts) = &value {
            if !self.confirms(parts) {
                return self.told(parts, to);
            }
        }
        match self.expected.pop_front() {
            None => self.stray(format!("{value:?}"), to)?,
            Some(Expect::Skip) => (),
            Some(Expect::Setup(step)) => match (step, value) {
                (Setup::ClientId, Value::Int(id)) => self.client_id = Some(id),
                (Setup::Owner, Value::Text(owner)) => self.owner = Some(owner),
                (Setup::Plain, value) if !matches!(value, Value::Error(_)) => (),
                _ => self.refused = true,
            },
            Some(Expect::Op(one)) => {
                let out = out::of(&one.args, value);
                self.record(one, at, out, to, answers)?;
            }
            Some(Expect::Exec(many)) => {
                let replies = value.array().to_vec();
                let even = replies.len() == many.len();
                for (nth, one) in many.into_iter().enumerate() {
                    let out = match (&value, even) {
                        (Value::Error(error), _) => Out::Error(error.clone()),
                        (_, true) => out::of(&one.args, replies[nth].clone()),
                        _ => Out::Other(format!("EXEC: {value:?}")),
                    };
                    self.record(one, at, out, to, answers)?;
                }
            }
        }
        Ok(())
    }

    /// Whether a push is the reply to what is next in turn, such as SUBSCRIBE.
    fn confirms(&self, parts: &[Value]) -> bool {
        let word = parts.first().and_then(Value::text).unwrap_or_default();
        match self.expected.front() {
            Some(Expect::Op(one)) => one.args[0].eq_ignore_ascii_case(word),
            _ => false,
        }
    }

    fn told(&mut self, parts: &[Value], to: &mut Recorder) -> io::Result<()> {
        let words: Vec<&str> = parts.iter().filter_map(Value::text).collect();
        let text = match words[..] {
            ["message" | "smessage", _, text] => text.to_owned(),
            ["sunsubscribe", _] => "sunsubscribe".to_owned(),
            // RESET and UNSUBSCRIBE of channels that are gone tell so once more.
            ["unsubscribe", ..] | ["sunsubscribe"] => return Ok(()),
            _ => return self.stray(format!("{parts:?}"), to),
        };
        let (conn, at) = (self.id, self.last);
        self.messages.push(text.clone());
        to.write(&Record::Message(Message { conn, at, text }))
    }

    fn stray(&self, text: String, to: &mut Recorder) -> io::Result<()> {
        let (conn, at) = (self.id, now_us());
        to.write(&Record::Stray(Stray { conn, at, text }))
    }

    fn record(
        &self,
        one: Pending,
        reply: Option<u64>,
        out: Out,
        to: &mut Recorder,
        answers: &mut Vec<Answer>,
    ) -> io::Result<()> {
        to.write(&Record::Op(Op {
            conn: self.id,
            args: one.args.clone(),
            call: one.call,
            sent: one.sent,
            reply,
            out: out.clone(),
            multi: one.multi,
            behind: one.behind,
        }))?;
        let args = one.args;
        answers.push(Answer { args, out });
        Ok(())
    }

    /// Ends it, by RST if `hard`, and records it with what was not answered.
    pub fn close(mut self, end: End, hard: bool, to: &mut Recorder) -> io::Result<Vec<Answer>> {
        let mut answers = Vec::new();
        let mut closed = now_us();
        let mut end = end;
        if end == End::Client && !self.read(to, &mut answers)? {
            end = End::Server;
        }
        if end == End::Server {
            closed = now_us();
        }
        let missing = match end {
            End::Open => Out::Unanswered,
            _ => Out::Lost,
        };
        for expect in std::mem::take(&mut self.expected) {
            let ops = match expect {
                Expect::Op(one) => vec![one],
                Expect::Exec(many) => many,
                _ => continue,
            };
            for one in ops {
                self.record(one, None, missing.clone(), to, &mut answers)?;
            }
        }
        to.write(&Record::Conn(history::Conn {
            conn: self.id,
            server: self.port,
            db: self.db,
            client_id: self.client_id,
            owner: self.owner.take(),
            opened: self.opened,
            closed,
            last: self.last,
            end,
        }))?;
        if hard {
            reset_on_close(&self.stream);
        }
        Ok(answers)
    }
}

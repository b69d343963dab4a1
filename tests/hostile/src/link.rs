//! A connection that asks, and waits for the reply.

use std::io::{self, Error, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::resp::{encode, parse, Value};

/// No reply for so long is a fault.
const BOUND: Duration = Duration::from_secs(30);

pub struct Link {
    stream: TcpStream,
    read: Vec<u8>,
    /// Messages that came between replies.
    pub pushes: Vec<Value>,
}

impl Link {
    pub fn open(port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(BOUND))?;
        let (read, pushes) = (Vec::new(), Vec::new());
        Ok(Self {
            stream,
            read,
            pushes,
        })
    }

    /// A reply that takes longer is an error, of the kind that says so.
    pub fn set_patience(&mut self, patience: Duration) -> io::Result<()> {
        self.stream.set_read_timeout(Some(patience))
    }

    pub fn send<A: AsRef<[u8]>>(&mut self, args: &[A]) -> io::Result<()> {
        let mut bytes = Vec::new();
        encode(args, &mut bytes);
        self.stream.write_all(&bytes)
    }

    pub fn ask<A: AsRef<[u8]>>(&mut self, args: &[A]) -> io::Result<Value> {
        self.send(args)?;
        self.reply()
    }

    /// Words with blanks between, which must not be refused.
    pub fn must(&mut self, line: &str) -> io::Result<Value> {
        let words: Vec<&str> = line.split(' ').collect();
        match self.ask(&words)? {
            Value::Error(error) => {
                let error = String::from_utf8_lossy(&error).into_owned();
                Err(Error::other(format!("{line}: {error}")))
            }
            reply => Ok(reply),
        }
    }

    pub fn ask_all<A: AsRef<[u8]>>(&mut self, all: &[Vec<A>]) -> io::Result<Vec<Value>> {
        let mut bytes = Vec::new();
        all.iter().for_each(|args| encode(args, &mut bytes));
        self.stream.write_all(&bytes)?;
        all.iter().map(|_| self.reply()).collect()
    }

    /// The next reply; messages are put aside.
    pub fn reply(&mut self) -> io::Result<Value> {
        loop {
            match self.next()? {
                push @ Value::Push(_) if !is_confirmation(&push) => self.pushes.push(push),
                reply => return Ok(reply),
            }
        }
    }

    fn next(&mut self) -> io::Result<Value> {
        loop {
            if let Some((value, taken)) = parse(&self.read).map_err(Error::other)? {
                self.read.drain(..taken);
                return Ok(value);
            }
            let mut buffer = [0; 1 << 16];
            match self.stream.read(&mut buffer)? {
                0 => return Err(Error::other("the connection was closed")),
                count => self.read.extend(&buffer[..count]),
            }
        }
    }
}

/// Whether a push is the reply to a command, and no message.
pub fn is_confirmation(push: &Value) -> bool {
    let kind = push.items().first().and_then(Value::bytes);
    !matches!(kind, Some(b"message" | b"pmessage" | b"smessage"))
}

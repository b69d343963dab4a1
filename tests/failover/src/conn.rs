//! One connection, which knows what it has not read yet.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::clock::now_us;
use crate::resp::{self, Value};

/// Why there is no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gone {
    Closed,
    /// Nothing came in time; it may come yet.
    Silent,
}

pub struct Conn {
    stream: TcpStream,
    bytes: Vec<u8>,
    at: usize,
}

impl Conn {
    pub fn open(port: u16) -> Result<Self, Gone> {
        let address = ([127, 0, 0, 1], port).into();
        let stream = TcpStream::connect_timeout(&address, Duration::from_secs(2));
        let stream = stream.map_err(|_| Gone::Closed)?;
        stream.set_nodelay(true).map_err(|_| Gone::Closed)?;
        let long = Some(Duration::from_secs(5));
        stream.set_write_timeout(long).map_err(|_| Gone::Closed)?;
        Ok(Self {
            stream,
            bytes: Vec::new(),
            at: 0,
        })
    }

    /// Sends lines of words as one write.
    pub fn send<S: AsRef<str>>(&mut self, lines: &[S]) -> Result<(), Gone> {
        let mut bytes = Vec::new();
        for line in lines {
            let words: Vec<&str> = line.as_ref().split(' ').collect();
            resp::encode(&words, &mut bytes);
        }
        self.stream.write_all(&bytes).map_err(|_| Gone::Closed)
    }

    /// What comes next, a push too, by this time.
    pub fn next(&mut self, until: u64) -> Result<Value, Gone> {
        loop {
            let parsed = match self.at < self.bytes.len() {
                true => resp::parse(&self.bytes[self.at..]).map_err(|_| Gone::Closed)?,
                false => None,
            };
            if let Some((value, taken)) = parsed {
                self.at += taken;
                return Ok(value);
            }
            self.bytes.drain(..self.at);
            self.at = 0;
            self.fill(until)?;
        }
    }

    fn fill(&mut self, until: u64) -> Result<(), Gone> {
        let left = until.saturating_sub(now_us()).max(1000);
        let left = Some(Duration::from_micros(left));
        self.stream
            .set_read_timeout(left)
            .map_err(|_| Gone::Closed)?;
        let mut chunk = [0; 16384];
        match self.stream.read(&mut chunk) {
            Ok(0) => Err(Gone::Closed),
            Ok(count) => {
                self.bytes.extend(&chunk[..count]);
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(()),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Err(Gone::Silent)
            }
            Err(_) => Err(Gone::Closed),
        }
    }

    /// One request and its reply, within so many ms.
    pub fn ask_within(&mut self, line: &str, ms: u64) -> Result<Value, Gone> {
        self.send(&[line])?;
        self.next(now_us() + ms * 1000)
    }

    pub fn ask(&mut self, line: &str) -> Result<Value, Gone> {
        self.ask_within(line, 10_000)
    }
}

/// One request on a connection of its own.
pub fn ask(port: u16, line: &str) -> Result<Value, Gone> {
    Conn::open(port)?.ask_within(line, 2000)
}

//! A connection of the orchestrator's own: asks, and waits for the reply.

use std::io::{self, Error, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::resp::{encode, parse, Value};

pub struct Link {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Link {
    pub fn open(port: u16) -> io::Result<Self> {
        Self::open_within(port, Duration::from_secs(10))
    }

    /// Replies may take so long; after that the link is of no more use.
    pub fn open_within(port: u16, bound: Duration) -> io::Result<Self> {
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let stream = TcpStream::connect_timeout(&address, bound)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(bound))?;
        let received = Vec::new();
        Ok(Self { stream, received })
    }

    pub fn call<A: AsRef<str>>(&mut self, args: &[A]) -> io::Result<Value> {
        self.send(args)?;
        self.next()
    }

    pub fn send<A: AsRef<str>>(&mut self, args: &[A]) -> io::Result<()> {
        let mut bytes = Vec::new();
        encode(args, &mut bytes);
        self.stream.write_all(&bytes)
    }

    /// A request in one line, its words apart by spaces.
    pub fn say(&mut self, line: &str) -> io::Result<Value> {
        let words: Vec<&str> = line.split(' ').collect();
        self.call(&words)
    }

    /// As `say`; an error reply is an error.
    pub fn must(&mut self, line: &str) -> io::Result<Value> {
        match self.say(line)? {
            Value::Error(error) => Err(Error::other(format!("{line}: {error}"))),
            value => Ok(value),
        }
    }

    /// The next reply or push.
    pub fn next(&mut self) -> io::Result<Value> {
        loop {
            let parsed = parse(&self.received).map_err(Error::other)?;
            if let Some((value, taken)) = parsed {
                self.received.drain(..taken);
                return Ok(value);
            }
            let mut chunk = [0; 16384];
            match self.stream.read(&mut chunk)? {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                got => self.received.extend(&chunk[..got]),
            }
        }
    }

    /// One section of INFO as lines of name and value.
    pub fn info(&mut self, section: &str) -> io::Result<Vec<(String, String)>> {
        let reply = self.must(&format!("INFO {section}"))?;
        Ok(fields(reply.text().unwrap_or_default()))
    }

    pub fn info_field(&mut self, section: &str, name: &str) -> io::Result<Option<String>> {
        let mut all = self.info(section)?.into_iter();
        Ok(all.find_map(|(found, value)| (found == name).then_some(value)))
    }
}

pub fn fields(info: &str) -> Vec<(String, String)> {
    let pairs = info.lines().filter_map(|line| line.split_once(':'));
    pairs
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

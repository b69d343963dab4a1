//! As much of the server's protocol (RESP2) as a benchmark needs: commands
//! out, and replies told apart without being taken to pieces.

use std::io::{self, ErrorKind, Read};

use super::Outcome;

/// A command as the bytes to send.
pub fn command(parts: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", parts.len()).into_bytes();
    for part in parts {
        bytes.extend_from_slice(format!("${}\r\n{part}\r\n", part.len()).as_bytes());
    }
    bytes
}

/// The number in an integer reply.
pub fn integer(reply: &[u8]) -> Outcome<i64> {
    let text = std::str::from_utf8(reply)?;
    match text.strip_prefix(':') {
        Some(number) => Ok(number.trim_end().parse()?),
        None => Err(format!("expected an integer, the server sent {text:?}").into()),
    }
}

/// What a reply must look like for the measurement to count.
#[derive(Clone, Copy, Debug)]
pub enum Expect {
    /// Any integer.
    Integer,
    /// A string that is there.
    Bulk,
    /// These bytes and no others.
    Exactly(&'static str),
}

impl Expect {
    /// Fails with both texts when `reply` is of another kind.
    pub fn check(self, reply: &[u8]) -> Outcome<()> {
        let fits = match self {
            Expect::Integer => reply.starts_with(b":"),
            Expect::Bulk => reply.starts_with(b"$") && !reply.starts_with(b"$-"),
            Expect::Exactly(text) => reply == text.as_bytes(),
        };
        if fits {
            return Ok(());
        }
        let sent = String::from_utf8_lossy(reply);
        Err(format!("expected {self:?}, the server sent {sent:?}").into())
    }
}

/// Bytes received, cut into replies.
pub struct Replies {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl Replies {
    /// Room for `bytes` at first; a reply that needs more gets it.
    pub fn with_room_for(bytes: usize) -> Self {
        Replies {
            buffer: vec![0; bytes],
            start: 0,
            end: 0,
        }
    }

    /// One read from `source`; an end of file is an error.
    pub fn fill(&mut self, source: &mut impl Read) -> io::Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.end == self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        match source.read(&mut self.buffer[self.end..])? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            count => {
                self.end += count;
                Ok(())
            }
        }
    }

    /// Whether a whole reply is here.
    pub fn ready(&self) -> Outcome<bool> {
        Ok(reply_length(&self.buffer[self.start..self.end])?.is_some())
    }

    /// The next whole reply, if there is one. An error reply is an error.
    pub fn next(&mut self) -> Outcome<Option<&[u8]>> {
        let waiting = &self.buffer[self.start..self.end];
        let Some(length) = reply_length(waiting)? else {
            return Ok(None);
        };
        let reply = self.start..self.start + length;
        self.start = reply.end;
        Ok(Some(&self.buffer[reply]))
    }
}

/// The length of the first reply in `bytes`, if all of it is there.
fn reply_length(bytes: &[u8]) -> Outcome<Option<usize>> {
    let Some(line_feed) = bytes.iter().position(|&byte| byte == b'\n') else {
        return Ok(None);
    };
    let line = line_feed + 1;
    let length = match bytes[0] {
        b':' | b'+' => line,
        b'$' => match std::str::from_utf8(&bytes[1..line - 2])?.parse::<usize>() {
            Ok(bulk) => line + bulk + 2,
            Err(_) => line, // the null, $-1
        },
        _ => {
            let text = String::from_utf8_lossy(&bytes[..line]);
            return Err(format!("the server sent {:?}", text.trim_end()).into());
        }
    };
    Ok((length <= bytes.len()).then_some(length))
}

//! As much of the server's protocol (RESP2 and RESP3) as a benchmark needs: commands
//! out, and replies told apart, and taken to pieces only where somebody asks for that.

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
        loop {
            match source.read(&mut self.buffer[self.end..]) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    self.end += count;
                    return Ok(());
                }
                // With a time-out also by a machine that was stopped for a while.
                Err(error) if error.kind() == ErrorKind::Interrupted => (),
                Err(error) => return Err(error),
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

    /// The error that comes next, whole, for whom it is a reply like others.
    pub fn next_error(&mut self) -> Option<&[u8]> {
        let waiting = &self.buffer[self.start..self.end];
        let length = line_length(waiting).filter(|_| waiting[0] == b'-')?;
        let error = self.start..self.start + length;
        self.start = error.end;
        Some(&self.buffer[error])
    }
}

/// The length of the first reply in `bytes`, if all of it is there. At the top of one an
/// error is an error.
fn reply_length(bytes: &[u8]) -> Outcome<Option<usize>> {
    if let (Some(b'-'), Some(line)) = (bytes.first(), line_length(bytes)) {
        return Err(unexpected(&bytes[..line]));
    }
    value_length(bytes)
}

/// The length of the first value, with all that it is made of.
fn value_length(bytes: &[u8]) -> Outcome<Option<usize>> {
    let Some(line) = line_length(bytes) else {
        return Ok(None);
    };
    let length = match bytes[0] {
        b':' | b'+' | b'-' | b'_' | b'#' | b',' | b'(' => line,
        b'$' | b'=' => match count(&bytes[..line]) {
            Ok(bulk) => line + bulk + 2,
            Err(_) => line, // the null, $-1
        },
        b'*' | b'>' | b'~' | b'%' => {
            let mut end = line;
            for _ in 0..members(&bytes[..line]) {
                match value_length(&bytes[end..])? {
                    Some(length) => end += length,
                    None => return Ok(None),
                }
            }
            end
        }
        _ => return Err(unexpected(&bytes[..line])),
    };
    Ok((length <= bytes.len()).then_some(length))
}

/// The first line with its end.
fn line_length(bytes: &[u8]) -> Option<usize> {
    let line_feed = bytes.iter().position(|&byte| byte == b'\n')?;
    Some(line_feed + 1)
}

/// The number in a line such as `$12`.
fn count(line: &[u8]) -> Outcome<usize> {
    Ok(std::str::from_utf8(&line[1..])?.trim_end().parse()?)
}

/// Of how many values the one that this line begins is made; none: the null, *-1.
fn members(line: &[u8]) -> usize {
    let of_each = if line.starts_with(b"%") { 2 } else { 1 };
    count(line).unwrap_or_default() * of_each
}

fn unexpected(bytes: &[u8]) -> Box<dyn std::error::Error + Send + Sync> {
    let text = String::from_utf8_lossy(bytes);
    format!("the server sent {:?}", text.trim_end()).into()
}

/// What an array, a map or a push is made of.
pub fn parts(reply: &[u8]) -> Outcome<Vec<&[u8]>> {
    let line = line_length(reply).filter(|_| b"*>~%".contains(&reply[0]));
    let line = line.ok_or_else(|| unexpected(reply))?;
    let mut parts = Vec::with_capacity(members(&reply[..line]));
    let mut rest = &reply[line..];
    for _ in 0..members(&reply[..line]) {
        let length = value_length(rest)?.ok_or_else(|| unexpected(reply))?;
        let (part, behind) = rest.split_at(length);
        parts.push(part);
        rest = behind;
    }
    Ok(parts)
}

/// The text of a string that is there.
pub fn bulk(reply: &[u8]) -> Outcome<&str> {
    Expect::Bulk.check(reply)?;
    let line = line_length(reply).ok_or_else(|| unexpected(reply))?;
    Ok(std::str::from_utf8(&reply[line..reply.len() - 2])?)
}

//! One connection: bytes out, whole replies in.

use std::io::Write;
use std::net::TcpStream;
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

use super::resp::Replies;
use super::{command, Outcome};

/// A server that says nothing for this long has hung.
const PATIENCE: Duration = Duration::from_secs(30);

/// A blocking connection without delays of its own.
pub struct Connection {
    stream: TcpStream,
    replies: Replies,
}

impl Connection {
    /// Connects to a server on this machine; `room` bytes for replies.
    pub fn open(port: u16, room: usize) -> Outcome<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Connection {
            stream,
            replies: Replies::with_room_for(room),
        })
    }

    /// What closes it while another thread reads.
    pub fn closer(&self) -> Outcome<TcpStream> {
        Ok(self.stream.try_clone()?)
    }

    /// Sends prepared bytes.
    pub fn send(&mut self, bytes: &[u8]) -> Outcome<()> {
        Ok(self.stream.write_all(bytes)?)
    }

    /// Waits for the next reply.
    pub fn reply(&mut self) -> Outcome<&[u8]> {
        // Looked at twice, because a borrow that may be returned lasts to the end.
        while !self.replies.ready()? {
            self.replies.fill(&mut self.stream)?;
        }
        Ok(self.replies.next()?.unwrap_or_default())
    }

    /// The error for which [`Self::reply`] failed, if it was one: what comes behind it can be
    /// had again.
    pub fn refusal(&mut self) -> Option<&[u8]> {
        self.replies.next_error()
    }

    /// Sends prepared bytes and waits for one reply.
    pub fn exchange(&mut self, bytes: &[u8]) -> Outcome<&[u8]> {
        self.send(bytes)?;
        self.reply()
    }

    /// Sends a command and waits for its reply.
    pub fn call(&mut self, parts: &[&str]) -> Outcome<&[u8]> {
        self.exchange(&command(parts))
    }

    /// Sends a command and gives its reply as text.
    pub fn text(&mut self, parts: &[&str]) -> Outcome<String> {
        Ok(String::from_utf8_lossy(self.call(parts)?).into_owned())
    }

    /// A line of `INFO section`, such as `used_memory`.
    pub fn info(&mut self, section: &str, field: &str) -> Outcome<Option<String>> {
        let text = self.text(&["INFO", section])?;
        let value = text.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            (name == field).then(|| value.trim().to_owned())
        });
        Ok(value)
    }

    /// A number from `INFO section`.
    pub fn info_number(&mut self, section: &str, field: &str) -> Outcome<f64> {
        match self.info(section, field)? {
            Some(value) => Ok(value.parse()?),
            None => Err(format!("INFO {section} has no {field}").into()),
        }
    }

    /// Seconds of processor time that the server has used so far.
    pub fn server_cpu(&mut self) -> Outcome<f64> {
        let [user, kernel] = self.server_cpu_parts()?;
        Ok(user + kernel)
    }

    /// The same, its own and the kernel's for it.
    pub fn server_cpu_parts(&mut self) -> Outcome<[f64; 2]> {
        let text = self.text(&["INFO", "cpu"])?;
        let seconds = |field: &str| {
            let mut values = text.lines().filter_map(|line| line.strip_prefix(field));
            values.next().map_or(Ok(0.0), |value| value.trim().parse())
        };
        Ok([seconds("used_cpu_user:")?, seconds("used_cpu_sys:")?])
    }

    /// One read; blocks when nothing has come.
    pub fn receive(&mut self) -> Outcome<()> {
        Ok(self.replies.fill(&mut self.stream)?)
    }

    /// The next reply that has been received already.
    pub fn received(&mut self) -> Outcome<Option<&[u8]>> {
        self.replies.next()
    }
}

impl AsRawFd for Connection {
    fn as_raw_fd(&self) -> RawFd {
        self.stream.as_raw_fd()
    }
}

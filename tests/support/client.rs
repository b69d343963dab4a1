//! A client that writes exactly the bytes that it is given and never waits for a
//! reply unasked, so that tests can pipeline and leave requests blocked.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use redis::{PushKind, Value};

use super::{resp, Ask, Request, BOUND};

/// What the server sends unasked: what it is, and the rest.
pub type Push = (PushKind, Vec<Value>);

pub struct RawClient {
    stream: TcpStream,
    received: Vec<u8>,
    /// What the server sent unasked, where that is kept apart from replies.
    pushes: Option<VecDeque<Push>>,
}

enum Heard {
    Value(Value),
    Nothing,
    Closed,
}

impl RawClient {
    /// To the server on this port of this machine.
    pub fn to(port: u16) -> io::Result<Self> {
        Self::at("127.0.0.1", port)
    }

    /// The same by another address.
    pub fn at(host: &str, port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect((host, port))?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            received: Vec::new(),
            pushes: None,
        })
    }

    /// Sends a request and does not wait for its reply.
    #[track_caller]
    pub fn send<R: Request + ?Sized>(&mut self, request: &R) {
        self.send_bytes(&request.encoded());
    }

    /// Sends requests in one write.
    #[track_caller]
    pub fn send_all<R: Request>(&mut self, requests: &[R]) {
        let bytes: Vec<u8> = requests.iter().flat_map(Request::encoded).collect();
        self.send_bytes(&bytes);
    }

    #[track_caller]
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the server reads");
    }

    /// The next reply; panics when none comes within [`BOUND`].
    #[track_caller]
    pub fn read(&mut self) -> Value {
        match self.read_within(BOUND) {
            Some(value) => value,
            None => panic!("no reply within {BOUND:?}"),
        }
    }

    /// The next `count` replies.
    #[track_caller]
    pub fn read_many(&mut self, count: usize) -> Vec<Value> {
        (0..count).map(|_| self.read()).collect()
    }

    /// The next reply, if one comes within `bound`; panics when the server
    /// closes the connection.
    #[track_caller]
    pub fn read_within(&mut self, bound: Duration) -> Option<Value> {
        match self.hear(bound) {
            Heard::Value(value) => Some(value),
            Heard::Nothing => None,
            Heard::Closed => panic!("the server closed the connection"),
        }
    }

    /// From now on what the server sends unasked is no reply: [`Self::push_within`].
    pub fn keep_pushes_apart(&mut self) {
        self.pushes.get_or_insert_default();
    }

    /// The next push, if one comes within `bound` and before a reply does.
    #[track_caller]
    pub fn push_within(&mut self, bound: Duration) -> Option<Push> {
        let kept = self.pushes.as_mut().expect("pushes are kept apart");
        if let Some(push) = kept.pop_front() {
            return Some(push);
        }
        match self.hear_any(bound) {
            Heard::Value(Value::Push { kind, data }) => Some((kind, data)),
            Heard::Value(other) => panic!("a reply that nobody read: {other:?}"),
            Heard::Nothing => None,
            Heard::Closed => panic!("the server closed the connection"),
        }
    }

    /// What has come already, if anything.
    #[track_caller]
    pub fn heard(&mut self) -> Option<Value> {
        self.read_within(Duration::from_millis(2))
    }

    /// Whether the server closes the connection within [`BOUND`]; replies that
    /// come before that are dropped.
    pub fn is_closed(&mut self) -> bool {
        loop {
            match self.hear(BOUND) {
                Heard::Value(_) => (),
                Heard::Nothing => return false,
                Heard::Closed => return true,
            }
        }
    }

    /// Whether the server has closed the connection, as far as can be seen in so
    /// many ms; replies that come before that are dropped.
    pub fn is_closed_within(&mut self, ms: u64) -> bool {
        let end = Instant::now() + Duration::from_millis(ms);
        loop {
            match self.hear(end.saturating_duration_since(Instant::now())) {
                Heard::Value(_) => (),
                Heard::Nothing => return false,
                Heard::Closed => return true,
            }
        }
    }

    /// Closes the connection now, whatever is outstanding.
    pub fn close(self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    /// Says that nothing more will be sent, and reads on.
    pub fn close_half(&self) {
        self.stream.shutdown(Shutdown::Write).expect("shutdown");
    }

    /// Closes the connection with a reset instead of a farewell.
    pub fn reset(self) {
        let linger = libc::linger {
            l_onoff: 1,
            l_linger: 0,
        };
        // SAFETY: the option's value is a linger of that size, read and no more.
        let set = unsafe {
            libc::setsockopt(
                self.stream.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_LINGER,
                std::ptr::from_ref(&linger).cast(),
                size_of::<libc::linger>() as libc::socklen_t,
            )
        };
        assert_eq!(set, 0, "{}", io::Error::last_os_error());
    }

    /// What the server calls this connection. Asks it, so no request may be
    /// outstanding.
    #[track_caller]
    pub fn client_id(&mut self) -> i64 {
        self.int("CLIENT ID")
    }

    /// The next that is no push, if these are kept apart.
    fn hear(&mut self, bound: Duration) -> Heard {
        let end = Instant::now() + bound;
        loop {
            let heard = self.hear_any(end.saturating_duration_since(Instant::now()));
            match (&mut self.pushes, heard) {
                (Some(pushes), Heard::Value(Value::Push { kind, data })) => {
                    pushes.push_back((kind, data));
                }
                (_, heard) => return heard,
            }
        }
    }

    fn hear_any(&mut self, bound: Duration) -> Heard {
        let end = Instant::now() + bound;
        let mut is_first = true;
        loop {
            if let Some(length) = resp::first_value(&self.received) {
                let bytes: Vec<u8> = self.received.drain(..length).collect();
                return Heard::Value(redis::parse_redis_value(&bytes).expect("RESP"));
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() && !is_first {
                return Heard::Nothing;
            }
            // What has come already is read, however short the bound.
            let left = left.max(Duration::from_millis(1));
            is_first = false;
            self.stream.set_read_timeout(Some(left)).expect("time-out");
            let mut chunk = [0; 16 * 1024];
            match self.stream.read(&mut chunk) {
                Ok(0) => return Heard::Closed,
                Ok(count) => self.received.extend(&chunk[..count]),
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => (),
                    ErrorKind::ConnectionReset => return Heard::Closed,
                    _ => panic!("read: {error}"),
                },
            }
        }
    }
}

//! The one way to speak to a server: a request, and the reply that is expected of it.

use std::collections::BTreeMap;

use redis::Value;

use super::reply::{code, error, list, map, pong, text, token};
use super::{resp, RawClient};

/// A request: a line of words between blanks, or its arguments, which are any bytes.
pub trait Request {
    fn args(&self) -> Vec<Vec<u8>>;

    /// The request as the server reads it.
    fn encoded(&self) -> Vec<u8> {
        resp::encode(&self.args())
    }

    fn shown(&self) -> String {
        let args = self.args();
        let words: Vec<_> = args
            .iter()
            .map(|arg| arg.escape_ascii().to_string())
            .collect();
        words.join(" ")
    }
}

impl Request for str {
    fn args(&self) -> Vec<Vec<u8>> {
        self.split_whitespace().map(Into::into).collect()
    }
}

impl Request for String {
    fn args(&self) -> Vec<Vec<u8>> {
        self.as_str().args()
    }
}

impl<A: AsRef<[u8]>> Request for [A] {
    fn args(&self) -> Vec<Vec<u8>> {
        self.iter().map(|arg| arg.as_ref().to_vec()).collect()
    }
}

impl<A: AsRef<[u8]>, const N: usize> Request for [A; N] {
    fn args(&self) -> Vec<Vec<u8>> {
        self.as_slice().args()
    }
}

impl<A: AsRef<[u8]>> Request for Vec<A> {
    fn args(&self) -> Vec<Vec<u8>> {
        self.as_slice().args()
    }
}

impl<R: Request + ?Sized> Request for &R {
    fn args(&self) -> Vec<Vec<u8>> {
        (**self).args()
    }
}

/// Whoever can be asked. All but `ask` say what the reply has to be, and panic at another.
pub trait Ask {
    /// Sends a request and gives its reply; error replies are values too.
    #[track_caller]
    fn ask<R: Request + ?Sized>(&mut self, request: &R) -> Value;

    #[track_caller]
    fn int<R: Request + ?Sized>(&mut self, request: &R) -> i64 {
        match self.ask(request) {
            Value::Int(number) => number,
            other => panic!("{}: {other:?}", request.shown()),
        }
    }

    /// A grant: its token.
    #[track_caller]
    fn token<R: Request + ?Sized>(&mut self, request: &R) -> i64 {
        token(self.ask(request))
    }

    #[track_caller]
    fn text<R: Request + ?Sized>(&mut self, request: &R) -> String {
        text(self.ask(request))
    }

    #[track_caller]
    fn texts<R: Request + ?Sized>(&mut self, request: &R) -> Vec<String> {
        self.list(request).into_iter().map(text).collect()
    }

    #[track_caller]
    fn list<R: Request + ?Sized>(&mut self, request: &R) -> Vec<Value> {
        list(self.ask(request))
    }

    #[track_caller]
    fn map<R: Request + ?Sized>(&mut self, request: &R) -> BTreeMap<String, Value> {
        map(self.ask(request))
    }

    #[track_caller]
    fn ok<R: Request + ?Sized>(&mut self, request: &R) {
        assert_eq!(self.ask(request), Value::Okay, "{}", request.shown());
    }

    /// A connection that listens is closed when more bytes than that wait to be sent to it.
    #[track_caller]
    fn limit_listeners(&mut self, bytes: usize) {
        let limit = format!("pubsub {bytes} 0 0");
        self.ok(&["CONFIG", "SET", "client-output-buffer-limit", &limit]);
    }

    /// Whether the reply is null, which it is or an integer.
    #[track_caller]
    fn refused<R: Request + ?Sized>(&mut self, request: &R) -> bool {
        match self.ask(request) {
            Value::Nil => true,
            Value::Int(_) => false,
            other => panic!("{}: {other:?}", request.shown()),
        }
    }

    /// The line of the error.
    #[track_caller]
    fn error<R: Request + ?Sized>(&mut self, request: &R) -> String {
        match self.ask(request) {
            reply @ Value::ServerError(_) => error(reply),
            other => panic!("{}: {other:?}", request.shown()),
        }
    }

    /// The first word of the error.
    #[track_caller]
    fn code<R: Request + ?Sized>(&mut self, request: &R) -> String {
        code(&self.ask(request))
    }
}

impl Ask for RawClient {
    #[track_caller]
    fn ask<R: Request + ?Sized>(&mut self, request: &R) -> Value {
        self.send(request);
        self.read()
    }
}

impl RawClient {
    /// Sends requests in one write and gives their replies.
    #[track_caller]
    pub fn ask_all<R: Request>(&mut self, requests: &[R]) -> Vec<Value> {
        self.send_all(requests);
        self.read_many(requests.len())
    }

    /// The same where none may fail.
    #[track_caller]
    pub fn succeed<R: Request>(&mut self, requests: &[R]) -> Vec<Value> {
        let replies = self.ask_all(requests);
        let failed = |reply: &Value| matches!(reply, Value::ServerError(_));
        assert!(!replies.iter().any(failed), "{replies:?}");
        replies
    }

    /// The connection is open, and the next reply is that to the next request.
    #[track_caller]
    pub fn in_step(&mut self) {
        assert_eq!(self.ask("PING"), pong());
    }
}

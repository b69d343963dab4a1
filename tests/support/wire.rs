//! What a server answers, byte for byte.

use std::io::{Read, Write};
use std::net::TcpStream;

use super::ask::Request;
use super::{Server, BOUND};

/// A client that sees the very bytes of each reply.
pub struct Wire(TcpStream);

impl Wire {
    pub fn connect(server: &Server) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", server.port())).expect("connect");
        stream.set_read_timeout(Some(BOUND)).expect("time-out");
        Self(stream)
    }

    /// The same for a client that speaks RESP3.
    pub fn connect_resp3(server: &Server) -> Self {
        let mut wire = Self::connect(server);
        let hello = wire.exact("HELLO 3");
        assert!(hello.starts_with(b"%"), "{hello:?}");
        wire
    }

    /// All bytes that a request is answered with.
    #[track_caller]
    pub fn exact<R: Request + ?Sized>(&mut self, request: &R) -> Vec<u8> {
        self.exact_to(request.encoded())
    }

    /// The same as text, and for several requests, one a line.
    #[track_caller]
    pub fn exact_text(&mut self, lines: &str) -> String {
        let reply = self.exact_to(lines.lines().flat_map(Request::encoded).collect());
        String::from_utf8(reply).expect("text")
    }

    #[track_caller]
    fn exact_to(&mut self, mut request: Vec<u8>) -> Vec<u8> {
        request.extend(["ECHO", "that was all of the reply"].encoded());
        self.0.write_all(&request).expect("the server reads");
        let end = b"$25\r\nthat was all of the reply\r\n";
        let mut reply = Vec::new();
        while !reply.ends_with(end) {
            let mut chunk = [0; 4096];
            let count = self.0.read(&mut chunk).expect("a reply in time");
            assert_ne!(count, 0, "closed after {reply:?}");
            reply.extend(&chunk[..count]);
        }
        reply.truncate(reply.len() - end.len());
        reply
    }
}

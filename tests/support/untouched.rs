//! A lock that refused requests must not touch.

use redis::Value;

use super::{Ask, Listener, RawClient, Request, Server};

/// A server with `job` held by alice, whose errors must leave no trace.
pub struct Untouched {
    pub server: Server,
    pub client: RawClient,
    events: Listener,
    before: ([Value; 3], u64),
}

impl Untouched {
    pub fn new() -> Self {
        let server = Server::start();
        let mut client = server.raw();
        client.int("RLOCK.ACQUIRE job alice 3600000");
        client.int("RLOCK.ACQUIRE job alice 3600000");
        let events = Listener::keyspace(&server, 0);
        let before = (client.state(b"job"), client.changes());
        Self {
            server,
            client,
            events,
            before,
        }
    }

    #[track_caller]
    pub fn refuses<R: Request + ?Sized>(&mut self, request: &R, line: &str) {
        assert_eq!(self.client.error(request), line, "{}", request.shown());
    }
}

impl Drop for Untouched {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let after = (self.client.state(b"job"), self.client.changes());
        assert_eq!(after, self.before);
        assert_eq!(self.client.int("DBSIZE"), 1);
        assert_eq!(self.events.events(), []);
        self.server.alive();
    }
}

//! Who takes a lock, and who holds one with WATCHDOG.

use super::reply::{int, token};
use super::{Ask, RawClient, Server};

/// A lease that no test lives to see the end of, ms.
pub const LONG: i64 = 100_000;

impl RawClient {
    /// Takes a plain lock with a long lease: its token.
    #[track_caller]
    pub fn take(&mut self, key: &str, owner: &str) -> i64 {
        self.token(&format!("RLOCK.ACQUIRE {key} {owner} {LONG}"))
    }

    /// Takes a read lock with a long lease: its token.
    #[track_caller]
    pub fn take_read(&mut self, key: &str, owner: &str) -> i64 {
        self.token(&format!("RLOCK.ACQUIRE {key} {owner} {LONG} READ"))
    }

    /// Takes the write lock with a long lease: its token.
    #[track_caller]
    pub fn take_write(&mut self, key: &str, owner: &str) -> i64 {
        self.token(&format!("RLOCK.ACQUIRE {key} {owner} {LONG} WRITE"))
    }

    /// Releases the last hold of a plain lock.
    #[track_caller]
    pub fn release(&mut self, key: &str, owner: &str) {
        let left = self.int(&["RLOCK.RELEASE", key, owner]);
        assert_eq!(left, 0, "{key} {owner}");
    }

    /// Takes a lock as `a` with a lease that ends soon: when. In one write, so that it
    /// has not ended by then.
    #[track_caller]
    pub fn take_until(&mut self, key: &str, lease: i64) -> i64 {
        let take = format!("RLOCK.ACQUIRE {key} a {lease}");
        let mut replies = self.ask_all(&[take, format!("PEXPIRETIME {key}")]);
        let ends = int(replies.remove(1));
        token(replies.remove(0));
        ends
    }
}

/// A connection that holds a lock with WATCHDOG.
pub struct Bound {
    pub client: RawClient,
    pub id: i64,
    pub token: i64,
}

impl Bound {
    /// Holds `key` as `owner` with a long lease: only its close frees it in time.
    #[track_caller]
    pub fn new(server: &Server, key: &str, owner: &str) -> Self {
        Self::with(server, &format!("{key} {owner} {LONG}"))
    }

    /// Holds what these arguments to RLOCK.ACQUIRE, with WATCHDOG added, give.
    #[track_caller]
    pub fn with(server: &Server, args: &str) -> Self {
        Self::by(server, &format!("RLOCK.ACQUIRE {args} WATCHDOG"))
    }

    /// Holds what this request gives.
    #[track_caller]
    pub fn by(server: &Server, line: &str) -> Self {
        let mut client = server.raw();
        let id = client.client_id();
        let token = client.token(line);
        Self { client, id, token }
    }
}

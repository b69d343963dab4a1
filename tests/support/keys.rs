//! What is in the keyspace: the hashes of locks, and when their keys end.

use redis::Value;

use super::{Ask, RawClient};

/// The key that holds a reader's lease for its hold of this number, from 1.
pub fn lease_key(key: &str, owner: &str, number: usize) -> String {
    let name = match key.contains('{') {
        true => key.to_owned(),
        false => format!("{{{key}}}"),
    };
    format!("{name}:{owner}:rwlock_timeout:{number}")
}

impl RawClient {
    /// The hash of a lock as it is: `field=value`, in order of the fields, between
    /// blanks. Empty when there is no such key.
    #[track_caller]
    pub fn hash(&mut self, key: &str) -> String {
        let flat = self.texts(&["HGETALL", key]);
        let mut fields: Vec<String> = flat.chunks(2).map(|pair| pair.join("=")).collect();
        fields.sort();
        fields.join(" ")
    }

    /// What the key is and when it ends; two are equal only if nobody touched it.
    #[track_caller]
    pub fn state(&mut self, key: &[u8]) -> [Value; 3] {
        [b"TYPE".as_slice(), b"DUMP", b"PEXPIRETIME"].map(|command| self.ask(&[command, key]))
    }

    /// When the key ends, ms since 1970; -1: never, -2: it does not exist.
    #[track_caller]
    pub fn deadline(&mut self, key: &str) -> i64 {
        self.int(&["PEXPIRETIME", key])
    }

    /// When the lease of a lock ends, which has one.
    ///
    /// The key lives through that millisecond, as rlock sees it; but Redis 8.0's own
    /// expiry cycle, when it comes first, takes it in that very one. So "not before its
    /// deadline" is what tests may ask of all servers.
    #[track_caller]
    pub fn ends(&mut self, key: &str) -> i64 {
        let at = self.deadline(key);
        assert!(at > 0, "{key} has no lease: {at}");
        at
    }

    /// When the lease keys of a reader end, in order, up to the first that is not
    /// there; -1: never.
    #[track_caller]
    pub fn leases(&mut self, key: &str, owner: &str) -> Vec<i64> {
        let mut deadline = |number| self.deadline(&lease_key(key, owner, number));
        let all = (1..).map(&mut deadline);
        all.take_while(|deadline| *deadline != -2).collect()
    }

    /// The one deadline that all lease keys of a reader have.
    #[track_caller]
    pub fn lease(&mut self, key: &str, owner: &str) -> i64 {
        let found = self.leases(key, owner);
        let first = *found.first().expect("a lease key");
        assert!(found.iter().all(|one| *one == first), "{found:?}");
        first
    }

    /// All keys and when they end: hashes by their fields, strings by their values.
    #[track_caller]
    pub fn everything(&mut self) -> Vec<(String, String, i64)> {
        let mut keys = self.texts("KEYS *");
        keys.sort();
        keys.into_iter()
            .map(|key| {
                let content = match self.text(&["TYPE", &key]).as_str() {
                    "hash" => self.hash(&key),
                    "string" => self.text(&["GET", &key]),
                    gone => gone.to_owned(),
                };
                let deadline = self.deadline(&key);
                (key, content, deadline)
            })
            .collect()
    }

    /// How many changes the server has counted.
    #[track_caller]
    pub fn changes(&mut self) -> u64 {
        let info = self.text("INFO persistence");
        let field = "rdb_changes_since_last_save:";
        let line = info.lines().find_map(|line| line.strip_prefix(field));
        line.expect("counted").parse().expect("a number")
    }

    /// Whether a transaction that watches the key goes through after the action.
    #[track_caller]
    pub fn watched<T>(&mut self, key: &str, action: impl FnOnce() -> T) -> bool {
        self.ok(&["WATCH", key]);
        action();
        self.ok("MULTI");
        self.text("PING");
        self.ask("EXEC") != Value::Nil
    }
}

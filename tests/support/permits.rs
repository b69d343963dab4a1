//! Permits: who has how many of a lock, and until when.

use super::reply::{int, map};
use super::{eventually, Ask, RawClient, Server, Waiter, Way, LONG};

/// What RLOCK.INFO shows of them, apart from those who hold them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permits {
    pub limit: i64,
    pub asked: i64,
    pub available: i64,
}

impl RawClient {
    /// Takes permits with a long lease: the token. `share`: `LIMIT 4 PERMITS 2`.
    #[track_caller]
    pub fn take_permits(&mut self, key: &str, owner: &str, share: &str) -> i64 {
        self.token(&format!("RLOCK.ACQUIRE {key} {owner} {LONG} {share}"))
    }

    /// Gives back so many; how many the owner has left.
    #[track_caller]
    pub fn give_back(&mut self, key: &str, owner: &str, permits: i64) -> i64 {
        self.int(&format!("RLOCK.RELEASE {key} {owner} PERMITS {permits}"))
    }

    /// The hash of a lock without the deadlines: `a=2 b=1 mode=permits 4 4 3`.
    #[track_caller]
    pub fn permits(&mut self, key: &str) -> String {
        without_deadlines(&self.hash(key))
    }

    /// Waits until the hash is so.
    #[track_caller]
    pub fn permits_become(&mut self, key: &str, hash: &str) {
        let mut last = String::new();
        let what = format!("{key} is {hash}");
        eventually(&what, || {
            let found = self.permits(key);
            if found != last {
                println!("{key} is {found}");
                last = found;
            }
            last == hash
        });
    }

    /// Until when an owner has its permits, ms since 1970.
    #[track_caller]
    pub fn permits_end(&mut self, key: &str, owner: &str) -> i64 {
        let field = self.text(&["HGET", key, owner]);
        let (_, ends) = field.split_once('@').expect("a deadline");
        ends.parse().expect("ms")
    }

    #[track_caller]
    pub fn pool(&mut self, key: &str) -> Permits {
        let told = map(self.ask(&["RLOCK.INFO", key]));
        let number = |name: &str| int(told[name].clone());
        Permits {
            limit: number("limit"),
            asked: number("asked-limit"),
            available: number("available"),
        }
    }
}

/// A hash of permits as one line, without the deadlines in it.
pub fn without_deadlines(hash: &str) -> String {
    let words = hash.split(' ');
    let words = words.map(|word| word.split_once('@').map_or(word, |(word, _)| word));
    words.collect::<Vec<_>>().join(" ")
}

impl Way {
    /// Waits for permits, for ever, with a long lease.
    #[track_caller]
    pub fn permits(self, server: &Server, key: &str, owner: &str, share: &str) -> Waiter {
        self.with(server, &format!("{key} {owner} {LONG} {share} BLOCK 0"))
    }
}

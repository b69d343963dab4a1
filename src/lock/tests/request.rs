//! An ACQUIRE or MACQUIRE, in short.

use crate::lock::{Mode, Once, Share};

/// An ACQUIRE; on the key `k` of database 0 for a second, unless it says else. Several
/// names are those of a MACQUIRE.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub db: i32,
    pub name: &'a str,
    pub owner: &'a str,
    pub mode: Mode,
    pub share: Share,
    pub lease: i64,
    pub once: Once,
    pub watch: bool,
    pub block: Option<i64>,
    /// It waits by QUEUE.
    pub queue: bool,
    /// NOTIFY, on the connection's own channel.
    pub tag: Option<&'a str>,
    /// With WANTED.
    pub wants_hints: bool,
    /// The number of its connection; each has its own if none is given.
    pub client: Option<u64>,
}

pub fn by(owner: &str) -> Request<'_> {
    Request {
        db: 0,
        name: "k",
        owner,
        mode: Mode::Exclusive,
        share: Share::HOLD,
        lease: 1000,
        once: Once::Nests,
        watch: false,
        block: None,
        queue: false,
        tag: None,
        wants_hints: false,
        client: None,
    }
}

impl<'a> Request<'a> {
    pub fn on(self, name: &'a str) -> Self {
        Self { name, ..self }
    }

    pub fn lease(self, lease: i64) -> Self {
        Self { lease, ..self }
    }

    pub fn read(self) -> Self {
        let mode = Mode::Read;
        Self { mode, ..self }
    }

    pub fn write(self) -> Self {
        let mode = Mode::Write;
        Self { mode, ..self }
    }

    /// So many permits, of so many that there are.
    pub fn permits(self, count: u32, limit: u32) -> Self {
        let (mode, share) = (Mode::Permits, Share::new(count, limit));
        Self {
            mode,
            share,
            ..self
        }
    }

    pub fn watched(self) -> Self {
        let watch = true;
        Self { watch, ..self }
    }

    /// As the owner `*` asks.
    pub fn strictly(self) -> Self {
        Self {
            once: Once::IsRefused,
            ..self
        }
    }

    pub fn once(self) -> Self {
        Self {
            once: Once::IsTheSame,
            ..self
        }
    }

    pub fn from(self, client: u64) -> Self {
        Self {
            client: Some(client),
            ..self
        }
    }

    pub fn tag(self, tag: &'a str) -> Self {
        Self {
            tag: Some(tag),
            ..self
        }
    }

    pub fn wants_hints(self) -> Self {
        let wants_hints = true;
        Self {
            wants_hints,
            ..self
        }
    }

    pub fn queue(self, ms: i64) -> Self {
        let queue = true;
        Self { queue, ..self }.block(ms)
    }

    pub fn block(self, ms: i64) -> Self {
        Self {
            block: Some(ms),
            ..self
        }
    }
}

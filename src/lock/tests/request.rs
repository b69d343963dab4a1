//! An ACQUIRE or MACQUIRE, in short.

use crate::lock::Mode;

/// An ACQUIRE; on the key `k` of database 0 for a second, unless it says else. Several
/// names are those of a MACQUIRE.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub db: i32,
    pub name: &'a str,
    pub owner: &'a str,
    pub mode: Mode,
    pub lease: i64,
    pub once: bool,
    pub watch: bool,
    pub block: Option<i64>,
}

pub fn by(owner: &str) -> Request<'_> {
    Request {
        db: 0,
        name: "k",
        owner,
        mode: Mode::Exclusive,
        lease: 1000,
        once: false,
        watch: false,
        block: None,
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

    pub fn watched(self) -> Self {
        let watch = true;
        Self { watch, ..self }
    }

    pub fn once(self) -> Self {
        Self { once: true, ..self }
    }

    pub fn block(self, ms: i64) -> Self {
        Self {
            block: Some(ms),
            ..self
        }
    }
}

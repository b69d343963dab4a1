//! As `cluster`.

pub use super::cluster::*;
use super::{Ask, Request};

impl Move {
    #[track_caller]
    pub fn call<A: AsRef<[u8]>>(&mut self, request: &[A]) -> redis::Value {
        self.ask(request)
    }
}

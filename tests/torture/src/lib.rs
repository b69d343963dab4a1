//! What the parts of the torture share: the clock, and what is recorded. Nothing
//! here knows rlock's code; the judges are built on this alone.

pub mod clock;
pub mod history;
pub mod saw;
pub mod verdict;

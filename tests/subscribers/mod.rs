//! Those who wait by subscription, as Redisson's clients do: the messages that wake them,
//! and their turn. The real Redisson is in `tests/redisson`.

mod ends;
mod fair;
mod outsider;
mod readers;
mod turns;
mod wakeup;

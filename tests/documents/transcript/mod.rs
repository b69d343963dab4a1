//! Transcripts of `redis-cli`, as pages show them, compared with a real server.
//!
//! `1> COMMAND` is said in terminal 1, and what follows is its reply. Two blanks and more
//! begin a remark. A remark that ends with `in the other terminal:` or the like says where the
//! next lines are seen, and `Ctrl-D in the other terminal` closes that one. A command without
//! a reply waits. Times, clients' ids and the ids of connections are any, and a token is any
//! number that is the same wherever the page has the same one.

mod lines;
mod play;
mod same;
mod shown;

pub use lines::{blocks, Block};
pub use play::Play;

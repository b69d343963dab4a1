//! Transcripts of `redis-cli`, as pages show them, compared with a real server.
//!
//! - `1> COMMAND` is said in terminal 1, and what follows is its reply. A command without a
//!   reply waits.
//! - Two blanks and more begin a remark. One that ends with `in the other terminal:` or the like
//!   says where the next lines are seen. `Ctrl-D in the other terminal` closes that one; what is
//!   said there next is said on a new connection. A command with `2 s later` is said after that
//!   time.
//! - Times, clients' ids and the ids of connections are any. A token is any number that is the
//!   same wherever the page has the same one. Of INFO a page may show some lines.

mod lines;
mod play;
mod same;
mod shown;

pub use lines::{blocks, Block};
pub use play::Play;

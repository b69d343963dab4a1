//! One test, done in several ways.

use std::fmt::Debug;

use super::{Ask, RawClient, Server};

/// Does this in each of the ways, on an empty server with a new connection.
#[track_caller]
pub fn each<W: Copy + Debug>(ways: &[W], run: impl Fn(W, &Server, &mut RawClient)) {
    let server = Server::start();
    for way in ways {
        println!("{way:?}");
        let mut client = server.raw();
        client.ok("FLUSHALL");
        run(*way, &server, &mut client);
    }
}

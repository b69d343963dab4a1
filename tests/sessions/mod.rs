//! Sessions: many waits and holds on one connection, which is told of each by a message.

mod again;
mod cancel;
mod closed;
mod cluster;
mod kept;
mod lost;
mod messages;
mod overflow;
mod paused;
mod rebound;
mod refused;
mod replies;
mod roles;
mod shown;
mod unobserved;
mod wanted;
mod watchdog;

use redis::Value;

use crate::support::{Ask, RawClient, Server};

/// Sends these lines, each to its client, while the process is stopped: the server reads
/// all of them in one turn of its loop.
fn in_one_turn(server: &Server, lines: &mut [(&mut RawClient, &str)]) {
    server.pause_process();
    for (client, line) in lines {
        client.send(*line);
    }
    server.resume_process();
}

/// Has a client run a command by EXEC: gives what to send for it.
fn in_exec(client: &mut RawClient, command: &str) -> &'static str {
    client.ask("MULTI");
    client.ask(command);
    "EXEC"
}

/// The reply to a command, also as the only one in an EXEC.
fn replied(client: &mut RawClient) -> Value {
    match client.read() {
        Value::Array(mut all) if all.len() == 1 => all.remove(0),
        reply => reply,
    }
}

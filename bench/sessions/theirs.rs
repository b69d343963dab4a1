//! The like of it on a server without the module.

use std::thread;
use std::time::Duration;

use super::owner;
use crate::load::{command, Connection, Expect, Granted, Load, Outcome, Server, Session};
use crate::options::Options;
use crate::waits::{beside, Waits};

/// How long a server at rest is looked at.
const REST: Duration = Duration::from_millis(500);

/// In the order of the module's.
pub fn all(options: &Options, count: usize) -> Outcome<[Waits; 6]> {
    let server = Server::start(&options.server, None)?;
    let mut control = server.connect()?;
    let mut session = Session::on(server.connect()?)?;
    let rest = || {
        beside(&server, || {
            thread::sleep(REST);
            Ok(())
        })
    };
    let push = |number| command(&["RPUSH", "queue", &owner(number)]);
    let pushes: Vec<Vec<u8>> = (0..count).map(push).collect();
    let mut pushes = Load::new(64, &pushes, &[Expect::Integer]);
    let channel = session.channel().to_owned();
    let publish = |number: usize| {
        let message = format!("granted {number} {}", 1_700_000_000_000_000 + number);
        command(&["PUBLISH", &channel, &message])
    };
    let messages: Vec<Vec<u8>> = (0..count).map(publish).collect();
    let mut pipelined = Load::new(64, &messages, &[Expect::Integer]);
    Ok([
        beside(&server, || pushes.run_once(&mut control).map(drop))?,
        beside(&server, || {
            for message in &messages {
                session.connection.send(message)?;
                hear(&mut session.connection)?;
            }
            session.connection.reply().map(drop)
        })?,
        rest()?,
        beside(&server, || pushes.run_once(&mut control).map(drop))?,
        beside(&server, || {
            thread::scope(|scope| {
                let connection = &mut session.connection;
                let listener = scope.spawn(|| (0..count).try_for_each(|_| hear(connection)));
                pipelined.run_once(&mut control)?;
                listener.join().map_err(|_| "the listener panicked")?
            })
        })?,
        rest()?,
    ])
}

/// Waits for the next message; replies to PUBLISH come in between.
fn hear(connection: &mut Connection) -> Outcome<()> {
    while Granted::read(connection.reply()?)?.is_none() {}
    Ok(())
}

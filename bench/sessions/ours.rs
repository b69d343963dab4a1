//! The waits, on servers with the module.

use std::ops::Range;
use std::thread;
use std::time::Duration;

use super::owner;
use crate::held;
use crate::load::{command, Connection, Expect, Granted, Load, Outcome, Server, Session};
use crate::options::Options;
use crate::waits::{beside, Waits};

/// Long enough for everything here.
const LEASE: &str = "600000";

/// Commands in flight where they are pipelined.
const DEPTH: usize = 64;

/// All for one lock: queued; granted and released one after the other; another connection
/// with as many closes.
pub fn one_lock(options: &Options, count: usize) -> Outcome<[Waits; 3]> {
    let server = start(options)?;
    let mut control = server.connect()?;
    control.call(&["RLOCK.ACQUIRE", "lock", "holder", LEASE])?;
    let mut session = Session::on(server.connect()?)?;
    let waits = waits(&session, 0..count, |_| "lock".to_owned());
    let queued = beside(&server, || session.queue(&waits))?;

    let release = |number| command(&["RLOCK.RELEASE", "lock", &owner(number)]);
    let releases: Vec<Vec<u8>> = (0..count).map(release).collect();
    let granted = beside(&server, || {
        control.call(&["RLOCK.RELEASE", "lock", "holder"])?;
        let mut order = Order::default();
        for release in &releases {
            order.next(&mut session.connection)?;
            session.connection.send(release)?;
        }
        Expect::Exactly(":0\r\n").check(session.connection.reply()?)
    })?;

    control.call(&["RLOCK.ACQUIRE", "lock", "holder", LEASE])?;
    let closed = close(&server, &mut control, count, |_| "lock".to_owned())?;
    Ok([queued, granted, closed])
}

/// Each for a lock of its own: queued; granted as the holder of all releases them; another
/// connection with as many closes.
pub fn many_locks(options: &Options, count: usize) -> Outcome<[Waits; 3]> {
    let server = start(options)?;
    let mut control = server.connect()?;
    held::hold(&mut control, count)?;
    let mut session = Session::on(server.connect()?)?;
    let waits = waits(&session, 0..count, held::name);
    let queued = beside(&server, || session.queue(&waits))?;

    let release = |number| command(&["RLOCK.RELEASE", &held::name(number), "holder"]);
    let releases: Vec<Vec<u8>> = (0..count).map(release).collect();
    let mut releases = Load::new(DEPTH, &releases, &[Expect::Exactly(":0\r\n")]);
    let granted = beside(&server, || {
        thread::scope(|scope| {
            let listener = scope.spawn(|| {
                let mut order = Order::default();
                (0..count).try_for_each(|_| order.next(&mut session.connection))
            });
            releases.run_once(&mut control)?;
            listener.join().map_err(|_| "the listener panicked")?
        })
    })?;

    let closed = close(&server, &mut control, count, held::name)?;
    Ok([queued, granted, closed])
}

fn start(options: &Options) -> Outcome<Server> {
    Server::start(&options.server, options.module.as_deref())
}

/// Requests that wait, by owners with these numbers.
fn waits(session: &Session, owners: Range<usize>, key: impl Fn(usize) -> String) -> Vec<Vec<u8>> {
    let numbers = owners.enumerate();
    let wait = |(tag, number)| session.wait(&key(tag), &owner(number), [LEASE, "0"], tag);
    numbers.map(wait).collect()
}

/// A connection with so many waits closes.
fn close(
    server: &Server,
    control: &mut Connection,
    count: usize,
    key: impl Fn(usize) -> String,
) -> Outcome<Waits> {
    let mut session = Session::on(server.connect()?)?;
    // Those who hold locks by now are asked for them by others.
    let waits = waits(&session, count..2 * count, key);
    session.queue(&waits)?;
    beside(server, || {
        drop(session);
        while control.info_number("rlock", "rlock_waiting")? > 0.0 {
            thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    })
}

/// Grants are to come in the order in which was queued, with tokens that rise.
#[derive(Default)]
struct Order {
    next: usize,
    token: i64,
}

impl Order {
    /// Waits for the next grant; replies to RELEASE come in between.
    fn next(&mut self, connection: &mut Connection) -> Outcome<()> {
        loop {
            let reply = connection.reply()?;
            let Some(granted) = Granted::read(reply)? else {
                Expect::Exactly(":0\r\n").check(reply)?;
                continue;
            };
            if granted.tag != self.next || granted.token <= self.token {
                let text = format!("{granted:?} came after {} grants", self.next);
                return Err(text.into());
            }
            self.next += 1;
            self.token = granted.token;
            return Ok(());
        }
    }
}

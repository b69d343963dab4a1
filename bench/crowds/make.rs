//! Crowds: n of something on one owner, key, connection or lock.

use std::time::{Duration, Instant};

use super::scene::{Scene, LONG};
use crate::load::{command, Outcome, Session};

pub type Make = fn(&mut Scene<'_>) -> Outcome<()>;

/// The lock with these numbers.
pub fn key(number: usize) -> String {
    format!("lock:{number}")
}

/// The one lock of a crowd.
pub const LOCK: &str = "lock:0";

/// So long after the crowd is there its leases or waits end: longer than it takes to come.
fn ends_in(scene: &Scene<'_>) -> (Instant, i64) {
    let ms = 3_000 + scene.n as i64 / 4;
    (Instant::now() + Duration::from_millis(ms as u64), ms)
}

fn hold_all(scene: &mut Scene<'_>) -> Outcome<()> {
    scene.each(|number| command(&["RLOCK.ACQUIRE", &key(number), "holder", LONG]))
}

pub fn hold_one(scene: &mut Scene<'_>) -> Outcome<()> {
    scene.ask(&["RLOCK.ACQUIRE", LOCK, "holder", LONG])
}

/// One owner waits for n locks.
pub fn one_owner_waits(scene: &mut Scene<'_>) -> Outcome<()> {
    hold_all(scene)?;
    scene
        .each_by_session(|session, number| session.wait(&key(number), "crowd", [LONG, "0"], number))
}

/// The same, and each waits until the same moment.
pub fn one_owner_waits_for_a_while(scene: &mut Scene<'_>) -> Outcome<()> {
    hold_all(scene)?;
    wait_for_a_while(scene, |session, number, ms| {
        session.wait(&key(number), "crowd", [LONG, ms], number)
    })
}

/// n owners wait for a lock each.
pub fn owners_wait(scene: &mut Scene<'_>) -> Outcome<()> {
    hold_all(scene)?;
    scene.each_by_session(|session, number| {
        session.wait(&key(number), &owner(number), [LONG, "0"], number)
    })
}

/// n owners wait for one lock.
pub fn all_wait_for_one(scene: &mut Scene<'_>) -> Outcome<()> {
    hold_one(scene)?;
    scene.each_by_session(|session, number| session.wait(LOCK, &owner(number), [LONG, "0"], number))
}

pub fn all_wait_for_one_for_a_while(scene: &mut Scene<'_>) -> Outcome<()> {
    hold_one(scene)?;
    wait_for_a_while(scene, |session, number, ms| {
        session.wait(LOCK, &owner(number), [LONG, ms], number)
    })
}

fn wait_for_a_while(
    scene: &mut Scene<'_>,
    wait: fn(&Session, usize, &str) -> Vec<u8>,
) -> Outcome<()> {
    let (ends, _) = ends_in(scene);
    scene.ends = ends;
    scene.each_by_session(move |session, number| {
        let left = ends.saturating_duration_since(Instant::now()).as_millis();
        wait(session, number, &left.max(1).to_string())
    })
}

/// n clients are blocked at one lock.
pub fn blocked(scene: &mut Scene<'_>) -> Outcome<()> {
    hold_one(scene)?;
    for number in 0..scene.n {
        let mut client = scene.server.connect_small()?;
        client.send(&command(&[
            "RLOCK.ACQUIRE",
            LOCK,
            &owner(number),
            LONG,
            "BLOCK",
            "0",
        ]))?;
        scene.blocked.push(client);
    }
    scene.until("rlock_waiting", scene.n)
}

pub fn owner(number: usize) -> String {
    format!("owner:{number}")
}

/// n owners read one lock.
pub fn readers(scene: &mut Scene<'_>) -> Outcome<()> {
    scene.each(|number| command(&["RLOCK.ACQUIRE", LOCK, &owner(number), LONG, "READ"]))
}

/// The same, and a connection is told of each.
pub fn readers_told(scene: &mut Scene<'_>) -> Outcome<()> {
    scene.each_by_session(|session, number| {
        told(session, &[LOCK, &owner(number), LONG, "READ"], number)
    })
}

pub fn readers_for_a_while(scene: &mut Scene<'_>) -> Outcome<()> {
    let (ends, _) = ends_in(scene);
    scene.ends = ends;
    scene.each(|number| {
        let left = ends.saturating_duration_since(Instant::now()).as_millis();
        let lease = left.max(1).to_string();
        command(&["RLOCK.ACQUIRE", LOCK, &owner(number), &lease, "READ"])
    })
}

/// n owners have a permit of one lock.
pub fn permits(scene: &mut Scene<'_>) -> Outcome<()> {
    scene.each(|number| {
        command(&[
            "RLOCK.ACQUIRE",
            LOCK,
            &owner(number),
            LONG,
            "LIMIT",
            "1000000",
        ])
    })
}

/// One owner holds a lock n times, and a connection is told of each.
pub fn nested(scene: &mut Scene<'_>) -> Outcome<()> {
    scene.each_by_session(|session, number| told(session, &[LOCK, "crowd", LONG], number))
}

/// One owner holds n locks.
pub fn holds(scene: &mut Scene<'_>) -> Outcome<()> {
    scene.each(|number| command(&["RLOCK.ACQUIRE", &key(number), "crowd", LONG]))
}

/// The same, and a connection is told of each.
pub fn holds_told(scene: &mut Scene<'_>) -> Outcome<()> {
    scene.each_by_session(|session, number| told(session, &[&key(number), "crowd", LONG], number))
}

/// The same, each as long as the connection.
pub fn holds_watched(scene: &mut Scene<'_>) -> Outcome<()> {
    scene.each_by_session(|session, number| {
        let tag = number.to_string();
        let ask = ["RLOCK.ACQUIRE", &key(number), "crowd", LONG, "NOTIFY"];
        command(&[&ask[..], &[session.channel(), &tag, "WATCHDOG"]].concat())
    })
}

pub fn holds_for_a_while(scene: &mut Scene<'_>) -> Outcome<()> {
    let (ends, _) = ends_in(scene);
    scene.ends = ends;
    scene.each(|number| {
        let left = ends.saturating_duration_since(Instant::now()).as_millis();
        command(&[
            "RLOCK.ACQUIRE",
            &key(number),
            "crowd",
            &left.max(1).to_string(),
        ])
    })
}

fn told(session: &Session, ask: &[&str], tag: usize) -> Vec<u8> {
    let tag = tag.to_string();
    command(
        &[
            &["RLOCK.ACQUIRE"],
            ask,
            &["NOTIFY", session.channel(), &tag],
        ]
        .concat(),
    )
}

/// A hash with a field `mode` and n more that are somebody's data.
pub fn fields(scene: &mut Scene<'_>) -> Outcome<()> {
    endless_fields(scene)?;
    scene.ask(&["PEXPIRE", LOCK, LONG])
}

/// The same without an end.
pub fn endless_fields(scene: &mut Scene<'_>) -> Outcome<()> {
    scene.ask(&["HSET", LOCK, "mode", "read"])?;
    scene.each(|number| command(&["HSET", LOCK, &format!("field:{number}"), "x"]))
}

/// The same where each field could be a reader's, without a lease key.
pub fn leaseless_fields(scene: &mut Scene<'_>) -> Outcome<()> {
    scene.ask(&["HSET", LOCK, "mode", "read"])?;
    scene.each(|number| command(&["HSET", LOCK, &format!("field:{number}"), "1"]))?;
    scene.ask(&["PEXPIRE", LOCK, LONG])
}

/// n hashes with a TTL: for the like, on a server without the module.
pub fn hashes(scene: &mut Scene<'_>) -> Outcome<()> {
    scene.each(|number| command(&["HSET", &key(number), "holder", "1"]))?;
    scene.each(|number| command(&["PEXPIRE", &key(number), LONG]))
}

/// A hash of n fields, and as many keys beside it, as readers have.
pub fn hash_and_keys(scene: &mut Scene<'_>) -> Outcome<()> {
    scene.each(|number| command(&["HSET", LOCK, &owner(number), "1"]))?;
    scene.each(|number| command(&["SET", &key(number + 1), "1", "PX", LONG]))
}

/// n clients who BLPOP.
pub fn poppers(scene: &mut Scene<'_>) -> Outcome<()> {
    for _ in 0..scene.n {
        let mut client = scene.server.connect_small()?;
        client.send(&command(&["BLPOP", LOCK, "0"]))?;
        scene.blocked.push(client);
    }
    crate::stalls::until_blocked(&mut scene.control, scene.n)
}

/// Nothing.
pub fn nobody(_: &mut Scene<'_>) -> Outcome<()> {
    Ok(())
}

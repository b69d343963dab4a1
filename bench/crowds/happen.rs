//! What can happen to a crowd. Each gives how many pieces that was.

use std::thread::sleep;
use std::time::{Duration, Instant};

use super::make::{key, owner, LOCK};
use super::scene::{Scene, LONG};
use crate::load::{command, Outcome, Session};
use crate::stalls::blocked;

pub type Happen = fn(&mut Scene<'_>) -> Outcome<usize>;

/// Requests of a kind, where one piece is a request.
const TIMES: usize = 20;

/// The connection of the crowd closes, and nobody waits or is watched any more.
pub fn close(scene: &mut Scene<'_>) -> Outcome<usize> {
    scene.sessions.clear();
    scene.blocked.clear();
    scene.until_none_waits()?;
    scene.until("rlock_watchdog_holds", 0)?;
    Ok(scene.n)
}

pub fn close_poppers(scene: &mut Scene<'_>) -> Outcome<usize> {
    scene.blocked.clear();
    while blocked(&mut scene.control)? > 0 {}
    Ok(scene.n)
}

/// Those who wait are called off by their own owner, one after the other.
pub fn cancel(scene: &mut Scene<'_>) -> Outcome<usize> {
    let first = scene.n / 2;
    scene.times(TIMES, |number| {
        command(&["RLOCK.CANCEL", &key(first + number), "crowd"])
    })
}

pub fn cancel_of_one_lock(scene: &mut Scene<'_>) -> Outcome<usize> {
    let first = scene.n / 2;
    scene.times(TIMES, |number| {
        command(&["RLOCK.CANCEL", LOCK, &owner(first + number)])
    })
}

/// Another waits behind the crowd.
pub fn wait_behind(scene: &mut Scene<'_>) -> Outcome<usize> {
    wait_at(scene, key)
}

/// The same at the one lock.
pub fn wait_at_one(scene: &mut Scene<'_>) -> Outcome<usize> {
    wait_at(scene, |_| LOCK.to_owned())
}

fn wait_at(scene: &mut Scene<'_>, at: fn(usize) -> String) -> Outcome<usize> {
    scene.sessions.push(Session::on(scene.server.connect()?)?);
    let session = scene.sessions.last_mut().ok_or("no session")?;
    for number in 0..TIMES {
        let of = at(number % scene.n);
        let wait = session.wait(&of, &format!("late:{number}"), [LONG, "0"], number);
        session.queue(&[wait])?;
    }
    Ok(TIMES)
}

/// The crowd's owner wants one more.
pub fn wait_more(scene: &mut Scene<'_>) -> Outcome<usize> {
    scene.times(TIMES, |number| {
        command(&["RLOCK.ACQUIRE", &format!("more:{number}"), "other", LONG])
    })?;
    let session = scene.sessions.last_mut().ok_or("no session")?;
    for number in 0..TIMES {
        let tag = scene.n + number;
        let wait = session.wait(&format!("more:{number}"), "crowd", [LONG, "0"], tag);
        session.queue(&[wait])?;
    }
    Ok(TIMES)
}

/// What the crowd waits for is released, lock by lock.
pub fn release_all(scene: &mut Scene<'_>) -> Outcome<usize> {
    scene.each(|number| command(&["RLOCK.RELEASE", &key(number), "holder"]))?;
    scene.until_none_waits()?;
    Ok(scene.n)
}

/// The one lock goes from hand to hand.
pub fn hand_over(scene: &mut Scene<'_>) -> Outcome<usize> {
    scene.ask(&["RLOCK.RELEASE", LOCK, "holder"])?;
    scene.times(TIMES, |number| {
        command(&["RLOCK.RELEASE", LOCK, &owner(number)])
    })
}

/// Waits or leases are over, all at one moment.
pub fn time_out(scene: &mut Scene<'_>) -> Outcome<usize> {
    sleep(
        scene
            .ends
            .saturating_duration_since(Instant::now())
            .saturating_sub(Duration::from_millis(100)),
    );
    scene.until_none_waits()?;
    Ok(scene.n)
}

pub fn expire(scene: &mut Scene<'_>) -> Outcome<usize> {
    sleep(
        scene
            .ends
            .saturating_duration_since(Instant::now())
            .saturating_sub(Duration::from_millis(100)),
    );
    scene.until("rlock_held", 0)?;
    Ok(scene.n)
}

pub fn flush(scene: &mut Scene<'_>) -> Outcome<usize> {
    scene.ask(&["FLUSHALL"])?;
    scene.until_none_waits()?;
    scene.rest();
    Ok(scene.n)
}

pub fn swap(scene: &mut Scene<'_>) -> Outcome<usize> {
    scene.ask(&["SWAPDB", "0", "1"])?;
    scene.rest();
    scene.rest();
    Ok(scene.n)
}

pub fn demote(scene: &mut Scene<'_>) -> Outcome<usize> {
    // Nobody is there.
    scene.ask(&["REPLICAOF", "127.0.0.1", "1"])?;
    scene.until_none_waits()?;
    scene.until("rlock_held", 0)?;
    Ok(scene.n)
}

/// The same where no module is.
pub fn demote_plain(scene: &mut Scene<'_>) -> Outcome<usize> {
    scene.ask(&["REPLICAOF", "127.0.0.1", "1"])?;
    scene.rest();
    Ok(scene.n)
}

pub fn force(scene: &mut Scene<'_>) -> Outcome<usize> {
    scene.ask(&["RLOCK.FORCE", LOCK])?;
    scene.until("rlock_held", 0)?;
    Ok(scene.n)
}

pub fn delete(scene: &mut Scene<'_>) -> Outcome<usize> {
    scene.ask(&["DEL", LOCK])?;
    scene.until("rlock_held", 0)?;
    Ok(scene.n)
}

pub fn rename(scene: &mut Scene<'_>) -> Outcome<usize> {
    scene.ask(&["RENAME", LOCK, "elsewhere"])?;
    scene.rest();
    Ok(scene.n)
}

pub fn overwrite(scene: &mut Scene<'_>) -> Outcome<usize> {
    scene.ask(&["SET", LOCK, "1"])?;
    scene.rest();
    Ok(scene.n)
}

/// DEL of a hash of n fields, and of n keys, in one command.
pub fn delete_plain(scene: &mut Scene<'_>) -> Outcome<usize> {
    let names: Vec<String> = (0..=scene.n).map(key).collect();
    let mut all = vec!["DEL"];
    all.extend(names.iter().map(String::as_str));
    scene.ask(&all)?;
    Ok(scene.n)
}

pub fn rename_plain(scene: &mut Scene<'_>) -> Outcome<usize> {
    scene.ask(&["RENAME", LOCK, "elsewhere"])?;
    Ok(scene.n)
}

/// HGETALL of a hash of n fields.
pub fn get_all(scene: &mut Scene<'_>) -> Outcome<usize> {
    scene.ask(&["HGETALL", LOCK])?;
    Ok(scene.n)
}

pub fn info(scene: &mut Scene<'_>) -> Outcome<usize> {
    scene.times(TIMES, |_| command(&["RLOCK.INFO", LOCK, "COUNT", "1"]))
}

/// The same of what is no lock.
pub fn info_refused(scene: &mut Scene<'_>) -> Outcome<usize> {
    refused(scene, &["RLOCK.INFO", LOCK, "COUNT", "1"])
}

pub fn acquire_refused(scene: &mut Scene<'_>) -> Outcome<usize> {
    refused(scene, &["RLOCK.ACQUIRE", LOCK, "another", LONG, "READ"])
}

pub fn acquire_leaseless(scene: &mut Scene<'_>) -> Outcome<usize> {
    // Granted, refused or to wait: whatever it comes to.
    scene
        .control
        .call(&["RLOCK.ACQUIRE", LOCK, "another", LONG, "READ"])?;
    Ok(scene.n)
}

fn refused(scene: &mut Scene<'_>, ask: &[&str]) -> Outcome<usize> {
    for _ in 0..TIMES {
        let reply = scene.control.call(ask)?;
        if !reply.starts_with(b"-WRONGTYPE") {
            return Err(format!("{ask:?}: {}", String::from_utf8_lossy(reply)).into());
        }
    }
    Ok(TIMES)
}

pub fn waiters(scene: &mut Scene<'_>) -> Outcome<usize> {
    scene.times(TIMES, |_| command(&["RLOCK.WAITERS", LOCK, "COUNT", "1"]))
}

pub fn top(scene: &mut Scene<'_>) -> Outcome<usize> {
    scene.times(TIMES, |_| command(&["RLOCK.TOP", "COUNT", "1"]))
}

pub fn list(scene: &mut Scene<'_>) -> Outcome<usize> {
    scene.times(TIMES, |_| command(&["RLOCK.LIST", "COUNT", "1"]))
}

pub fn section(scene: &mut Scene<'_>) -> Outcome<usize> {
    scene.times(TIMES, |_| command(&["INFO", "rlock"]))
}

pub fn read_more(scene: &mut Scene<'_>) -> Outcome<usize> {
    scene.times(TIMES, |number| {
        command(&[
            "RLOCK.ACQUIRE",
            LOCK,
            &format!("late:{number}"),
            LONG,
            "READ",
        ])
    })
}

pub fn permit_more(scene: &mut Scene<'_>) -> Outcome<usize> {
    scene.times(TIMES, |number| {
        let late = format!("late:{number}");
        command(&["RLOCK.ACQUIRE", LOCK, &late, LONG, "LIMIT", "1000000"])
    })
}

pub fn release_reader(scene: &mut Scene<'_>) -> Outcome<usize> {
    release_some(scene, &["READ"])
}

pub fn release_permit(scene: &mut Scene<'_>) -> Outcome<usize> {
    release_some(scene, &["PERMITS", "1"])
}

fn release_some(scene: &mut Scene<'_>, mode: &[&str]) -> Outcome<usize> {
    let first = scene.n / 2;
    scene.times(TIMES, |number| {
        command(&[&["RLOCK.RELEASE", LOCK, &owner(first + number)], mode].concat())
    })
}

pub fn renew_reader(scene: &mut Scene<'_>) -> Outcome<usize> {
    renew_some(scene, "READ")
}

pub fn renew_permit(scene: &mut Scene<'_>) -> Outcome<usize> {
    renew_some(scene, "PERMITS")
}

fn renew_some(scene: &mut Scene<'_>, mode: &str) -> Outcome<usize> {
    let first = scene.n / 2;
    scene.times(TIMES, |number| {
        command(&["RLOCK.RENEW", LOCK, &owner(first + number), LONG, mode])
    })
}

/// One of n who hold one, or one of n holds.
pub fn renew_own(scene: &mut Scene<'_>) -> Outcome<usize> {
    scene.times(TIMES, |_| command(&["RLOCK.RENEW", LOCK, "crowd", LONG]))
}

pub fn release_own(scene: &mut Scene<'_>) -> Outcome<usize> {
    scene.times(TIMES, |_| command(&["RLOCK.RELEASE", LOCK, "crowd"]))
}

/// One more of nested holds that a connection is told of.
pub fn nest_more(scene: &mut Scene<'_>) -> Outcome<usize> {
    let session = &mut scene.sessions[0];
    for number in 0..TIMES {
        let (channel, tag) = (session.channel().to_owned(), format!("more:{number}"));
        let ask = [
            "RLOCK.ACQUIRE",
            LOCK,
            "crowd",
            LONG,
            "NOTIFY",
            &channel,
            &tag,
        ];
        session.connection.call(&ask)?;
    }
    Ok(TIMES)
}

/// Another connection asks to be told of holds from now on.
pub fn renew_elsewhere(scene: &mut Scene<'_>) -> Outcome<usize> {
    scene.sessions.push(Session::on(scene.server.connect()?)?);
    let session = scene.sessions.last_mut().ok_or("no session")?;
    for number in 0..TIMES {
        let (channel, tag) = (session.channel().to_owned(), number.to_string());
        let ask = ["RLOCK.RENEW", LOCK, "crowd", LONG, "NOTIFY", &channel, &tag];
        session.connection.call(&ask)?;
    }
    Ok(TIMES)
}

pub fn hold_more(scene: &mut Scene<'_>) -> Outcome<usize> {
    scene.times(TIMES, |number| {
        command(&["RLOCK.ACQUIRE", &format!("more:{number}"), "crowd", LONG])
    })
}

pub fn release_locks(scene: &mut Scene<'_>) -> Outcome<usize> {
    let first = scene.n / 2;
    scene.times(TIMES, |number| {
        command(&["RLOCK.RELEASE", &key(first + number), "crowd"])
    })
}

/// A server at rest.
pub fn nothing(scene: &mut Scene<'_>) -> Outcome<usize> {
    scene.rest();
    Ok(1)
}

pub fn flush_plain(scene: &mut Scene<'_>) -> Outcome<usize> {
    scene.ask(&["FLUSHALL"])?;
    Ok(scene.n)
}

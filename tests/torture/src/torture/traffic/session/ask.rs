//! What an owner in a session asks next.

use fastrand::Rng;
use rlock_torture::clock::now_us;

use super::job::{Job, State};
use super::{Args, LONG_MS};
use crate::traffic::draw::{self, Fate};
use crate::traffic::names::Class;

pub fn pause(rng: &mut Rng, job: &Job) -> u64 {
    match job.state {
        State::Waits if job.gave_up => 10_000,
        State::Waits if job.in_crowd => rng.u64(1_000_000..3_000_000),
        State::Waits => rng.u64(5_000..120_000),
        _ => rng.u64(500..40_000),
    }
}

fn class(rng: &mut Rng) -> Class {
    match rng.u32(0..10) {
        0..3 => Class::Plain,
        3 => Class::Long,
        4..6 => Class::Shared,
        6 => Class::Many,
        _ => Class::Permits,
    }
}

/// One that keeps a lock for longer than it has asked for, which is renewed by its server alone.
fn keeper(rng: &mut Rng, tag: &str, owner: String) -> Job {
    let lease = rng.choice([500, LONG_MS, LONG_MS]).unwrap_or(LONG_MS);
    let (key, is_shared) = Class::Long.key(tag, rng);
    let mode = draw::mode_words(rng, &key, is_shared);
    let acquire = draw::args(&format!("RLOCK.ACQUIRE {key} {owner} {lease}{mode}"));
    let mode = draw::mode_of(&acquire);
    let mut job = Job::new(owner, vec![key], &mode, acquire, lease);
    job.watched = true;
    job.once = rng.bool();
    job.keeps = rng.u64(500_000..5_000_000);
    job
}

/// An owner that will ask for a lock.
pub fn begin(rng: &mut Rng, tag: &str, owner: String) -> Job {
    if rng.u32(0..3) == 0 {
        return keeper(rng, tag, owner);
    }
    let class = class(rng);
    let fate = match rng.u32(0..5) {
        0 => Fate::Forget,
        _ => Fate::Release,
    };
    let watched = fate == Fate::Release && rng.u32(0..3) == 0;
    let lease = draw::lease(rng, fate, class, watched);
    let mut job = if class == Class::Many && rng.bool() {
        let keys = draw::some_keys(rng, tag);
        let (count, names) = (keys.len(), keys.join(" "));
        let acquire = format!("RLOCK.MACQUIRE {count} {names} {owner} {lease}");
        Job::new(owner, keys, "", draw::args(&acquire), lease)
    } else {
        let (key, is_shared) = class.key(tag, rng);
        let mode = draw::mode_words(rng, &key, is_shared);
        let acquire = draw::args(&format!("RLOCK.ACQUIRE {key} {owner} {lease}{mode}"));
        let mode = draw::mode_of(&acquire);
        Job::new(owner, vec![key], &mode, acquire, lease)
    };
    job.watched = watched;
    job.forgets = fate == Fate::Forget;
    job.once = rng.bool();
    job
}

/// One of a crowd, which waits for this lock.
pub fn of_crowd(rng: &mut Rng, key: String, owner: String) -> Job {
    let lease = rng.choice([200, 500, LONG_MS]).unwrap_or(LONG_MS);
    let acquire = draw::args(&format!("RLOCK.ACQUIRE {key} {owner} {lease}"));
    let mut job = Job::new(owner, vec![key], "", acquire, lease);
    job.in_crowd = true;
    job
}

fn words(job: &Job, rest: &str) -> Args {
    let mut words = draw::args(&format!("{} {} {rest}", job.keys[0], job.owner));
    words.retain(|word| !word.is_empty());
    words
}

fn tagged(rng: &mut Rng, args: &mut Args, serial: &mut u32) {
    *serial += 1;
    args.extend(draw::args(&format!("NOTIFY - t{serial}")));
    if args[0] == "RLOCK.ACQUIRE" && rng.bool() {
        args.push("WANTED".to_owned());
    }
}

/// The request for the lock, to wait if need be.
fn acquire(rng: &mut Rng, job: &Job, serial: &mut u32) -> Args {
    let mut args = job.acquire.clone();
    match rng.u32(0..10) {
        3.. if job.in_crowd => args.extend(draw::args("QUEUE 3000")),
        0 if !job.in_crowd => (),
        0..3 => args.extend(draw::args("QUEUE 0")),
        // For so long somebody may hold it.
        _ if Class::of(&job.keys[0]) == Class::Long => args.extend(draw::args("QUEUE 4000")),
        _ => {
            let ms = rng.choice([1, 20, 100, 500, 1000, 2000]).unwrap_or(1);
            args.extend(draw::args(&format!("QUEUE {ms}")));
        }
    }
    tagged(rng, &mut args, serial);
    if job.watched {
        args.push("WATCHDOG".to_owned());
    }
    if job.once {
        args.push("ONCE".to_owned());
    }
    args
}

/// What it asks now, and whether by any connection instead of its own.
pub fn next(rng: &mut Rng, job: &mut Job, rest: bool, serial: &mut u32) -> Option<(Args, bool)> {
    match job.state {
        State::New if rest => {
            job.state = State::Over;
            None
        }
        State::New => Some((acquire(rng, job, serial), true)),
        State::Waits => waits(rng, job, rest, serial),
        State::Holds => holds(rng, job, rest, serial),
        State::Over => None,
    }
}

fn verb(verb: &str, words: Args) -> Args {
    let mut args = vec![format!("RLOCK.{verb}")];
    args.extend(words);
    args
}

fn waits(rng: &mut Rng, job: &mut Job, rest: bool, serial: &mut u32) -> Option<(Args, bool)> {
    let mode = job.mode.clone();
    if rest || !job.patient() {
        job.tries += 1;
        // To give up for certain.
        if job.tries > 60 {
            job.state = State::Over;
        }
        job.gave_up = true;
        return match job.tries % 8 {
            1 => Some((verb("CANCEL", words(job, "")), false)),
            7 if job.keys.len() == 1 => {
                let words = words(job, &format!("{mode}{} IFHELD", all(&mode)));
                Some((verb("RELEASE", words), false))
            }
            _ => None,
        };
    }
    match rng.u32(0..100) {
        0..8 => {
            let mode = if rng.bool() { &mode } else { "" };
            Some((verb("CANCEL", words(job, mode)), true))
        }
        // The same once more, byte for byte, which is for its own connection alone.
        8..14 if job.once && !job.busy() => Some((job.last.clone(), false)),
        14..22 if job.once => Some((acquire(rng, job, serial), rng.bool())),
        _ => None,
    }
}

fn all(mode: &str) -> &'static str {
    match mode {
        "PERMITS" => " ALL",
        _ => "",
    }
}

fn holds(rng: &mut Rng, job: &mut Job, rest: bool, serial: &mut u32) -> Option<(Args, bool)> {
    if job.forgets && !rest {
        if now_us() > job.since + 4_000_000 || job.lease > LONG_MS {
            job.forgets = false;
        }
        // It will be told when its lease is over.
        return None;
    }
    let mode = job.mode.clone();
    let ends = all(&mode);
    job.tries += u32::from(rest);
    if job.tries > 200 {
        job.state = State::Over;
        return None;
    }
    if job.acquire[0] == "RLOCK.MACQUIRE" && (rest || rng.bool()) {
        let (count, keys) = (job.keys.len(), job.keys.join(" "));
        let line = format!("RLOCK.MRELEASE {count} {keys} {}", job.owner);
        return Some((draw::args(&line), rng.u32(0..4) == 0));
    }
    if job.keys.len() > 1 {
        return None;
    }
    let line = match rng.u32(0..100) {
        _ if rest => format!("RELEASE {mode}{ends} IFHELD"),
        0..30 => format!("RELEASE {mode}{ends}"),
        30..45 => format!("RELEASE {mode}{ends} IFTOKEN {}", job.token),
        45..52 => format!("RELEASE {mode}{ends} IFHELD"),
        52..60 => format!("RELEASE {mode}{ends} IFTOKEN {}", job.stale.max(1)),
        60..64 if mode == "PERMITS" => "RELEASE PERMITS 1".to_owned(),
        64..72 => format!("RENEW {} {mode}", job.lease),
        72..80 if !job.watched => {
            *serial += 1;
            let wanted = rng.choice(["", " WANTED"]).unwrap_or_default();
            format!("RENEW {} {mode} NOTIFY - t{serial}{wanted}", job.lease)
        }
        80..90 if job.once => return Some((acquire(rng, job, serial), true)),
        _ => return None,
    };
    let (name, rest) = line.split_once(' ').expect("two words");
    Some((verb(name, words(job, rest)), rng.u32(0..4) == 0))
}

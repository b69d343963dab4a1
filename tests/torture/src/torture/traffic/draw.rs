//! What a client asks next, drawn from its seed.

use fastrand::Rng;

use super::conn::Args;
use super::lane::{Held, LONG_MS};
use super::names::{self, Class};
use super::Shared;

/// What becomes of what a client holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Release,
    /// It is left to its lease.
    Forget,
    /// The connection goes.
    Crash,
}

/// Requests that are sent in one write.
pub struct Wish {
    pub requests: Vec<Args>,
    pub multi: bool,
}

impl Wish {
    pub fn one(args: Args) -> Self {
        let requests = vec![args];
        Self {
            requests,
            multi: false,
        }
    }

    pub fn key(&self) -> &str {
        key_of(&self.requests[0])
    }
}

pub fn args(line: &str) -> Args {
    line.split(' ').map(str::to_owned).collect()
}

/// The first key of a request.
pub fn key_of(args: &Args) -> &str {
    match args[0].starts_with("RLOCK.M") {
        true => args.get(2).map_or("", String::as_str),
        false => args.get(1).map_or("", String::as_str),
    }
}

pub fn mode_of(args: &Args) -> String {
    let mut words = args.iter().skip(3);
    let mode = words.find(|word| ["READ", "WRITE", "PERMITS"].contains(&word.as_str()));
    mode.cloned().unwrap_or_default()
}

/// The keys and the owner of a request for many.
pub fn many(args: &Args) -> (&[String], &String) {
    let count: usize = args[1].parse().expect("we wrote a number");
    (&args[2..2 + count], &args[2 + count])
}

/// What an ACQUIRE or MACQUIRE gives if it is granted; nothing for other requests.
pub fn asked(args: &Args, star: Option<&str>) -> Vec<Held> {
    let (keys, owner, at) = match args[0].as_str() {
        "RLOCK.ACQUIRE" => (&args[1..2], &args[2], 3),
        "RLOCK.MACQUIRE" => {
            let (keys, owner) = many(args);
            (keys, owner, keys.len() + 3)
        }
        _ => return Vec::new(),
    };
    let lease = args.get(at).and_then(|text| text.parse().ok());
    let owner = match (owner.as_str(), star) {
        ("*", Some(star)) => star.to_owned(),
        _ => owner.clone(),
    };
    let hold = |key: &String| Held {
        key: key.clone(),
        owner: owner.clone(),
        mode: mode_of(args),
        lease: lease.unwrap_or(0),
        watched: args.iter().any(|word| word == "WATCHDOG"),
    };
    keys.iter().map(hold).collect()
}

pub fn release(held: &Held, all: bool) -> Args {
    let mut args = args(&format!("RLOCK.RELEASE {} {}", held.key, held.owner));
    if !held.mode.is_empty() {
        args.push(held.mode.clone());
    }
    if all {
        args.push("ALL".to_owned());
    }
    args
}

fn block(rng: &mut Rng, class: Class) -> String {
    match rng.u32(0..10) {
        // Held for very long, some of them, by nobody.
        3.. if class == Class::Wide => format!(" BLOCK {}", rng.u32(1..200)),
        3.. if class == Class::Long => format!(" BLOCK {}", rng.u32(1..2000)),
        0..3 => String::new(),
        3..5 => " BLOCK 0".to_owned(),
        _ => format!(
            " BLOCK {}",
            rng.choice([1, 5, 20, 100, 500, 1000, 2000]).unwrap_or(1)
        ),
    }
}

pub fn lease(rng: &mut Rng, fate: Fate, class: Class, watched: bool) -> u64 {
    let long = [20, 200, 1000, 3000, 10_000, 60_000];
    let short = [1, 3, 10, 20, 50, 50, 200, LONG_MS];
    let choice = match (fate, class, watched) {
        (_, _, true) => rng.choice([1500, 2000, 3000, 5000]),
        // That copies have something to show.
        (Fate::Forget, Class::Wide, _) => rng.choice([10_000, 60_000]),
        (_, Class::Mixed, _) | (Fate::Forget | Fate::Crash, ..) => rng.choice(short),
        _ => rng.choice(long),
    };
    choice.unwrap_or(1000)
}

/// The first request of one that holds nothing.
pub fn begin(rng: &mut Rng, shared: &Shared, fresh: &str) -> (Wish, Fate) {
    let class = Class::draw(rng);
    let mut fate = match rng.u32(0..100) {
        0..70 => Fate::Release,
        70..82 => Fate::Forget,
        _ => Fate::Crash,
    };
    let watched = match fate {
        Fate::Forget => false,
        Fate::Release => rng.u32(0..4) == 0,
        Fate::Crash => rng.u32(0..3) > 0,
    };
    if class == Class::Wide && rng.u32(0..4) == 0 && !watched {
        fate = Fate::Release;
    }
    let mut words = String::new();
    if watched {
        words += " WATCHDOG";
    }
    // An owner that many share may hold the lock already, and the reply does not tell
    // whether this was a hold more.
    if rng.u32(0..6) == 0 && class != Class::Mixed {
        words += " ONCE";
    }
    let lease = lease(rng, fate, class, watched);
    let owner = match (class, rng.u32(0..7)) {
        (Class::Mixed, _) => format!("x{}", rng.u32(0..5)),
        (_, 0) => "*".to_owned(),
        _ => fresh.to_owned(),
    };
    let multi = rng.u32(0..20) == 0;
    let tag = *rng.choice(shared.tags).expect("a tag");
    if class == Class::Many && rng.u32(0..10) < 7 {
        let keys = some_keys(rng, tag);
        let line = format!(
            "RLOCK.MACQUIRE {} {} {owner} {lease}{}{words}",
            keys.len(),
            keys.join(" "),
            block(rng, class)
        );
        return (finish(rng, vec![args(&line)], multi), fate);
    }
    let (key, is_shared) = class.key(tag, rng);
    let mode = mode_words(rng, &key, is_shared);
    let acquire = args(&format!(
        "RLOCK.ACQUIRE {key} {owner} {lease}{mode}{}{words}",
        block(rng, class)
    ));
    let mut requests = vec![acquire];
    // All of it in one go: to hold and to have held.
    if rng.u32(0..12) == 0 && fate == Fate::Release {
        let mode = mode_of(&requests[0]);
        let renew = format!("RLOCK.RENEW {key} {owner} {lease} {mode}");
        requests.push(args(renew.trim_end()));
        requests.push(args(
            format!("RLOCK.RELEASE {key} {owner} {mode}").trim_end(),
        ));
    }
    (finish(rng, requests, multi), fate)
}

/// The words of a mode, where there are several.
pub fn mode_words(rng: &mut Rng, key: &str, is_shared: bool) -> String {
    if let Some(limit) = names::limit(key) {
        let most = limit.min(3) + 1;
        // Somebody has got it wrong.
        let said = limit + u32::from(rng.u32(0..40) == 0);
        return format!(" LIMIT {said} PERMITS {}", rng.u32(1..most));
    }
    match (is_shared, rng.u32(0..10)) {
        (false, _) => "",
        (true, 0..6) => " READ",
        (true, _) => " WRITE",
    }
    .to_owned()
}

pub fn some_keys(rng: &mut Rng, tag: &str) -> Vec<String> {
    let mut numbers = [0, 1, 2, 3];
    rng.shuffle(&mut numbers);
    let count = rng.usize(1..=4);
    numbers[..count]
        .iter()
        .map(|n| format!("{tag}m{n}"))
        .collect()
}

/// Now and then an ECHO behind it: whoever answers twice is found out by it.
fn finish(rng: &mut Rng, requests: Vec<Args>, multi: bool) -> Wish {
    let mut requests = requests;
    if !multi && rng.u32(0..6) == 0 {
        requests.push(args(&format!("ECHO e{}", rng.u32(..))));
    }
    Wish { requests, multi }
}

/// Something else for one that holds, before it gives back.
pub fn more(rng: &mut Rng, shared: &Shared, held: &Held, fate: Fate) -> Option<Wish> {
    let Held { key, owner, .. } = held;
    let star = owner == "*";
    let class = Class::of(key);
    let mixed = class == Class::Mixed;
    let lease = lease(rng, fate, class, held.watched);
    let mode = match held.mode.as_str() {
        "" => String::new(),
        mode => format!(" {mode}"),
    };
    if shared.wait > 0 && rng.bool() {
        let renew = args(&format!("RLOCK.RENEW {key} {owner} {lease}{mode}"));
        let requests = vec![renew, args(&format!("WAIT {} 100", shared.wait))];
        return Some(Wish {
            requests,
            multi: false,
        });
    }
    let permits = held.mode == "PERMITS";
    let line = match rng.u32(0..100) {
        0..8 if permits => format!(
            "RLOCK.ACQUIRE {key} {owner} {lease}{} BLOCK {}",
            mode_words(rng, key, false),
            rng.u32(1..300)
        ),
        0..8 if !star => format!(
            "RLOCK.ACQUIRE {key} {owner} {lease}{mode}{}",
            block(rng, class)
        ),
        8..16 => format!("RLOCK.RENEW {key} {owner} {lease}{mode}"),
        16..19 if fate != Fate::Forget && lease >= LONG_MS => {
            format!("RLOCK.RENEW {key} {owner} {lease}{mode} WATCHDOG")
        }
        19..24 if held.mode == "READ" => {
            format!(
                "RLOCK.ACQUIRE {key} {owner} {lease} WRITE BLOCK {}",
                rng.u32(1..300)
            )
        }
        24..29 if held.mode == "WRITE" => format!("RLOCK.ACQUIRE {key} {owner} {lease} READ"),
        29..31 => format!("RLOCK.RELEASE {key} {owner}{mode}"),
        31..39 if class == Class::Many => {
            let mut keys = some_keys(rng, names::tag_of(key));
            if rng.u32(0..3) > 0 || !keys.contains(key) {
                keys = vec![key.clone()];
            }
            let count = keys.len();
            format!("RLOCK.MRENEW {count} {} {owner} {lease}", keys.join(" "))
        }
        31..50 if mixed => {
            let tag = *rng.choice(shared.tags).expect("a tag");
            let (other, is_shared) = Class::Mixed.key(tag, rng);
            let mode = ["", " READ", " WRITE"][if is_shared { rng.usize(1..3) } else { 0 }];
            format!(
                "RLOCK.ACQUIRE {other} {owner} {lease}{mode} BLOCK {}",
                rng.u32(0..800)
            )
        }
        _ => return None,
    };
    Some(finish(rng, vec![args(&line)], false))
}

/// The end of a hold, or of all of them.
pub fn give_back(rng: &mut Rng, holds: &[Held], held: &Held) -> Wish {
    let same = holds
        .iter()
        .filter(|one| one.owner == held.owner && one.mode.is_empty());
    let keys: std::collections::BTreeSet<&str> = same.map(|one| one.key.as_str()).collect();
    let one_slot = keys
        .iter()
        .all(|key| names::tag_of(key) == names::tag_of(&held.key));
    if keys.len() > 1 && one_slot && rng.u32(0..4) > 0 {
        let keys: Vec<&str> = keys.into_iter().collect();
        let line = format!(
            "RLOCK.MRELEASE {} {} {}",
            keys.len(),
            keys.join(" "),
            held.owner
        );
        return finish(rng, vec![args(&line)], false);
    }
    let all = rng.u32(0..5) == 0;
    let multi = rng.u32(0..25) == 0;
    finish(rng, vec![release(held, all)], multi)
}

/// A request that changes nothing, now and then a wrong one.
pub fn look(rng: &mut Rng, shared: &mut Shared) -> Wish {
    if let Some(whose) = shared.waits.pop_back().filter(|_| rng.u32(0..8) == 0) {
        return Wish::one(args(&format!("RLOCK.CANCEL {whose}")));
    }
    let tag = *rng.choice(shared.tags).expect("a tag");
    let (key, _) = Class::draw(rng).key(tag, rng);
    Wish::one(args(&match rng.u32(0..23) {
        20 => format!("RLOCK.LIMIT {tag}u0 {}", rng.u32(1..7)),
        21 => "RLOCK.LIST COUNT 250".to_owned(),
        22 => format!("RLOCK.FORCE {key} IFOWNER nobody"),
        0..11 => format!("RLOCK.INFO {key}"),
        11..14 => format!("RLOCK.WAITERS {key}"),
        14..16 => "RLOCK.TOP".to_owned(),
        16 => format!("RLOCK.ACQUIRE {key} bad -1"),
        17 => format!("RLOCK.MACQUIRE 2 {key} {key} bad 100"),
        18 => format!("RLOCK.RELEASE {key} nobody-{}", rng.u32(0..9)),
        _ => format!("RLOCK.RENEW {key} mode 100 READ WRITE"),
    }))
}

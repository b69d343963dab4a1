//! Users who may little: what they may not do is refused, they change nothing of it, and
//! learn nothing of it.

use std::collections::BTreeSet;
use std::io;
use std::time::Instant;

use crate::draw::{Args, Draw, SESSION};
use crate::figures::{shown, Figures};
use crate::link::Link;
use crate::quiet::snapshot::{difference, of_keys, Snapshot};
use crate::quiet::{says_one_thing, until_all_are_closed};
use crate::resp::Value;
use crate::server::Server;
use crate::shape;

const NAMES: [&str; 6] = [
    "ok:1",
    "ok:2",
    "secret:1",
    "secret:2",
    "{ok:1}:o1",
    "ok:{secret",
];
const SECRETS: [&str; 3] = ["secret:1", "secret:2", "secret:rw"];
/// It holds the secrets and waits for them.
const HIDDEN: &str = "hidden-owner";
const STEPS: usize = 60;

/// A user: its rules, and what that comes to.
struct User {
    rules: &'static str,
    /// Nothing else of rlock, if any are named.
    commands: &'static [&'static str],
    reads: &'static [&'static str],
    writes: &'static [&'static str],
    channels: bool,
}

const OF_OWN: [&str; 1] = ["ok:"];

const USERS: [User; 8] = [
    User {
        rules: "+@all ~ok:* allchannels",
        commands: &[],
        reads: &OF_OWN,
        writes: &OF_OWN,
        channels: true,
    },
    User {
        rules: "-@all +hello +rlock.acquire ~ok:* allchannels",
        commands: &["ACQUIRE"],
        reads: &OF_OWN,
        writes: &OF_OWN,
        channels: true,
    },
    User {
        rules: "+@all ~ok:* %R~secret:1 allchannels",
        commands: &[],
        reads: &["ok:", "secret:1"],
        writes: &OF_OWN,
        channels: true,
    },
    User {
        rules: "+@all ~ok:* %W~secret:* allchannels",
        commands: &[],
        reads: &OF_OWN,
        writes: &OF_OWN,
        channels: true,
    },
    User {
        rules: "+@all -rlock.force -rlock.limit -rlock.list ~ok:* resetchannels &u:*",
        commands: &[
            "ACQUIRE",
            "RELEASE",
            "RENEW",
            "MACQUIRE",
            "MRELEASE",
            "MRENEW",
            "CANCEL",
            "INFO",
            "WAITERS",
            "OWNER",
            "TOP",
            "HEARTBEAT",
        ],
        reads: &OF_OWN,
        writes: &OF_OWN,
        channels: false,
    },
    User {
        rules: "-@all +hello +rlock.list +rlock.info +rlock.waiters %R~ok:*",
        commands: &["LIST", "INFO", "WAITERS"],
        reads: &OF_OWN,
        writes: &[],
        channels: false,
    },
    User {
        rules: "+@all resetkeys allchannels",
        commands: &[],
        reads: &[],
        writes: &[],
        channels: true,
    },
    User {
        rules: "-@all +hello +eval +fcall +rlock.macquire +rlock.cancel ~ok:* ~{ok:* resetchannels",
        commands: &["MACQUIRE", "CANCEL"],
        reads: &["ok:", "{ok:"],
        writes: &["ok:", "{ok:"],
        channels: false,
    },
];

pub fn run(
    server: &mut Server,
    figures: &mut Figures,
    seed: u64,
    until: Instant,
) -> Result<(), String> {
    let mut draw = Draw::new(seed, true);
    draw.names = &NAMES;
    while Instant::now() < until {
        let user = &USERS[draw.rng.usize(0..USERS.len())];
        let mut said = Vec::new();
        let found = chapter(server.port, user, &mut draw, figures, &mut said);
        let found = match (found, server.trouble()) {
            (_, Some(trouble)) => Some(trouble),
            (Ok(found), None) => found,
            (Err(error), None) => Some(error.to_string()),
        };
        if let Some(what) = found {
            let lines: Vec<_> = said
                .iter()
                .map(|args| format!("  {}", shown(args)))
                .collect();
            return Err(format!(
                "{what}\nthe user {} said\n{}",
                user.rules,
                lines.join("\n")
            ));
        }
    }
    Ok(())
}

fn chapter(
    port: u16,
    user: &User,
    draw: &mut Draw,
    figures: &mut Figures,
    said: &mut Vec<Args>,
) -> io::Result<Option<String>> {
    let (mut control, _holder, tokens) = secrets(port)?;
    let mut link = log_in(port, &mut control, user)?;
    // That of the secrets' holder, where it may use none.
    let number = u8::from(user.channels);
    draw.channel = Some(format!("{SESSION}{number}"));
    for _ in 0..STEPS {
        let args = of_rlock(draw);
        figures.sent(&args);
        let before = of_secrets(&mut control)?;
        said.push(args.clone());
        let Ok(reply) = link.ask(&args) else {
            // A watched hold was lost, which closes a connection.
            return Ok(None);
        };
        figures.replied(&reply);
        let after = of_secrets(&mut control)?;
        let changed =
            difference(&before, &after).map(|what| format!("{reply}, and changed\n{what}"));
        let found = changed
            .or_else(|| shape::check(&args, &reply, true).err())
            .or_else(|| against_the_rules(user, &args, &reply, figures))
            .or_else(|| tells(user, &args, &reply, &tokens));
        if let Some(what) = found {
            return Ok(Some(format!("{what}\nto {} came {reply}", shown(&args))));
        }
    }
    Ok(None)
}

/// A command of rlock, also in a script: what they may of the server's is the server's matter.
fn of_rlock(draw: &mut Draw) -> Args {
    loop {
        let args = if draw.once_in(6) {
            draw.script()
        } else {
            draw.rlock()
        };
        if says_one_thing(&args) {
            return args;
        }
    }
}

/// The secrets: held in each way, and waited for. Their tokens.
fn secrets(port: u16) -> io::Result<(Link, Link, Vec<String>)> {
    let mut control = Link::open(port)?;
    for line in [
        "HELLO 3",
        "CONFIG SET rlock.redisson-yield 0",
        "SUBSCRIBE s:0",
        "FLUSHALL",
    ] {
        control.must(line)?;
    }
    until_all_are_closed(&mut control)?;
    let mut holder = Link::open(port)?;
    for line in ["HELLO 3", "SUBSCRIBE s:0"] {
        holder.must(line)?;
    }
    let mut tokens = Vec::new();
    for line in [
        "secret:1 H 9000000",
        "secret:2 H 9000000 LIMIT 3 PERMITS 2 WATCHDOG NOTIFY s:0 w",
        "secret:rw H 9000000 READ",
    ] {
        let line = format!(
            "RLOCK.ACQUIRE {}",
            line.replace(" H", &format!(" {HIDDEN}"))
        );
        tokens.push(holder.must(&line)?.to_string());
    }
    for (tag, line) in [
        "secret:1 H2 9000000",
        "secret:2 H2 9000000 LIMIT 3 PERMITS 2",
        "secret:rw H2 9000000 WRITE",
    ]
    .iter()
    .enumerate()
    {
        let line = line.replace(" H", &format!(" {HIDDEN}"));
        holder.must(&format!("RLOCK.ACQUIRE {line} QUEUE 0 NOTIFY s:0 t{tag}"))?;
    }
    holder.must("RLOCK.ACQUIRE ok:2 hidden-owner 9000000")?;
    Ok((control, holder, tokens))
}

fn log_in(port: u16, control: &mut Link, user: &User) -> io::Result<Link> {
    let mut link = Link::open(port)?;
    link.must("HELLO 3")?;
    if user.channels {
        link.must("SUBSCRIBE s:1")?;
    } else {
        // Subscribed before it lost the permission.
        link.must("SUBSCRIBE u:1")?;
    }
    control.must(&format!("ACL SETUSER hostile reset on >x {}", user.rules))?;
    // AUTH leaves subscriptions as they are, and needs no permission.
    link.must("AUTH hostile x")?;
    Ok(link)
}

fn of_secrets(control: &mut Link) -> io::Result<Snapshot> {
    let names: BTreeSet<Vec<u8>> = SECRETS
        .iter()
        .map(|name| name.as_bytes().to_vec())
        .collect();
    of_keys(control, "0", &names)
}

/// What was to be refused and was not, or the other way round.
fn against_the_rules(
    user: &User,
    args: &Args,
    reply: &Value,
    figures: &mut Figures,
) -> Option<String> {
    let name = String::from_utf8_lossy(&args[0]).to_uppercase();
    let command = name.strip_prefix("RLOCK.")?;
    let denied = reply
        .error()
        .is_some_and(|line| line.starts_with(b"NOPERM "));
    if denied {
        figures.denied += 1;
    } else {
        figures.let_in += 1;
    }
    let may_run = user.commands.is_empty() || user.commands.contains(&command);
    let keys = keys(command, args)?;
    let reads = matches!(command, "INFO" | "WAITERS");
    let fits = |key: &&[u8], patterns: &[&str]| {
        patterns
            .iter()
            .any(|prefix| key.starts_with(prefix.as_bytes()))
    };
    let all_fit = keys
        .iter()
        .all(|key| fits(key, user.reads) && (reads || fits(key, user.writes)));
    let session = args
        .iter()
        .position(|arg| arg.eq_ignore_ascii_case(b"NOTIFY"));
    let foreign = session
        .and_then(|at| args.get(at + 1))
        .is_some_and(|channel| !channel.starts_with(b"u:"));
    if command == "NONE" {
        return None;
    }
    if (!may_run || !all_fit) && !denied {
        return Some("let in, against its rules".to_owned());
    }
    if !user.channels && foreign && reply.error().is_none() {
        return Some("told on a channel that it may not use".to_owned());
    }
    if may_run && all_fit && denied && (user.channels || !foreign) {
        return Some("denied, though its rules allow it".to_owned());
    }
    None
}

/// The keys that a request names; `None`: it is none that the server lets through.
fn keys<'a>(command: &str, args: &'a Args) -> Option<Vec<&'a [u8]>> {
    match command {
        "OWNER" | "TOP" | "LIST" | "HEARTBEAT" => Some(Vec::new()),
        "MACQUIRE" | "MRELEASE" | "MRENEW" => {
            let count = std::str::from_utf8(args.get(1)?).ok()?;
            // What is no number to the server, such as 007, counts no keys.
            let is_one = |number: &usize| *number > 0 && number.to_string() == count;
            let count: usize = count.parse().ok().filter(is_one)?;
            let keys = args.get(2..count.checked_add(2)?)?;
            Some(keys.iter().map(Vec::as_slice).collect())
        }
        _ => Some(vec![args.get(1)?.as_slice()]),
    }
}

/// What a reply says of secrets that the user may not read and the request did not name.
fn tells(user: &User, args: &Args, reply: &Value, tokens: &[String]) -> Option<String> {
    let (asked, said) = (shown(args), reply.all_text());
    // These name locks and owners of others, as the docs say.
    let is_deadlock = reply
        .error()
        .is_some_and(|line| line.starts_with(b"DEADLOCK "));
    if is_deadlock || asked.to_uppercase().contains("RLOCK.TOP") {
        return None;
    }
    let may_read = |name: &str| user.reads.iter().any(|prefix| name.starts_with(prefix));
    // In a script numbers are doubles: beyond this two tokens can look the same.
    let is_exact = |token: &str| token.parse().is_ok_and(|token: i64| token < 1 << 53);
    let hidden = SECRETS
        .iter()
        .zip(tokens)
        .filter(|(name, _)| !may_read(name));
    let mut words = hidden.flat_map(|(name, token)| {
        let token = Some(token.as_str()).filter(|token| is_exact(token));
        [Some(*name), token].into_iter().flatten()
    });
    let told = words.find(|word| said.contains(word) && !asked.contains(word))?;
    Some(format!("it learnt {told:?}"))
}

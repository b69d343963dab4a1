//! `ls`, `who`, `waiters` and `force`.

use std::io::{IsTerminal, Write, stderr, stdin};
use std::process::ExitCode;

use redis::cmd;
use rlock_client::library::QUEUE;

use crate::args::{Force, Ls};
use crate::exit::{Failure, NOTHING, Outcome, REFUSED};
use crate::locks::{Holder, Lock, Waiter, page, short};
use crate::server::Server;
use crate::table::{plain, table};
use crate::time::show;

fn time(ms: Option<u64>) -> String {
    ms.map_or_else(|| "-".into(), show)
}

fn number(number: Option<u64>) -> String {
    number.map_or_else(|| "-".into(), |number| number.to_string())
}

/// The server's times are whole ms.
fn ms(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

pub fn ls(server: &mut Server, wanted: &Ls) -> Outcome {
    server.needs_module("rlock ls")?;
    let mut cursor = "0".to_owned();
    let mut rows = Vec::new();
    loop {
        let mut ask = cmd("RLOCK.LIST");
        ask.arg("CURSOR").arg(&cursor).arg("COUNT").arg(250);
        if let Some(pattern) = &wanted.pattern {
            ask.arg("MATCH").arg(pattern);
        }
        if let Some(owner) = &wanted.owner {
            ask.arg("OWNER").arg(owner);
        }
        if let Some(time) = wanted.held_longer {
            ask.arg("HELD-LONGER").arg(ms(time));
        }
        let (next, holders) = page(server.ask(&ask)?);
        for holder in holders {
            if wanted.json {
                crate::say(&holder.json().to_string())?;
            } else {
                rows.push(row(&holder));
            }
        }
        cursor = next;
        if cursor == "0" {
            break;
        }
    }
    if !wanted.json {
        let head = ["KEY", "MODE", "HELD", "LEASE LEFT", "TOKEN", "OWNER"];
        crate::say(table(head, &rows).trim_end())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn row(holder: &Holder) -> [String; 6] {
    let mode = match (holder.mode.as_str(), holder.holds) {
        ("permits", n) => format!("{n} permit{}", if n == 1 { "" } else { "s" }),
        (mode, 1) => mode.into(),
        (mode, n) => format!("{mode} x{n}"),
    };
    [
        plain(&holder.key),
        mode,
        time(holder.held_ms),
        time(holder.remaining_ms),
        number(holder.token),
        plain(&holder.owner),
    ]
}

pub fn who(server: &mut Server, key: &str, json: bool) -> Outcome {
    let lock = Lock::ask(server, key)?;
    let knows_waiters = server.speech()?.has_module();
    if json {
        let mut json = lock.json(key);
        if !knows_waiters {
            json["waiters"] = serde_json::Value::Null;
        }
        crate::say(&json.to_string())?;
    } else {
        let limit = match (lock.limit, lock.available) {
            (Some(limit), Some(available)) => format!(", {available} of {limit} permits free"),
            _ => String::new(),
        };
        let waiters = match (lock.waiters, lock.oldest_wait_ms) {
            _ if !knows_waiters => String::new(),
            (0, _) => "; nobody waits".into(),
            (n, oldest) => format!(
                "; {n} wait{}, the oldest for {}",
                if n == 1 { "s" } else { "" },
                time(oldest)
            ),
        };
        crate::say(&format!("{}: {}{limit}{waiters}", plain(key), lock.mode))?;
        let rows: Vec<_> = lock
            .holders
            .iter()
            .map(row)
            .map(|[_, rest @ ..]| rest)
            .collect();
        if !rows.is_empty() {
            let head = ["MODE", "HELD", "LEASE LEFT", "TOKEN", "OWNER"];
            crate::say(table(head, &rows).trim_end())?;
        }
    }
    let nobody = lock.holders.is_empty();
    Ok(if nobody {
        ExitCode::from(NOTHING)
    } else {
        ExitCode::SUCCESS
    })
}

pub fn waiters(server: &mut Server, key: &str, json: bool) -> Outcome {
    server.needs_module("rlock waiters")?;
    let waiters = Waiter::ask(server, key)?;
    if json {
        for waiter in &waiters {
            crate::say(&waiter.json().to_string())?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let row = |(place, waiter): (usize, &Waiter)| {
        let permits = waiter.permits.map_or_else(String::new, |n| format!(" {n}"));
        [
            (place + 1).to_string(),
            format!("{}{permits}", waiter.mode),
            show(waiter.waited_ms),
            number(waiter.client),
            plain(&waiter.owner),
        ]
    };
    let rows: Vec<_> = waiters.iter().enumerate().map(row).collect();
    crate::say(table(["PLACE", "MODE", "WAITED", "CLIENT", "OWNER"], &rows).trim_end())?;
    Ok(ExitCode::SUCCESS)
}

pub fn force(server: &mut Server, wanted: &Force) -> Outcome {
    if wanted.token.is_some() {
        server.needs_module("rlock force --token")?;
    }
    let speech = server.speech()?;
    let mut ask = speech.call("force", std::slice::from_ref(&wanted.key), QUEUE);
    if let Some(owner) = &wanted.owner {
        ask.arg("IFOWNER").arg(owner);
    } else if let Some(token) = wanted.token {
        ask.arg("IFTOKEN").arg(token);
    }
    if !wanted.yes {
        if !stdin().is_terminal() {
            return Err(Failure::usage("there is no terminal to ask on: use --yes"));
        }
        let lock = Lock::ask(server, &wanted.key)?;
        let holders: Vec<String> = lock
            .holders
            .iter()
            .map(|holder| short(&holder.owner))
            .collect();
        if holders.is_empty() {
            crate::say(&format!("{}: nobody holds it", plain(&wanted.key)))?;
            return Ok(ExitCode::from(NOTHING));
        }
        let (key, holders) = (plain(&wanted.key), holders.join(", "));
        write!(
            stderr(),
            "{key} is held by {holders}, who may be at work. Free it? [y/N] "
        )?;
        let mut answer = String::new();
        stdin().read_line(&mut answer)?;
        if !matches!(answer.trim(), "y" | "Y" | "yes") {
            return Ok(ExitCode::from(NOTHING));
        }
    }
    match server.ask(&ask)? {
        redis::Value::Int(1) => {
            crate::say(&format!("{}: freed", plain(&wanted.key)))?;
            Ok(ExitCode::SUCCESS)
        }
        redis::Value::Int(_) => {
            crate::say(&format!("{}: nothing was freed", plain(&wanted.key)))?;
            Ok(ExitCode::from(NOTHING))
        }
        _ => Err(Failure::new(REFUSED, "the server gave no answer to FORCE")),
    }
}

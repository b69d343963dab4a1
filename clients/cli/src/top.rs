//! `rlock top`: the locks that are waited for most.

use std::io::{IsTerminal, Write, stdout};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers, poll, read};
use crossterm::{cursor, execute, queue, style, terminal};
use redis::{Client, cmd};

use crate::args::{Backend, Top};
use crate::exit::{Failure, Outcome};
use crate::locks::{Lock, short};
use crate::server::{Fields, Server};
use crate::table::{plain, size, table};
use crate::time::show;

/// Counters, and when they were read.
struct Counts {
    at: Instant,
    acquired: u64,
    released: u64,
}

pub fn top(client: &Client, backend: Backend, wanted: &Top) -> Outcome {
    let mut server = Server::connect(client, backend)?;
    server.needs_module("rlock top")?;
    if wanted.once || !stdout().is_terminal() {
        let (text, _) = look(&mut server, client, wanted.count, None)?;
        crate::say(text.trim_end())?;
        return Ok(ExitCode::SUCCESS);
    }
    let _screen = Screen::enter()?;
    let mut before = None;
    let mut server = Some(server);
    loop {
        let asked = match &mut server {
            Some(server) => look(server, client, wanted.count, before.as_ref()),
            None => Err(Failure::usage("")),
        };
        match asked {
            Ok((text, now)) => {
                before = Some(now);
                draw(&text)?;
            }
            Err(_) => match Server::connect(client, backend) {
                Ok(new) => {
                    (server, before) = (Some(new), None);
                    continue;
                }
                Err(error) => {
                    server = None;
                    draw(&format!("{error}\n\nq quits"))?;
                }
            },
        }
        if quits_within(Duration::from_secs(1))? {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

/// The whole picture.
fn look(
    server: &mut Server,
    client: &Client,
    count: u32,
    before: Option<&Counts>,
) -> Result<(String, Counts), Failure> {
    let fields = server.section("rlock")?;
    let number = |name: &str| {
        let value = fields.get(&format!("rlock_{name}"));
        value
            .and_then(|value| value.parse::<u64>().ok())
            .unwrap_or(0)
    };
    let now = Counts {
        at: Instant::now(),
        acquired: number("acquired"),
        released: number("released"),
    };
    let rate = |name: &str, count: u64, before: Option<u64>, since: Option<Instant>| {
        let (Some(before), Some(since)) = (before, since) else {
            return format!("{count} {name}");
        };
        let seconds = now.at.duration_since(since).as_secs_f64().max(0.001);
        format!(
            "{:.0}/s {name}",
            count.saturating_sub(before) as f64 / seconds
        )
    };
    let since = before.map(|before| before.at);
    let mut text = format!(
        "rlock {}  {} held, {} waiting  {}, {}  {} expired, {} forced\n",
        client.get_connection_info().addr(),
        number("held"),
        number("waiting"),
        rate(
            "acquired",
            now.acquired,
            before.map(|before| before.acquired),
            since
        ),
        rate(
            "released",
            now.released,
            before.map(|before| before.released),
            since
        ),
        number("expired"),
        number("forced"),
    );
    text.push_str(&format!(
        "oldest hold {}, oldest wait {}; waits of the last minute: up to {}\n\n",
        show(number("oldest_hold_ms")),
        show(number("oldest_wait_ms")),
        show(number("wait_max_last_minute_us") / 1000),
    ));
    let waited = Fields::each(server.ask(cmd("RLOCK.TOP").arg("COUNT").arg(count))?);
    let db = client.get_connection_info().redis_settings().db();
    let mut rows = Vec::new();
    for lock in waited {
        let (key, its_db) = (lock.text("key"), lock.number("db").unwrap_or(0));
        // Of other databases only what TOP shows is known here.
        let here = its_db == u64::try_from(db).unwrap_or(0);
        let (held, by) = if here {
            held(server, &key)?
        } else {
            ("-".into(), format!("(db {its_db})"))
        };
        rows.push([
            plain(&key),
            lock.number("waiters").unwrap_or(0).to_string(),
            lock.number("oldest-wait-ms")
                .map_or_else(|| "-".into(), show),
            held,
            by,
        ]);
    }
    if rows.is_empty() {
        text.push_str("nobody waits\n");
    } else {
        text.push_str(&table(
            ["KEY", "WAITERS", "OLDEST WAIT", "HELD", "HELD BY"],
            &rows,
        ));
    }
    Ok((text, now))
}

/// For how long, and by whom.
fn held(server: &mut Server, key: &str) -> Result<(String, String), Failure> {
    let Ok(lock) = Lock::ask(server, key) else {
        // It may be no lock any more.
        return Ok(("-".into(), "?".into()));
    };
    let longest = lock
        .holders
        .iter()
        .filter_map(|holder| holder.held_ms)
        .max();
    let held = longest.map_or_else(|| "-".into(), show);
    let by = match &lock.holders[..] {
        [] => format!("({})", lock.mode),
        [one] => short(&one.owner),
        [first, rest @ ..] => format!("{} and {} more", short(&first.owner), rest.len()),
    };
    Ok((held, by))
}

struct Screen;

impl Screen {
    fn enter() -> Result<Self, Failure> {
        terminal::enable_raw_mode()?;
        execute!(stdout(), terminal::EnterAlternateScreen, cursor::Hide)?;
        Ok(Self)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        _ = execute!(stdout(), cursor::Show, terminal::LeaveAlternateScreen);
        _ = terminal::disable_raw_mode();
    }
}

fn draw(text: &str) -> Result<(), Failure> {
    let (width, height) = size();
    let mut out = stdout().lock();
    queue!(out, cursor::MoveTo(0, 0))?;
    for (row, line) in text.lines().take(height).enumerate() {
        let line: String = line.chars().take(width).collect();
        let row = u16::try_from(row).unwrap_or(0);
        queue!(out, cursor::MoveTo(0, row), style::Print(line))?;
        queue!(out, terminal::Clear(terminal::ClearType::UntilNewLine))?;
    }
    queue!(out, terminal::Clear(terminal::ClearType::FromCursorDown))?;
    out.flush()?;
    Ok(())
}

fn quits_within(time: Duration) -> Result<bool, Failure> {
    let end = Instant::now() + time;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if !poll(left)? {
            return Ok(false);
        }
        match read()? {
            Event::Key(key) if key.kind == KeyEventKind::Press => {
                let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
                match key.code {
                    KeyCode::Char('q') | KeyCode::Esc => return Ok(true),
                    KeyCode::Char('c') if ctrl => return Ok(true),
                    _ => {}
                }
            }
            Event::Resize(..) => return Ok(false),
            _ => {}
        }
    }
}

//! One line on a terminal while the command waits: its place, and who has the lock.

use std::convert::Infallible;
use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use tokio::time::sleep;

use crate::args::Run;
use crate::exit::Failure;
use crate::locks::{Lock, Waiter, info, short, waiters};
use crate::table::{plain, size};
use crate::time::show;

/// Wiped away when it is dropped.
struct Line;

impl Line {
    fn show(&self, text: &str) {
        let text: String = text.chars().take(size().0 - 1).collect();
        _ = write!(stderr(), "\r\x1b[K{text}").and_then(|()| stderr().flush());
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        _ = write!(stderr(), "\r\x1b[K").and_then(|()| stderr().flush());
    }
}

/// Until it is dropped.
pub async fn waiting(url: &str, wanted: &Run, owner: &str) -> Infallible {
    if wanted.quiet || wanted.wait.is_none() || !stderr().is_terminal() {
        return std::future::pending().await;
    }
    // Who has it at once sees nothing.
    sleep(Duration::from_millis(300)).await;
    let (line, begun) = (Line, Instant::now());
    let mut connection = None;
    loop {
        let text = match look(url, &mut connection, &wanted.key, owner).await {
            Ok(text) => text,
            Err(error) => {
                connection = None;
                error.to_string()
            }
        };
        let waited = u64::try_from(begun.elapsed().as_millis()).unwrap_or(0);
        let (key, seconds) = (plain(&wanted.key), show(waited / 1000 * 1000));
        line.show(&format!("rlock: waiting for {key} ({seconds}): {text}"));
        sleep(Duration::from_secs(1)).await;
    }
}

async fn look(
    url: &str,
    kept: &mut Option<MultiplexedConnection>,
    key: &str,
    owner: &str,
) -> Result<String, Failure> {
    let connection = match kept {
        Some(connection) => connection,
        None => {
            let client = crate::server::client(url)?;
            kept.insert(client.get_multiplexed_async_connection().await?)
        }
    };
    let lock: redis::Value = info(key).query_async(connection).await?;
    let queue: redis::Value = waiters(key).query_async(connection).await?;
    let (lock, queue) = (Lock::of(lock), Waiter::all_of(queue));
    let place = queue.iter().position(|waiter| waiter.owner == owner);
    let place = place.map_or("asking".into(), |place| {
        format!("{} of {} in line", place + 1, queue.len())
    });
    let holders = match &lock.holders[..] {
        [] => lock.mode,
        [one] => {
            let held = one.held_ms.map_or(String::new(), |ms| {
                format!(" for {}", show(ms / 1000 * 1000))
            });
            format!("held by {}{held}", short(&one.owner))
        }
        [first, rest @ ..] => format!("held by {} and {} more", short(&first.owner), rest.len()),
    };
    Ok(format!("{place}, {holders}"))
}

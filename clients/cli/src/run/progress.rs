//! What is said while the command waits. On a terminal one line: its place, and who has the
//! lock. Elsewhere nothing, but that no server can be reached, and that once.

use std::convert::Infallible;
use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use redis::Client;
use redis::aio::MultiplexedConnection;
use rlock_client::finding::{self, Finding, find};
use rlock_client::library::Speech;
use rlock_client::{Locks, Quorum};
use tokio::time::sleep;

use crate::args::Run;
use crate::complain::{complain, put};
use crate::exit::{Failure, UNREACHABLE};
use crate::locks::{Lock, Waiter, info, short, waiters};
use crate::table::{plain, size};
use crate::time::show;

/// Wiped away when it is dropped.
struct Line;

impl Line {
    fn show(&self, text: &str) {
        let text: String = text.chars().take(size().0 - 1).collect();
        put(format!("\r\x1b[K{text}"));
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        put("\r\x1b[K".to_owned());
    }
}

/// Where it waits.
pub enum Place<'a> {
    Server {
        client: &'a Client,
        owner: &'a str,
        locks: &'a Locks,
    },
    Quorum(&'a Quorum),
}

/// Until it is dropped.
pub async fn waiting(wanted: &Run, place: Place<'_>) -> Infallible {
    if wanted.quiet || wanted.wait.is_none() {
        return std::future::pending().await;
    }
    let key = plain(&wanted.key);
    if !stderr().is_terminal() {
        loop {
            sleep(Duration::from_secs(1)).await;
            if let Some(why) = place.trouble().await {
                complain(&format!("waiting for {key}: {why}; retrying"));
                return std::future::pending().await;
            }
        }
    }
    // Who has it at once sees nothing.
    sleep(Duration::from_millis(300)).await;
    let (line, begun) = (Line, Instant::now());
    let mut connection = None;
    loop {
        let text = place.text(&mut connection, &wanted.key).await;
        let waited = u64::try_from(begun.elapsed().as_millis()).unwrap_or(0);
        let seconds = show(waited / 1000 * 1000);
        line.show(&format!("rlock: waiting for {key} ({seconds}): {text}"));
        sleep(Duration::from_secs(1)).await;
    }
}

impl Place<'_> {
    async fn text(&self, kept: &mut Option<Looking>, key: &str) -> String {
        match self {
            Self::Server { client, owner, .. } => {
                let seen = look(client, kept, key, owner).await;
                seen.unwrap_or_else(|error| {
                    *kept = None;
                    unreached(client, &error)
                })
            }
            Self::Quorum(quorum) => {
                let trouble = quorum.trouble();
                trouble.unwrap_or_else(|| "no majority of the servers yet".into())
            }
        }
    }

    /// Why there is no connection, if there is none.
    async fn trouble(&self) -> Option<String> {
        match self {
            Self::Server { locks, .. } if locks.is_connected() => None,
            Self::Server { client, .. } => {
                let error = connect(client).await.err()?;
                Some(unreached(client, &error))
            }
            Self::Quorum(quorum) => quorum.trouble(),
        }
    }
}

/// Without what else is in the URL.
fn unreached(client: &Client, error: &Failure) -> String {
    if error.code != UNREACHABLE {
        return error.to_string();
    }
    let address = client.get_connection_info().addr();
    format!("no connection to {address}: {error}")
}

async fn connect(client: &Client) -> Result<MultiplexedConnection, Failure> {
    let mut connection = client.get_multiplexed_async_connection().await?;
    _ = crate::server::name()
        .query_async::<redis::Value>(&mut connection)
        .await;
    Ok(connection)
}

/// A connection, and how its server is spoken to.
type Looking = (MultiplexedConnection, Speech);

async fn look(
    client: &Client,
    kept: &mut Option<Looking>,
    key: &str,
    owner: &str,
) -> Result<String, Failure> {
    let (connection, speech) = match kept {
        Some(looking) => looking,
        None => {
            let mut connection = connect(client).await?;
            let first = finding::first().query_async(&mut connection).await;
            let finding = Finding::new(false, false);
            let speech = find(&mut connection, finding, first).await?;
            kept.insert((connection, speech))
        }
    };
    let lock: redis::Value = info(speech, key).query_async(connection).await?;
    let lock = Lock::of(lock);
    let mut place = "trying".to_owned();
    // Without the module nobody knows who waits.
    if speech.has_module() {
        let queue: redis::Value = waiters(key).query_async(connection).await?;
        let queue = Waiter::all_of(queue);
        let found = queue.iter().position(|waiter| waiter.owner == owner);
        place = found.map_or("asking".into(), |place| {
            format!("{} of {} in the queue", place + 1, queue.len())
        });
    }
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

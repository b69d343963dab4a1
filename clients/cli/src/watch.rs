//! `rlock watch`: what happens to one lock, line by line.

use std::process::ExitCode;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, PushInfo, PushKind, Value, cmd};
use rlock_client::finding::{self, Finding};
use rlock_client::library::Speech;
use tokio::sync::mpsc::unbounded_channel;

use crate::args::Backend;
use crate::complain::complain;
use crate::exit::{Failure, Outcome, UNREACHABLE};
use crate::locks::{Holder, Lock, info, short};
use crate::server::{Fields, PATIENCE};
use crate::table::plain;

pub fn watch(client: &Client, backend: Backend, key: &str) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let end = runtime.block_on(async {
        tokio::select! {
            end = follow(client, backend, key) => end,
            _ = tokio::signal::ctrl_c() => Ok(ExitCode::SUCCESS),
        }
    });
    runtime.shutdown_background();
    end
}

async fn follow(client: &Client, backend: Backend, key: &str) -> Outcome {
    let (sender, mut pushes) = unbounded_channel();
    let config = AsyncConnectionConfig::new()
        .set_push_sender(sender)
        .set_connection_timeout(Some(PATIENCE))
        .set_response_timeout(Some(PATIENCE));
    let mut connection = client
        .get_multiplexed_async_connection_with_config(&config)
        .await?;
    _ = crate::server::name()
        .query_async::<Value>(&mut connection)
        .await;
    let mut speech = speech(&mut connection, backend).await?;
    // Who may not ask counts as one without events.
    let config = cmd("CONFIG")
        .arg("GET")
        .arg("notify-keyspace-events")
        .clone();
    let config: redis::RedisResult<Value> = config.query_async(&mut connection).await;
    let flags = Fields::of(config.unwrap_or(Value::Nil)).text("notify-keyspace-events");
    let sends = flags.contains('K') && flags.contains(['d', 'A']);
    let has_events = sends && speech.has_module();
    if has_events {
        let db = client.get_connection_info().redis_settings().db();
        connection
            .subscribe(format!("__keyspace@{db}__:{key}"))
            .await?;
    } else if !speech.has_module() {
        complain("the server has no module that would send events; looking ten times a second");
    } else {
        complain(
            "the server sends no events of its locks (CONFIG SET notify-keyspace-events Kd); \
             looking ten times a second",
        );
    }
    let mut tick = tokio::time::interval(Duration::from_millis(100));
    let mut seen = Seen::default();
    loop {
        let reply = info(&speech, key).query_async(&mut connection).await;
        let lock = match finding::reply(reply) {
            // Somebody has flushed the functions.
            Err(error) if error.is_unknown_function() => {
                speech = self::speech(&mut connection, backend).await?;
                continue;
            }
            lock => lock?,
        };
        // The events before this reply come first.
        while let Ok(push) = pushes.try_recv() {
            event(push)?;
        }
        seen.compare(Lock::of(lock), has_events, speech.has_module())?;
        tokio::select! {
            push = pushes.recv() => event(push.ok_or_else(gone)?)?,
            _ = tick.tick() => {}
        }
    }
}

async fn speech(
    connection: &mut MultiplexedConnection,
    backend: Backend,
) -> Result<Speech, Failure> {
    let finding = Finding::new(false, backend == Backend::Module);
    let first = finding::first().query_async(connection).await;
    Ok(finding::find(connection, finding, first).await?)
}

fn gone() -> Failure {
    Failure::new(UNREACHABLE, "the connection was closed")
}

/// An event of the lock, such as `forced`.
fn event(push: PushInfo) -> Result<(), Failure> {
    match (push.kind, push.data.get(1)) {
        (PushKind::Disconnection, _) => Err(gone()),
        (PushKind::Message, Some(Value::BulkString(event))) => {
            match String::from_utf8_lossy(event).strip_prefix("rlock.") {
                Some(event) => line(event),
                None => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// What was seen last.
#[derive(Default)]
struct Seen {
    holders: Option<Vec<Holder>>,
    waiters: u64,
}

impl Seen {
    /// Who came and who went. With events they show that something happened, and this whom
    /// it was about.
    /// Without the module nobody knows who waits.
    fn compare(&mut self, lock: Lock, has_events: bool, is_known: bool) -> Result<(), Failure> {
        let Some(before) = self.holders.replace(lock.holders.clone()) else {
            self.waiters = lock.waiters;
            for holder in &lock.holders {
                line(&format!("held by {}", one(holder)))?;
            }
            if lock.holders.is_empty() {
                line(&lock.mode)?;
            }
            if is_known {
                line(&format!("waiters {}", lock.waiters))?;
            }
            return Ok(());
        };
        let is_in = |holder: &Holder, all: &[Holder]| {
            all.iter().any(|other| {
                (&other.owner, &other.mode, other.token)
                    == (&holder.owner, &holder.mode, holder.token)
            })
        };
        for gone in before.iter().filter(|holder| !is_in(holder, &lock.holders)) {
            let word = if has_events { "  was held by" } else { "gone" };
            line(&format!("{word} {}", one(gone)))?;
        }
        for new in lock.holders.iter().filter(|holder| !is_in(holder, &before)) {
            let word = if has_events { "  held by" } else { "acquired" };
            line(&format!("{word} {}", one(new)))?;
        }
        if lock.waiters != self.waiters {
            line(&format!("waiters {} (were {})", lock.waiters, self.waiters))?;
            self.waiters = lock.waiters;
        }
        Ok(())
    }
}

fn one(holder: &Holder) -> String {
    let token = holder
        .token
        .map_or(String::new(), |token| format!(", token {token}"));
    let mode = match holder.mode.as_str() {
        "exclusive" => String::new(),
        mode => format!(", {mode}"),
    };
    format!("{}{mode}{token}", plain(&short(&holder.owner)))
}

fn line(text: &str) -> Result<(), Failure> {
    crate::say(&format!("{} {text}", time_of_day()))
}

/// The local time, to the ms.
fn time_of_day() -> String {
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    let seconds = now.as_secs().try_into().unwrap_or(0);
    // SAFETY: zeros are a value of it; both are on the stack, and may be read and written.
    let mut local: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: as above.
    unsafe { libc::localtime_r(&seconds, &mut local) };
    let ms = now.subsec_millis();
    format!(
        "{:02}:{:02}:{:02}.{ms:03}",
        local.tm_hour, local.tm_min, local.tm_sec
    )
}

//! What the checks are given: connections, and how to ask, to wait and to look.

use std::collections::HashMap;
use std::future::Future;
use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use redis::{cmd, AsyncConnectionConfig, Client, FromRedisValue, RedisResult, Value};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::session::{Notifications, Session};

pub const LEASE: u64 = 60_000;
pub const PATIENCE: Duration = Duration::from_secs(20);

pub type End = RedisResult<(Option<i64>, Notifications)>;

/// A number, a check, and what a check is given.
pub struct World {
    pub client: Client,
    pub losing: Client,
    pub admin: MultiplexedConnection,
    pub failed: bool,
}

pub fn owner() -> String {
    format!("check:{}", uuid::Uuid::new_v4())
}

/// Unmodified, but that it waits for longer than 500 ms for a reply.
pub fn patient() -> AsyncConnectionConfig {
    AsyncConnectionConfig::new().set_response_timeout(Some(PATIENCE))
}

impl World {
    pub fn line(&mut self, number: u8, what: &str, good: bool, seen: String) {
        self.failed |= !good;
        println!(
            "{} {number} {what}: {seen}",
            if good { "ok" } else { "not ok" }
        );
    }

    pub async fn session(&self) -> RedisResult<Session> {
        Session::open(&self.client, patient()).await
    }

    pub async fn ask<T: FromRedisValue>(&self, words: &str) -> RedisResult<T> {
        ask(&self.admin, words).await
    }

    pub async fn take(&self, key: &str) -> RedisResult<Value> {
        self.ask(&format!("RLOCK.ACQUIRE {key} other {LEASE}"))
            .await
    }

    pub async fn give(&self, key: &str) -> RedisResult<i64> {
        self.ask(&format!("RLOCK.RELEASE {key} other")).await
    }

    pub async fn mode(&self, key: &str) -> RedisResult<String> {
        let lock: HashMap<String, Value> = self.ask(&format!("RLOCK.INFO {key}")).await?;
        String::from_redis_value(lock["mode"].clone()).map_err(Into::into)
    }

    /// A number of the holder's; 0 if it is not there.
    pub async fn holder(&self, key: &str, field: &str) -> RedisResult<i64> {
        let mut lock: HashMap<String, Value> = self.ask(&format!("RLOCK.INFO {key}")).await?;
        let holders = lock.remove("holders").unwrap_or(Value::Nil);
        let mut holders: Vec<HashMap<String, Value>> = redis::from_redis_value(holders)?;
        let value = holders.pop().and_then(|mut holder| holder.remove(field));
        Ok(value.map_or(0, |value| redis::from_redis_value(value).unwrap_or(0)))
    }

    /// Who waits, by which connection.
    pub async fn queue(&self, key: &str) -> RedisResult<Vec<(String, i64)>> {
        let waiters: Vec<HashMap<String, Value>> =
            self.ask(&format!("RLOCK.WAITERS {key}")).await?;
        let one = |waiter: HashMap<String, Value>| {
            let owner = redis::from_redis_value(waiter["owner"].clone())?;
            Ok((owner, redis::from_redis_value(waiter["client-id"].clone())?))
        };
        waiters.into_iter().map(one).collect()
    }

    pub async fn waiting(&self, key: &str, many: usize) -> bool {
        until(async || self.queue(key).await.is_ok_and(|queue| queue.len() == many)).await
    }

    pub async fn connections(&self) -> RedisResult<u64> {
        let text: String = self.ask("INFO clients").await?;
        let (_, rest) = text.split_once("connected_clients:").unwrap();
        Ok(rest.lines().next().unwrap().trim().parse().unwrap())
    }
}

pub async fn ask<T: FromRedisValue>(by: &MultiplexedConnection, words: &str) -> RedisResult<T> {
    let mut words = words.split(' ');
    let mut command = cmd(words.next().unwrap());
    words.for_each(|word| {
        command.arg(word);
    });
    command.query_async(&mut by.clone()).await
}

pub async fn until(condition: impl AsyncFn() -> bool) -> bool {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        if condition().await {
            return true;
        }
        sleep(Duration::from_millis(10)).await;
    }
    false
}

/// Asks for it in a task of its own.
pub fn acquire(session: &Session, key: &str, owner: &str, wait: u64) -> JoinHandle<End> {
    let (session, key, owner) = (session.clone(), key.to_owned(), owner.to_owned());
    tokio::spawn(async move { session.acquire(&key, &owner, LEASE, wait, &[]).await })
}

pub async fn soon<T>(what: impl Future<Output = T>) -> T {
    timeout(PATIENCE, what).await.expect("in time")
}

pub async fn token(wait: JoinHandle<End>) -> i64 {
    let end = soon(wait).await.unwrap();
    end.map_or(-1, |(token, _)| token.unwrap_or(0))
}

pub async fn refused(wait: JoinHandle<End>) -> String {
    let end = soon(wait).await.unwrap();
    end.map_or_else(
        |error| error.to_string(),
        |(token, _)| format!("not refused: {token:?}"),
    )
}

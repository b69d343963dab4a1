//! Locks by a connection of their own, for all tasks of a process (redis-rs).

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use redis::aio::MultiplexedConnection;
use redis::{
    cmd, AsyncConnectionConfig, Client, ErrorKind, PushInfo, PushKind, RedisResult, Value,
};
use tokio::sync::mpsc::{unbounded_channel, UnboundedReceiver, UnboundedSender};

/// What is notified of a request, and of its hold: a word and what follows it.
pub type Notifications = UnboundedReceiver<(String, String)>;

/// By tag.
type Listeners = Arc<Mutex<HashMap<String, UnboundedSender<(String, String)>>>>;

#[derive(Clone)]
pub struct Session {
    pub connection: MultiplexedConnection,
    channel: Arc<str>,
    tags: Arc<AtomicU64>,
    notified: Listeners,
}

impl Session {
    // In docs/clients.md:
    /// The client's URL ends in `?protocol=resp3`.
    pub async fn open(client: &Client, config: AsyncConnectionConfig) -> RedisResult<Self> {
        let (sender, pushes) = unbounded_channel();
        let config = config.set_push_sender(sender);
        let connection = client.get_multiplexed_async_connection_with_config(&config);
        let mut session = Self {
            connection: connection.await?,
            channel: format!("rlock:{}", uuid::Uuid::new_v4()).into(),
            tags: Arc::default(),
            notified: Arc::default(),
        };
        session.connection.subscribe(&*session.channel).await?;
        tokio::spawn(on_message(pushes, session.notified.clone()));
        Ok(session)
    }

    // So far.

    /// The token, or none after `wait` ms; and where the loss of the hold is notified. A
    /// caller that drops this ends the wait.
    pub async fn acquire(
        &self,
        key: &str,
        owner: &str,
        lease: u64,
        wait: u64,
        more: &[&str],
    ) -> RedisResult<(Option<i64>, Notifications)> {
        let tag = self.tags.fetch_add(1, Ordering::Relaxed).to_string();
        let (sender, mut notified) = unbounded_channel();
        self.notified.lock().unwrap().insert(tag.clone(), sender);
        let mut ask = cmd("RLOCK.ACQUIRE");
        ask.arg(key).arg(owner).arg(lease).arg("QUEUE").arg(wait);
        ask.arg("NOTIFY")
            .arg(&*self.channel)
            .arg(tag)
            .arg("ONCE")
            .arg(more);
        let mut waits = Waits(Some((self.clone(), key.into(), owner.into())));
        let reply = ask.query_async(&mut self.connection.clone()).await;
        let end = match reply {
            Ok(Value::Int(token)) => Ok(Some(token)),
            Ok(_) => match notified.recv().await {
                Some((word, token)) if word == "granted" => Ok(token.parse().ok()),
                Some((word, _)) if word == "timeout" => Ok(None),
                notified => Err((ErrorKind::Client, "no lock", format!("{notified:?}")).into()),
            },
            Err(error) => Err(error),
        };
        waits.0 = None;
        end.map(|token| (token, notified))
    }
}

/// Somebody waits for a lock.
struct Waits(Option<(Session, String, String)>);

impl Drop for Waits {
    fn drop(&mut self) {
        let Some((mut session, key, owner)) = self.0.take() else {
            return;
        };
        tokio::spawn(async move {
            let mut cancel = cmd("RLOCK.CANCEL");
            let ended: i64 = cancel
                .arg(&key)
                .arg(&owner)
                .query_async(&mut session.connection)
                .await?;
            if ended == 0 {
                // The grant had gone out.
                let mut release = cmd("RLOCK.RELEASE");
                release
                    .arg(&key)
                    .arg(&owner)
                    .arg("IFHELD")
                    .exec_async(&mut session.connection)
                    .await?;
            }
            RedisResult::Ok(())
        });
    }
}

async fn on_message(mut pushes: UnboundedReceiver<PushInfo>, notified: Listeners) {
    while let Some(push) = pushes.recv().await {
        if push.kind == PushKind::Message {
            let (_, message): (String, String) =
                redis::from_redis_value(Value::Array(push.data)).unwrap();
            let mut words = message.splitn(3, ' ').map(String::from);
            let [word, tag, rest] = [(); 3].map(|()| words.next().unwrap_or_default());
            if let Some(to) = notified.lock().unwrap().get(&tag) {
                _ = to.send((word, rest));
            }
        } else if push.kind == PushKind::Disconnection {
            // With the connection all waits and all holds with WATCHDOG are over.
            for (_, to) in notified.lock().unwrap().drain() {
                _ = to.send(("lost".into(), "connection".into()));
            }
        }
    }
}

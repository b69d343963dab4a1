//! What has been made so far, by name, and who is asked for what.

use std::collections::HashMap;
use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rlock_client::{Error, Hold, Job, Locks, Quorum, QuorumHold, Sticky};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::sticky::Using;

pub type Answer = Result<Value, Value>;

#[derive(Default)]
pub struct Names {
    pub locks: HashMap<String, Locks>,
    pub jobs: HashMap<String, Job>,
    /// The last of each is the one that is released next.
    pub holds: HashMap<String, Vec<Hold>>,
    pub quorum_holds: HashMap<String, QuorumHold>,
    pub quorums: HashMap<String, Quorum>,
    pub cancels: HashMap<u64, oneshot::Sender<()>>,
    /// Holds that give way: what ends that.
    pub ways: HashMap<String, oneshot::Sender<()>>,
    pub stickies: HashMap<String, Sticky>,
    pub uses: HashMap<String, Using>,
}

#[derive(Clone)]
pub struct World(Arc<Mutex<Names>>);

impl World {
    pub fn start() -> Self {
        Self(Arc::default())
    }

    pub fn names(&self) -> MutexGuard<'_, Names> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn say(&self, line: Value) {
        let mut out = std::io::stdout().lock();
        // Nobody is left to report to if this fails.
        _ = writeln!(out, "{line}").and_then(|()| out.flush());
    }

    /// Each request runs by itself. What `cancel` refers to is there before the next line.
    pub fn serve(&self, request: Value) {
        let (cancel, cancelled) = oneshot::channel();
        let id = request["id"].as_u64().unwrap_or(0);
        if ["acquire", "scope", "give_way"].contains(&text(&request, "do").as_str()) {
            self.names().cancels.insert(id, cancel);
        }
        let world = self.clone();
        tokio::spawn(async move {
            let answer = world.answer(&request, cancelled).await;
            world.names().cancels.remove(&id);
            let mut line = match answer {
                Ok(done) => json!({"ok": done}),
                Err(error) => error,
            };
            line["id"] = request["id"].clone();
            world.say(line);
        });
    }

    async fn answer(&self, request: &Value, cancelled: oneshot::Receiver<()>) -> Answer {
        let done = Ok(json!({}));
        match text(request, "do").as_str() {
            "hello" => Ok(json!({"client": "rust", "needs": [
                "read_write", "permits", "many", "job", "again", "acks", "max", "scope", "notified", "quorum",
                "cluster", "callback", "threads", "backend", "patience", "wanted",
                "give_way", "sticky", "use_within", "use_cancel",
            ]})),
            "open" => self.open(request).and(done),
            "backend" => self.backend(request),
            "acquire" if self.names().quorums.contains_key(&text(request, "locks")) => {
                self.acquire_by_quorum(request, cancelled).await
            }
            "acquire" => self.acquire(request, cancelled).await,
            "scope" => self.scope(request, cancelled).await,
            "count" => self.count(request).await,
            "cancel" => {
                let id = request["acquire"].as_u64().unwrap_or(0);
                let cancel = self.names().cancels.remove(&id);
                cancel.map(|cancel| cancel.send(()));
                done
            }
            "quorum" => self.quorum(request).and(done),
            "release" => self.release(request).await,
            "callback" => self.callback(request).and(done),
            "renew" => {
                let hold = self.hold(request)?;
                let lease = duration(request, "lease").unwrap_or(Duration::from_secs(10));
                hold.renew(lease).await.map_err(failed).and(done)
            }
            "again" => {
                let hold = self.hold(request)?;
                let mut names = self.names();
                names
                    .holds
                    .entry(text(request, "hold"))
                    .or_default()
                    .push(hold);
                done
            }
            "state" => {
                let names = self.names();
                let hold = names
                    .holds
                    .get(&text(request, "hold"))
                    .and_then(|holds| holds.last());
                let by_quorum = names.quorum_holds.get(&text(request, "hold"));
                let by_quorum = by_quorum.and_then(QuorumHold::reason);
                let lost = hold.and_then(Hold::reason).or(by_quorum);
                Ok(json!({"lost": lost.map(rlock_client::Reason::as_str)}))
            }
            "wanted" => self.wanted(request).await,
            "give_way" => self.give_way(request, cancelled).await,
            "sticky" => self.sticky(request).and(done),
            "use" => self.use_(request).await,
            "use_token" => self.use_token(request).await,
            "use_state" => self.use_state(request),
            "use_end" => self.use_end(request).await,
            "use_cancel" => self.use_cancel(request).and(done),
            "use_many" => self.use_many(request).await,
            "sticky_close" => {
                let sticky = self.sticky_of(request)?;
                sticky.close().await;
                done
            }
            "close" => {
                let quorum = self.names().quorums.get(&text(request, "locks")).cloned();
                if let Some(quorum) = quorum {
                    quorum.close().await;
                    return done;
                }
                let locks = self.locks(request)?;
                locks.close().await;
                done
            }
            other => Err(argument(&format!("this driver does not {other}"))),
        }
    }

    pub async fn release(&self, request: &Value) -> Answer {
        let name = text(request, "hold");
        if let Some(way) = self.names().ways.remove(&name) {
            _ = way.send(());
            return Ok(json!({}));
        }
        let by_quorum = self.names().quorum_holds.remove(&name);
        if let Some(hold) = by_quorum {
            return hold.release().await.map_err(failed).map(|()| json!({}));
        }
        let hold = self.names().holds.get_mut(&name).and_then(Vec::pop);
        match hold {
            Some(hold) => hold.release().await.map_err(failed).map(|()| json!({})),
            None => Ok(json!({})),
        }
    }

    pub fn locks(&self, request: &Value) -> Result<Locks, Value> {
        let locks = self.names().locks.get(&text(request, "locks")).cloned();
        locks.ok_or_else(|| argument("no locks of this name"))
    }

    /// One more hold of it, for as long as it is used.
    pub fn hold(&self, request: &Value) -> Result<Hold, Value> {
        let names = self.names();
        let hold = names
            .holds
            .get(&text(request, "hold"))
            .and_then(|holds| holds.last());
        hold.ok_or_else(|| argument("no hold of this name"))?
            .again()
            .map_err(failed)
    }

    pub async fn close(&self) {
        let quorums: Vec<Quorum> = self.names().quorums.values().cloned().collect();
        for quorum in quorums {
            _ = tokio::time::timeout(Duration::from_secs(2), quorum.close()).await;
        }
        let locks: Vec<Locks> = self.names().locks.values().cloned().collect();
        for locks in locks {
            _ = tokio::time::timeout(Duration::from_secs(5), locks.close()).await;
        }
    }
}

pub fn text(request: &Value, name: &str) -> String {
    request[name].as_str().unwrap_or_default().into()
}

pub fn duration(request: &Value, name: &str) -> Option<Duration> {
    request[name].as_u64().map(Duration::from_millis)
}

pub fn argument(text: &str) -> Value {
    json!({"error": "argument", "text": text})
}

pub fn failed(error: Error) -> Value {
    let text = error.to_string();
    let kind = match &error {
        Error::NotAcquired { key, held_by } => {
            return json!({"error": "not_acquired", "text": text, "key": key, "held_by": held_by});
        }
        Error::Lost(reason) => {
            return json!({"error": "lost", "text": text, "reason": reason.as_str()});
        }
        Error::Deadlock(_) => "deadlock",
        Error::HeldByJob(_) => "held_by_job",
        Error::Refused { code, .. } => {
            return json!({"error": "refused", "text": text, "code": code});
        }
        Error::Connection(_) => "connection",
        Error::Argument(_) => "argument",
        _ => "other",
    };
    json!({"error": kind, "text": text})
}

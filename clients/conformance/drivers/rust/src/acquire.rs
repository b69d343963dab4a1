//! Acquisitions, and the scope.

use std::time::Duration;

use rlock_client::{Acquire, Reason};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::world::{Answer, World, argument, duration, failed, text};

impl World {
    pub fn asking(&self, request: &Value) -> Result<Acquire, Value> {
        let locks = self.locks(request)?;
        let mut ask = match request["keys"].as_array() {
            Some(keys) => {
                let key = |key: &Value| key.as_str().unwrap_or_default().to_owned();
                locks.acquire_many(keys.iter().map(key))
            }
            None => locks.acquire(text(request, "key")),
        };
        ask = match request["wait"].as_i64() {
            None => ask,
            Some(-1) => ask.wait_forever(),
            Some(ms) => ask.wait(Duration::from_millis(u64::try_from(ms).map_err(wrong)?)),
        };
        if !request["lease"].is_null() {
            let lease = duration(request, "lease");
            ask = ask.lease(lease.ok_or_else(|| argument("no such lease"))?);
        }
        if request["watchdog"] == false {
            ask = ask.plain();
        }
        if let Some(max) = duration(request, "max") {
            ask = ask.max(max);
        }
        if let Some(limit) = request["limit"].as_u64() {
            let permits = request["permits"].as_u64().unwrap_or(1);
            let number = |n: u64| u32::try_from(n).map_err(wrong);
            ask = ask.permits(number(limit)?, number(permits)?);
        }
        ask = match text(request, "mode").as_str() {
            "read" => ask.read(),
            "write" => ask.write(),
            _ => ask,
        };
        if let Some(job) = request["job"].as_str() {
            let mut names = self.names();
            let job = names.jobs.entry(job.into()).or_insert_with(|| locks.job());
            ask = ask.job(job);
        }
        if let Some(n) = request["acks"].as_u64() {
            let within = duration(request, "acks_ms").unwrap_or(Duration::from_secs(1));
            ask = ask.acks(u32::try_from(n).map_err(wrong)?, within);
        }
        Ok(ask)
    }

    pub async fn acquire(&self, request: &Value, cancelled: oneshot::Receiver<()>) -> Answer {
        let ask = self.asking(request)?.into_future();
        let hold = tokio::select! {
            end = ask => end.map_err(failed)?,
            Ok(()) = cancelled => return Err(json!({"error": "cancelled", "text": ""})),
        };
        let name = text(request, "hold");
        let answer = json!({"token": hold.token(), "owner": hold.owner()});
        self.report_loss(&name, hold.lost());
        self.names().holds.insert(name, vec![hold]);
        Ok(answer)
    }

    pub fn report_loss(&self, name: &str, lost: impl Future<Output = Reason> + Send + 'static) {
        let (world, name) = (self.clone(), name.to_owned());
        tokio::spawn(async move {
            let reason = lost.await.as_str();
            world.say(json!({"event": "lost", "hold": name, "reason": reason}));
        });
    }

    pub async fn scope(&self, request: &Value, cancelled: oneshot::Receiver<()>) -> Answer {
        let body = duration(request, "body").unwrap_or_default();
        let fails = request["fail"] == true;
        let run = |_| async move {
            tokio::time::sleep(body).await;
            if fails { Err("the body's own") } else { Ok(()) }
        };
        let end = tokio::select! {
            end = self.asking(request)?.run(run) => end,
            Ok(()) = cancelled => return Err(json!({"error": "cancelled", "text": ""})),
        };
        match end {
            Ok(Ok(())) => Ok(json!({"body": "done"})),
            Ok(Err(own)) => Err(json!({"error": "other", "text": own})),
            Err(rlock_client::Error::Lost(_)) => Ok(json!({"body": "stopped"})),
            Err(error) => Err(failed(error)),
        }
    }
}

fn wrong(error: impl std::error::Error) -> Value {
    argument(&error.to_string())
}

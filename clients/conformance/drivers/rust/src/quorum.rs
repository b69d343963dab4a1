//! Locks by quorum.

use std::time::Duration;

use rlock_client::{Quorum, QuorumAcquire};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::open::client;
use crate::world::{Answer, World, argument, duration, failed, text};

impl World {
    pub fn quorum(&self, request: &Value) -> Answer {
        let servers = request["servers"].as_array();
        let one = |server: &Value| {
            let mut address = request.clone();
            (address["host"], address["port"]) = (server[0].clone(), server[1].clone());
            client(&address)
        };
        let clients = servers.into_iter().flatten().map(one);
        let clients = clients.collect::<Result<Vec<_>, _>>()?;
        let mut names = self.names();
        names
            .quorums
            .insert(text(request, "locks"), Quorum::new(clients));
        Ok(json!({}))
    }

    pub fn asking_quorum(&self, request: &Value) -> Result<QuorumAcquire, Value> {
        let quorum = self.names().quorums.get(&text(request, "locks")).cloned();
        let quorum = quorum.ok_or_else(|| argument("no locks of this name"))?;
        let mut ask = quorum.acquire(text(request, "key"));
        ask = match request["wait"].as_i64() {
            None => ask,
            Some(-1) => ask.wait_forever(),
            Some(ms) => ask.wait(Duration::from_millis(ms.unsigned_abs())),
        };
        if let Some(lease) = duration(request, "lease") {
            ask = ask.lease(lease);
        }
        Ok(ask)
    }

    pub async fn acquire_by_quorum(
        &self,
        request: &Value,
        cancelled: oneshot::Receiver<()>,
    ) -> Answer {
        let ask = self.asking_quorum(request)?;
        let hold = tokio::select! {
            end = ask.into_future() => end.map_err(failed)?,
            Ok(()) = cancelled => return Err(json!({"error": "cancelled", "text": ""})),
        };
        let name = text(request, "hold");
        let answer = json!({"token": hold.token(), "owner": hold.owner()});
        self.report_loss(&name, hold.lost());
        self.names().quorum_holds.insert(name, hold);
        Ok(answer)
    }
}

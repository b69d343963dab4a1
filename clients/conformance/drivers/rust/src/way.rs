//! A hold gives way.

use rlock_client::{Error, Hold, Reason};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::world::{Answer, World, argument, duration, failed, text};

impl World {
    pub async fn give_way(&self, request: &Value, cancelled: oneshot::Receiver<()>) -> Answer {
        let name = text(request, "hold");
        if self.names().quorum_holds.contains_key(&name) {
            return Err(argument("a hold by quorum has no such thing"));
        }
        let hold = self.names().holds.get_mut(&name).and_then(Vec::pop);
        let mut hold = hold.ok_or_else(|| argument("no hold of this name"))?;
        let (release, released) = oneshot::channel();
        self.names().ways.insert(name.clone(), release);
        let end = given(&mut hold, request, released, cancelled).await;
        let mut names = self.names();
        names.ways.remove(&name);
        let answer = json!({"token": hold.token(), "owner": hold.owner()});
        names.holds.entry(name).or_default().push(hold);
        drop(names);
        end.map(|gave| {
            let mut answer = answer;
            answer["gave"] = json!(gave);
            answer
        })
    }
}

/// As a program does that wants to release it meanwhile: it drops the future.
async fn given(
    hold: &mut Hold,
    request: &Value,
    released: oneshot::Receiver<()>,
    cancelled: oneshot::Receiver<()>,
) -> Result<bool, Value> {
    let mut way = hold.give_way();
    if let Some(wait) = duration(request, "wait") {
        way = way.wait(wait);
    }
    if let Some(least) = duration(request, "least") {
        way = way.least(least);
    }
    tokio::select! {
        end = way.into_future() => end.map_err(failed),
        Ok(()) = released => Err(failed(Error::Lost(Reason::Released))),
        Ok(()) = cancelled => Err(json!({"error": "cancelled", "text": ""})),
    }
}

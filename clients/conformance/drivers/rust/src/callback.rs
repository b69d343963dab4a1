//! What the program does when a hold is lost.

use std::pin::Pin;
use std::time::Duration;

use rlock_client::Reason;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::world::{Answer, World, argument, duration, failed, text};

impl World {
    /// A task of the program's own, which waits for the loss.
    pub fn callback(&self, request: &Value) -> Answer {
        let name = text(request, "hold");
        let lost = self.loss(&name)?;
        let (world, request) = (self.clone(), request.clone());
        tokio::spawn(async move {
            lost.await;
            world.say(json!({"event": "callback", "hold": name, "begun": request["does"]}));
            let mut said = json!({"event": "callback", "hold": name, "end": "ok"});
            if let Err(error) = world.does(&request).await {
                said["end"] = error["error"].clone();
                said["text"] = error["text"].clone();
            }
            world.say(said);
            assert_ne!(text(&request, "does"), "throw", "the callback failed");
        });
        Ok(json!({}))
    }

    /// Of a hold on one server, or by quorum.
    fn loss(&self, name: &str) -> Result<Pin<Box<dyn Future<Output = Reason> + Send>>, Value> {
        let names = self.names();
        if let Some(hold) = names.quorum_holds.get(name) {
            return Ok(Box::pin(hold.lost()));
        }
        let hold = names.holds.get(name).and_then(|holds| holds.last());
        let hold = hold.ok_or_else(|| argument("no hold of this name"))?;
        Ok(Box::pin(hold.lost()))
    }

    async fn does(&self, request: &Value) -> Answer {
        let of = json!({"hold": request["of"]});
        match text(request, "does").as_str() {
            "release" => self.release(&of).await.map(drop)?,
            "renew" => {
                let hold = self.hold(&of)?;
                hold.renew(Duration::from_secs(10)).await.map_err(failed)?;
            }
            "acquire" => {
                let (_never, cancelled) = oneshot::channel();
                let mut asked = request.clone();
                asked["hold"] = request["of"].clone();
                let locks = text(request, "locks");
                let by_quorum = self.names().quorums.contains_key(&locks);
                if by_quorum {
                    self.acquire_by_quorum(&asked, cancelled).await?;
                } else {
                    self.acquire(&asked, cancelled).await?;
                }
            }
            "close" => self.locks(request)?.close().await,
            // Not by tokio: it stands in the way of whatever shares its thread.
            "block" => std::thread::sleep(duration(request, "ms").unwrap_or_default()),
            _ => {}
        }
        Ok(json!({}))
    }
}

//! What the program does when a hold is lost.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::world::{Answer, World, argument, duration, failed, text};

impl World {
    /// A task of the program's own, which waits for the loss.
    pub fn callback(&self, request: &Value) -> Answer {
        let name = text(request, "hold");
        let lost = {
            let names = self.names();
            let hold = names.holds.get(&name).and_then(|holds| holds.last());
            hold.ok_or_else(|| argument("no hold of this name"))?.lost()
        };
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

    async fn does(&self, request: &Value) -> Answer {
        let of = json!({"hold": request["of"]});
        match text(request, "does").as_str() {
            "release" => {
                let hold = self
                    .names()
                    .holds
                    .get_mut(&text(request, "of"))
                    .and_then(Vec::pop);
                let hold = hold.ok_or_else(|| argument("no hold of this name"))?;
                hold.release().await.map_err(failed)?;
            }
            "renew" => {
                let hold = self.hold(&of)?;
                hold.renew(Duration::from_secs(10)).await.map_err(failed)?;
            }
            "acquire" => {
                let (_never, cancelled) = oneshot::channel();
                let mut asked = request.clone();
                asked["hold"] = request["of"].clone();
                self.acquire(&asked, cancelled).await?;
            }
            // Not by tokio: it stands in the way of whatever shares its thread.
            "block" => std::thread::sleep(duration(request, "ms").unwrap_or_default()),
            _ => {}
        }
        Ok(json!({}))
    }
}

//! Whether somebody waits for a hold.

use std::time::Duration;

use rlock_client::{Hold, QuorumHold};
use serde_json::{Value, json};

use crate::world::{Answer, World, duration, text};

impl World {
    pub async fn wanted(&self, request: &Value) -> Answer {
        let name = text(request, "hold");
        let wanted = match duration(request, "within") {
            None => self.of_hold(&name, Hold::is_wanted).unwrap_or(false),
            Some(within) => {
                let wanted = tokio::time::timeout(within, self.until_wanted(&name));
                wanted.await.unwrap_or(false)
            }
        };
        Ok(json!({"wanted": wanted}))
    }

    async fn until_wanted(&self, name: &str) -> bool {
        match self.of_hold(name, Hold::wanted) {
            Some(wanted) => wanted.await,
            None => self.until_quorum_hold_is_over(name).await,
        }
    }

    fn of_hold<T>(&self, name: &str, ask: impl FnOnce(&Hold) -> T) -> Option<T> {
        let names = self.names();
        let hold = names.holds.get(name).and_then(|holds| holds.last());
        hold.map(ask)
    }

    /// One by quorum is never wanted.
    async fn until_quorum_hold_is_over(&self, name: &str) -> bool {
        let is_held = || {
            let names = self.names();
            let hold = names.quorum_holds.get(name);
            hold.is_some_and(|hold: &QuorumHold| !hold.is_lost())
        };
        while is_held() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        false
    }
}

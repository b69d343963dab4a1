//! A number in a file, which only who has the lock may change.

use std::time::{Duration, Instant};

use rlock_client::{Error, Hold, QuorumHold};
use serde_json::{Value, json};

use crate::world::{Answer, World, failed, text};

impl World {
    pub async fn count(&self, request: &Value) -> Answer {
        let time = Duration::from_millis(request["for"].as_u64().unwrap_or(1000));
        let (end, path) = (Instant::now() + time, text(request, "file"));
        let mut done = 0_u64;
        let failed_to_count = |error| json!({"error": "other", "text": format!("{path}: {error}")});
        if request["sticky"].is_string() && !request["key"].is_string() {
            let sticky = self.sticky_of(request)?;
            while Instant::now() < end {
                let counted = sticky.run(|_| async { one_more(&path) }).await;
                counted.map_err(failed)?.map_err(failed_to_count)?;
                done += 1;
            }
            return Ok(json!({"done": done}));
        }
        while Instant::now() < end {
            let hold = match self.one(request).await? {
                Ok(hold) => hold,
                Err(Error::NotAcquired { .. }) => continue,
                Err(error) => return Err(failed(error)),
            };
            one_more(&path).map_err(failed_to_count)?;
            done += 1;
            match hold {
                One::Hold(hold) => hold.release().await,
                One::Quorum(hold) => hold.release().await,
            }
            .map_err(failed)?;
        }
        Ok(json!({"done": done}))
    }

    async fn one(&self, request: &Value) -> Result<Result<One, Error>, Value> {
        if self.names().quorums.contains_key(&text(request, "locks")) {
            return Ok(self.asking_quorum(request)?.await.map(One::Quorum));
        }
        Ok(self.asking(request)?.await.map(One::Hold))
    }
}

enum One {
    Hold(Hold),
    Quorum(QuorumHold),
}

fn one_more(path: &str) -> std::io::Result<()> {
    let text = std::fs::read_to_string(path)?;
    let number: u64 = text.trim().parse().map_err(std::io::Error::other)?;
    std::fs::write(path, (number + 1).to_string())
}

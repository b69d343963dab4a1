//! The first program: one lock, waited for for ten seconds.

use std::time::Duration;

use rlock_client::{Error, Locks};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("REDIS_URL").unwrap_or_else(|_| "redis://127.0.0.1/".into());
    let locks = Locks::new(redis::Client::open(url)?);

    let hold = match locks.acquire("jobs").wait(Duration::from_secs(10)).await {
        Ok(hold) => hold,
        Err(Error::NotAcquired { .. }) => return Err("somebody else has it".into()),
        Err(error) => return Err(error.into()),
    };
    println!("have it, with token {}", hold.token());

    tokio::select! {
        () = work() => println!("done"),
        reason = hold.lost() => println!("stopped: the lock was lost ({reason})"),
    }
    hold.release().await?;
    Ok(())
}

async fn work() {
    tokio::time::sleep(Duration::from_millis(100)).await;
}

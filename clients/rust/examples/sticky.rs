//! Many small pieces of work under one lock, which stays here between them.

use rlock_client::{Error, Locks, Sticky};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("REDIS_URL").unwrap_or_else(|_| "redis://127.0.0.1/".into());
    let locks = Locks::new(redis::Client::open(url)?);
    let ledger = locks.sticky("ledger").build()?; // once for each process

    for amount in 1..=1000 {
        book(&ledger, amount).await?;
    }
    println!("booked");
    ledger.close().await;
    Ok(())
}

async fn book(ledger: &Sticky, amount: u32) -> Result<(), Error> {
    ledger.run(|_| async move { write(amount).await }).await
}

async fn write(_amount: u32) {}

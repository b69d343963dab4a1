//! What a lock that nobody else wants costs, beside two PINGs of redis-rs on a multiplexed
//! connection: the same number of round trips.
//!
//! `cargo run --release --example cost [threads]`

use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use rlock_client::Locks;

const ROUNDS: u32 = 2000;

type Failed = Box<dyn std::error::Error>;

fn main() -> Result<(), Failed> {
    let threads = std::env::args().nth(1).map_or(Ok(1), |text| text.parse())?;
    let runtime = match threads {
        1 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    }
    .enable_all()
    .build()?;
    runtime.block_on(async { tokio::spawn(compare()).await?.map_err(Into::into) })
}

async fn compare() -> Result<(), String> {
    let failed = |error: &dyn std::error::Error| error.to_string();
    let url = std::env::var("REDIS_URL").unwrap_or_else(|_| "redis://127.0.0.1/".into());
    let client = redis::Client::open(url).map_err(|error| failed(&error))?;
    let connection = client.get_multiplexed_async_connection().await;
    let mut connection = connection.map_err(|error| failed(&error))?;
    let locks = Locks::new(client);
    let (mut pings, mut both) = (Vec::new(), Vec::new());
    // In turns, so that what else the machine does meets them alike.
    for _ in 0..11 {
        let ping = two_pings(&mut connection).await;
        pings.push(ping.map_err(|error| failed(&error))?);
        both.push(one_lock(&locks).await.map_err(|error| failed(&error))?);
    }
    pings.sort_unstable();
    both.sort_unstable();
    let (ping, lock) = (pings[pings.len() / 2], both[both.len() / 2]);
    println!("two PINGs           {ping:.1?}");
    println!("acquire and release {lock:.1?}");
    println!(
        "times               {:.2}",
        lock.as_secs_f64() / ping.as_secs_f64()
    );
    Ok(())
}

async fn two_pings(connection: &mut MultiplexedConnection) -> redis::RedisResult<Duration> {
    let begun = Instant::now();
    for _ in 0..ROUNDS {
        for _ in 0..2 {
            let _: () = redis::cmd("PING").query_async(connection).await?;
        }
    }
    Ok(begun.elapsed() / ROUNDS)
}

async fn one_lock(locks: &Locks) -> Result<Duration, rlock_client::Error> {
    let begun = Instant::now();
    for _ in 0..ROUNDS {
        locks.acquire("cost").await?.release().await?;
    }
    Ok(begun.elapsed() / ROUNDS)
}

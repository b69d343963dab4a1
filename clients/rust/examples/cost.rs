//! What a lock that nobody else wants costs, beside two PINGs of redis-rs on a multiplexed
//! connection, and beside the two commands themselves, sent by redis-rs alone. And what a use of a sticky
//! lock costs, beside SET NX PX and DEL.
//!
//! `cargo run --release --example cost [threads]`

use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use rlock_client::{Locks, Sticky};

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
    let info = client.get_connection_info().clone();
    let settings = info.redis_settings().clone();
    let resp3 = settings.set_protocol(redis::ProtocolVersion::RESP3);
    let client = redis::Client::open(info.set_redis_settings(resp3));
    let client = client.map_err(|error| failed(&error))?;
    let connection = client.get_multiplexed_async_connection().await;
    let mut connection = connection.map_err(|error| failed(&error))?;
    let locks = Locks::new(client);
    let channel = "cost";
    let subscribed = connection.subscribe(channel).await;
    subscribed.map_err(|error| failed(&error))?;
    let sticky = locks.sticky("sticky").build();
    let sticky = sticky.map_err(|error| failed(&error))?;
    let (mut pings, mut bare, mut both) = (Vec::new(), Vec::new(), Vec::new());
    let (mut plain, mut uses) = (Vec::new(), Vec::new());
    // In turns, so that what else the machine does meets them alike.
    for _ in 0..11 {
        let ping = two_pings(&mut connection).await;
        pings.push(ping.map_err(|error| failed(&error))?);
        let commands = two_commands(&mut connection, channel).await;
        bare.push(commands.map_err(|error| failed(&error))?);
        both.push(one_lock(&locks).await.map_err(|error| failed(&error))?);
        let commands = set_and_del(&mut connection).await;
        plain.push(commands.map_err(|error| failed(&error))?);
        uses.push(one_use(&sticky).await.map_err(|error| failed(&error))?);
    }
    let ping = median(&mut pings);
    for (what, times) in [
        ("two PINGs", &mut pings),
        ("the two commands", &mut bare),
        ("acquire and release", &mut both),
        ("SET NX PX and DEL", &mut plain),
        ("a sticky lock's use", &mut uses),
    ] {
        let time = median(times);
        let by = time.as_secs_f64() / ping.as_secs_f64();
        println!("{what:<20} {time:>9.1?}  {by:.4}");
    }
    Ok(())
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
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

async fn two_commands(
    connection: &mut MultiplexedConnection,
    channel: &str,
) -> redis::RedisResult<Duration> {
    let begun = Instant::now();
    for tag in 0..ROUNDS {
        let mut acquire = redis::cmd("RLOCK.ACQUIRE");
        acquire.arg("bare").arg("owner").arg(10_000);
        acquire.arg("NOTIFY").arg(channel).arg(tag);
        acquire.arg("WATCHDOG").arg("ONCE");
        let token: u64 = acquire.query_async(connection).await?;
        let mut release = redis::cmd("RLOCK.RELEASE");
        release.arg("bare").arg("owner").arg("IFTOKEN").arg(token);
        let _: u64 = release.query_async(connection).await?;
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

async fn set_and_del(connection: &mut MultiplexedConnection) -> redis::RedisResult<Duration> {
    let begun = Instant::now();
    for _ in 0..ROUNDS {
        let mut set = redis::cmd("SET");
        set.arg("set").arg("owner").arg("NX").arg("PX").arg(10_000);
        let _: Option<String> = set.query_async(connection).await?;
        let _: u64 = redis::cmd("DEL").arg("set").query_async(connection).await?;
    }
    Ok(begun.elapsed() / ROUNDS)
}

async fn one_use(sticky: &Sticky) -> Result<Duration, rlock_client::Error> {
    const MANY: u32 = 100 * ROUNDS;
    let begun = Instant::now();
    for _ in 0..MANY {
        sticky.run(|_| std::future::ready(())).await?;
    }
    Ok(begun.elapsed() / MANY)
}

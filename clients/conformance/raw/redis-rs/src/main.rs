//! What hurts clients without QUEUE, NOTIFY, ONCE and CANCEL does not hurt redis-rs.

mod session;
mod world;

use std::collections::HashSet;
use std::time::Duration;

use redis::{Client, RedisError, RedisResult, Value};
use tokio::time::sleep;

use world::{acquire, ask, owner, patient, refused, soon, token, until, World, LEASE};

async fn many_waits(world: &mut World, number: u8) -> RedisResult<()> {
    let session = world.session().await?;
    let keys: Vec<(String, String)> = (0..200).map(|i| (format!("many:{i}"), owner())).collect();
    for (key, _) in &keys {
        world.take(key).await?;
    }
    let before = world.connections().await?;
    let asked = keys
        .iter()
        .map(|(key, mine)| acquire(&session, key, mine, LEASE));
    let asked: Vec<_> = asked.collect();
    for (key, _) in &keys {
        world.waiting(key, 1).await;
    }
    let beside: String = ask(&session.connection, "SET beside 1").await?;
    let grown = world.connections().await? - before;
    for (key, _) in &keys {
        world.give(key).await?;
    }
    let mut tokens = HashSet::new();
    for wait in asked {
        tokens.insert(token(wait).await);
    }
    let mut freed = 0;
    for (key, mine) in &keys {
        let left: i64 = ask(&session.connection, &format!("RLOCK.RELEASE {key} {mine}")).await?;
        freed += i64::from(left == 0);
    }
    let seen = format!(
        "SET {beside}, {} granted, {freed} released, {grown} more connections",
        tokens.len()
    );
    let good = beside == "OK" && tokens.len() == 200 && freed == 200 && grown == 0;
    world.line(
        number,
        "200 waits on one connection, beside other commands",
        good,
        seen,
    );
    Ok(())
}

async fn retried(world: &mut World, number: u8) -> RedisResult<()> {
    let session = world.session().await?;
    let (key, mine) = ("again", owner());
    world.take(key).await?;
    let first = acquire(&session, key, &mine, LEASE);
    world.waiting(key, 1).await;
    let last = acquire(&session, key, &owner(), LEASE);
    world.waiting(key, 2).await;
    let again = acquire(&session, key, &mine, LEASE);
    let older = refused(first).await;
    let place = world
        .queue(key)
        .await?
        .iter()
        .position(|(by, _)| *by == mine);
    world.give(key).await?;
    let token_again = token(again).await;
    let holds = world.holder(key, "holds").await?;
    world
        .ask::<i64>(&format!("RLOCK.RELEASE {key} {mine}"))
        .await?;
    let after = token(last).await;
    let superseded = older.contains("SUPERSEDED");
    let good =
        superseded && place == Some(0) && token_again > 0 && holds == 1 && after > token_again;
    let seen = format!(
        "the older superseded: {superseded}; place {place:?}, token {token_again}, {holds} hold, the one behind {after}"
    );
    world.line(
        number,
        "a queued request that is retried keeps its place",
        good,
        seen,
    );
    Ok(())
}

/// redis-rs waits 500 ms for a reply, and leaves the request where it is.
async fn blocked_for_longer(world: &mut World, number: u8) -> RedisResult<()> {
    let (key, mine) = ("block", owner());
    world.take(key).await?;
    let words = format!("RLOCK.ACQUIRE {key} {mine} {LEASE} BLOCK 30000 ONCE");
    let hasty = world.client.get_multiplexed_async_connection().await?;
    let gave_up = ask::<Value>(&hasty, &words)
        .await
        .is_err_and(|error| error.is_timeout());
    let session = world.session().await?;
    let last = acquire(&session, key, &owner(), LEASE);
    world.waiting(key, 2).await;
    let config = patient();
    let other = world
        .client
        .get_multiplexed_async_connection_with_config(&config)
        .await?;
    let first = world.queue(key).await?[0].1;
    let again = tokio::spawn(async move { ask::<i64>(&other, &words).await });
    let moved = until(async || {
        world
            .queue(key)
            .await
            .is_ok_and(|queue| queue[0].1 != first)
    })
    .await;
    let place = world
        .queue(key)
        .await?
        .iter()
        .position(|(by, _)| *by == mine);
    world.give(key).await?;
    let token = soon(again).await.unwrap()?;
    let holds = world.holder(key, "holds").await?;
    drop((hasty, last));
    let seen = format!("gave up: {gave_up}, by the new connection: {moved}, place {place:?}, token {token}, {holds} hold");
    let good = gave_up && moved && place == Some(0) && token > 0 && holds == 1;
    world.line(
        number,
        "a BLOCK given up after 500 ms, retried by another connection, keeps its place",
        good,
        seen,
    );
    Ok(())
}

async fn lost_reply(world: &mut World, number: u8) -> RedisResult<()> {
    let words = format!("RLOCK.ACQUIRE cut:once {} {LEASE} ONCE", owner());
    let config = patient();
    let mut tries = 0;
    let token: i64 = loop {
        let connection = world
            .losing
            .get_multiplexed_async_connection_with_config(&config)
            .await?;
        tries += 1;
        match ask(&connection, &words).await {
            Ok(token) => break token,
            Err(error) if tries == 3 => return Err(error),
            Err(_) => {}
        }
    };
    let (holds, held) = (
        world.holder("cut:once", "holds").await?,
        world.holder("cut:once", "token").await?,
    );
    let seen = format!("said {tries} times by the program, token {token}, {holds} hold");
    let good = tries == 2 && holds == 1 && held == token;
    world.line(
        number,
        "the reply is lost, the request that is retried has the token",
        good,
        seen,
    );
    Ok(())
}

async fn gives_up(world: &mut World, number: u8) -> RedisResult<()> {
    let (session, mine) = (world.session().await?, owner());
    world.take("up").await?;
    let wait = acquire(&session, "up", &mine, LEASE);
    world.waiting("up", 1).await;
    let ended: i64 = ask(&session.connection, &format!("RLOCK.CANCEL up {mine}")).await?;
    let (end, left) = (token(wait).await, world.queue("up").await?.len());
    let blocked = world.client.get_multiplexed_async_connection().await?;
    let words = format!("RLOCK.ACQUIRE up {} {LEASE} BLOCK 0", owner());
    let gave_up = ask::<Value>(&blocked, &words).await.is_err();
    let second = world.session().await?;
    let waits = acquire(&second, "up", &owner(), LEASE);
    let both = world.waiting("up", 2).await;
    drop(blocked);
    waits.abort();
    drop(second);
    let gone = world.waiting("up", 0).await;
    world.give("up").await?;
    let mode = world.mode("up").await?;
    let good = ended == 1 && end == 0 && left == 0 && gave_up && both && gone && mode == "free";
    let seen = format!(
        "CANCEL {ended}, {left} left; 2 more waited: {both}, closed, gone: {gone}; then {mode}"
    );
    world.line(
        number,
        "who gives up leaves no waiter: CANCEL, or a closed connection",
        good,
        seen,
    );
    Ok(())
}

async fn cancelled(world: &mut World, number: u8) -> RedisResult<()> {
    let session = world.session().await?;
    world.take("cancel").await?;
    let wait = acquire(&session, "cancel", &owner(), 0);
    let there = world.waiting("cancel", 1).await;
    wait.abort();
    let gone = world.waiting("cancel", 0).await;
    let pong: String = ask(&session.connection, "PING").await?;
    let good = there && gone && pong == "PONG";
    let seen = format!("waited: {there}, gone: {gone}; the connection goes on: {pong}");
    world.line(
        number,
        "a future that is dropped ends its wait in the server",
        good,
        seen,
    );
    Ok(())
}

async fn force_one(world: &mut World, number: u8) -> RedisResult<()> {
    let session = world.session().await?;
    let client: i64 = ask(&session.connection, "CLIENT ID").await?;
    let mut notified = Vec::new();
    for key in ["force:1", "force:2", "force:3"] {
        notified.push(
            session
                .acquire(key, &owner(), LEASE, 0, &["WATCHDOG"])
                .await?
                .1,
        );
    }
    world.ask::<i64>("RLOCK.FORCE force:2").await?;
    let lost = soon(notified[1].recv()).await.unwrap_or_default();
    sleep(Duration::from_millis(500)).await; // a connection that is to be closed would be by now
    let watched = [
        world.holder("force:1", "watchdog").await?,
        world.holder("force:3", "watchdog").await?,
    ];
    let same = ask::<i64>(&session.connection, "CLIENT ID").await? == client;
    let good = lost == ("lost".into(), "forced".into()) && watched == [client, client] && same;
    let seen = format!("notified {lost:?}, still held by {watched:?}, same connection: {same}");
    world.line(
        number,
        "FORCE of one of three watchdog holds leaves two",
        good,
        seen,
    );
    Ok(())
}

async fn loss_is_notified(world: &mut World, number: u8) -> RedisResult<()> {
    let session = world.session().await?;
    let (token, mut deleted) = session.acquire("loss:1", &owner(), LEASE, 0, &[]).await?;
    let (_, mut kept) = session
        .acquire("loss:2", &owner(), LEASE, 0, &["WATCHDOG"])
        .await?;
    world.ask::<i64>("DEL loss:1").await?;
    let (_, first) = soon(deleted.recv()).await.unwrap_or_default();
    let client: i64 = ask(&session.connection, "CLIENT ID").await?;
    world
        .ask::<i64>(&format!("CLIENT KILL ID {client}"))
        .await?;
    let (_, second) = soon(kept.recv()).await.unwrap_or_default();
    let refused = ask::<Value>(&session.connection, "PING").await.is_err();
    let free = until(async || world.mode("loss:2").await.is_ok_and(|mode| mode == "free")).await;
    let (newer, _) = world
        .session()
        .await?
        .acquire("loss:1", &owner(), LEASE, 0, &[])
        .await?;
    let good = first == "deleted" && second == "connection" && refused && free && newer > token;
    let seen = format!(
        "{first}, {second}, refused from then on: {refused}, its watchdog hold ended: {free}, a new session has {newer:?}"
    );
    world.line(
        number,
        "a loss is notified, a broken connection too, and nothing reconnects by itself",
        good,
        seen,
    );
    Ok(())
}

async fn one_owner(world: &mut World, number: u8) -> RedisResult<()> {
    let (session, ann, bob) = (world.session().await?, owner(), owner());
    let first = token(acquire(&session, "one:1", &ann, 0)).await;
    token(acquire(&session, "one:2", &bob, 0)).await;
    let second = token(acquire(&session, "one:1", &ann, 0)).await;
    let _waits = acquire(&session, "one:2", &ann, LEASE);
    world.waiting("one:2", 1).await;
    let error = refused(acquire(&session, "one:1", &bob, LEASE)).await;
    let good = first > 0 && first == second && error.contains("DEADLOCK");
    let seen = format!("the same token: {}; {error:.60}", first == second);
    world.line(
        number,
        "one owner for each piece of work: no HELD, and DEADLOCK is raised",
        good,
        seen,
    );
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), RedisError> {
    let mut ports = std::env::args().skip(1);
    let mut client = || {
        Client::open(format!(
            "redis://127.0.0.1:{}/?protocol=resp3",
            ports.next().unwrap()
        ))
    };
    let (client, losing) = (client()?, client()?);
    let admin = client
        .get_multiplexed_async_connection_with_config(&patient())
        .await?;
    let world = &mut World {
        client,
        losing,
        admin,
        failed: false,
    };
    let results = [
        many_waits(world, 1).await,
        retried(world, 2).await,
        blocked_for_longer(world, 2).await,
        lost_reply(world, 3).await,
        gives_up(world, 4).await,
        cancelled(world, 5).await,
        force_one(world, 6).await,
        loss_is_notified(world, 7).await,
        one_owner(world, 8).await,
    ];
    for result in results {
        if let Err(error) = result {
            world.line(0, "a check failed", false, error.to_string());
        }
    }
    std::process::exit(i32::from(world.failed));
}

//! How a hold is lost, and that the program is notified.

use std::time::Instant;

use rlock_client::{Error, Locks, Reason};

use crate::proxy::Proxy;
use crate::server::{Server, client, ms, reason, s, soon, until};

#[tokio::test]
async fn by_what_happens_to_the_key() {
    let server = Server::start();
    let locks = server.locks();
    for (words, expected) in [
        ("RLOCK.FORCE jobs", "forced"),
        ("DEL jobs", "deleted"),
        ("FLUSHALL", "flushed"),
        ("SET jobs x", "overwritten"),
    ] {
        let hold = locks.acquire("jobs").await.unwrap();
        let other = locks.acquire("other:{x}").await;
        server.ask::<redis::Value>(words);
        assert_eq!(reason(&hold).await, expected);
        let lost = Error::Lost(hold.reason().unwrap());
        assert_eq!(hold.release().await.unwrap_err(), lost);
        drop(other);
        server.ask::<i64>("DEL jobs");
        server.free("other:{x}").await;
    }
}

#[tokio::test]
async fn by_the_end_of_the_connection() {
    let server = Server::start();
    let proxy = Proxy::before(server.port).await;
    let locks = Locks::new(client(proxy.port));
    let hold = locks.acquire("jobs").await.unwrap();
    let plain = locks.acquire("plain").plain().lease(s(60)).await.unwrap();
    let held = server.locks().acquire("busy").await.unwrap();
    let waits = tokio::spawn(locks.acquire("busy").wait(s(60)).into_future());
    server.waiting("busy", 1).await;
    proxy.close();
    assert_eq!(reason(&hold).await, "connection");
    server.free("jobs").await;
    // The wait goes on, and so does the plain hold.
    held.release().await.unwrap();
    soon(waits).await.unwrap().unwrap().release().await.unwrap();
    assert!(!plain.is_lost());
    plain.renew(s(30)).await.unwrap();
    plain.release().await.unwrap();
    assert!(server.is_free("plain"));
}

/// A plain hold outlives its connection, and is asked for on the next one.
#[tokio::test]
async fn while_the_connection_was_away() {
    let server = Server::start();
    let proxy = Proxy::before(server.port).await;
    let locks = Locks::new(client(proxy.port));
    let plain = |key: &str| locks.acquire(key).plain().lease(s(60));
    let (gone, stays) = (plain("gone").await.unwrap(), plain("stays").await.unwrap());
    let many = locks.acquire_many(["a", "b"]).plain().lease(s(60));
    let many = many.await.unwrap();
    let permits = plain("permits").permits(3, 2).await.unwrap();
    let released = plain("released").await.unwrap();
    let before = server.ask::<i64>("PEXPIRETIME stays");
    proxy.freeze(true);
    proxy.close();
    for key in ["gone", "b", "permits", "released"] {
        assert_eq!(server.ask::<i64>(&format!("RLOCK.FORCE {key}")), 1);
    }
    tokio::time::sleep(s(6)).await; // so that a lease that began anew would show
    proxy.freeze(false);
    for hold in [&gone, &many, &permits] {
        assert_eq!(reason(hold).await, "expired");
    }
    server.free("a").await;
    assert!(matches!(released.release().await, Err(Error::Lost(_))));
    // What stood is notified of from now on, and ends when it would have.
    let after = server.ask::<i64>("PEXPIRETIME stays");
    assert!((after - before).abs() < 5_000, "{before} {after}");
    server.ask::<i64>("RLOCK.FORCE stays");
    assert_eq!(reason(&stays).await, "forced");
}

#[tokio::test]
async fn by_a_server_that_comes_back_without_it() {
    let mut server = Server::with(&["--save", "", "--appendonly", "no"]);
    let locks = server.locks();
    let hold = locks.acquire("jobs").plain().lease(s(60)).await.unwrap();
    server.kill();
    server.restart();
    assert_eq!(reason(&hold).await, "expired");
    assert!(matches!(hold.release().await, Err(Error::Lost(_))));
}

#[tokio::test]
async fn not_by_a_server_that_comes_back_with_it() {
    let mut server = Server::with(&["--appendonly", "yes", "--appendfsync", "always"]);
    let locks = server.locks();
    let hold = locks.acquire("jobs").plain().lease(s(60)).await.unwrap();
    server.kill();
    server.restart();
    server.renewed(1).await;
    assert!(!hold.is_lost());
    assert_eq!(hold.release().await, Ok(()));
    assert!(server.is_free("jobs"));
}

#[tokio::test]
async fn by_a_server_that_stands_still_within_one_lease() {
    let server = Server::start();
    let locks = server.locks();
    let hold = locks.acquire("jobs").lease(s(5)).await.unwrap();
    server.signal(libc::SIGSTOP);
    let begun = Instant::now();
    assert_eq!(reason(&hold).await, "connection");
    let took = begun.elapsed();
    server.signal(libc::SIGCONT);
    assert!(took < s(20), "{took:?}");
    server.free("jobs").await;
    soon(locks.acquire("jobs").wait(s(20)))
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
}

#[tokio::test]
async fn by_a_server_that_is_killed_and_comes_back() {
    let mut server = Server::start();
    let locks = server.locks();
    let hold = locks.acquire("jobs").await.unwrap();
    let held = locks.acquire("busy").await.unwrap();
    let waits = tokio::spawn(locks.acquire("busy").wait(s(60)).into_future());
    server.waiting("busy", 1).await;
    server.kill();
    assert_eq!(
        (reason(&hold).await, reason(&held).await),
        ("connection", "connection")
    );
    server.restart();
    let hold = soon(waits).await.unwrap().unwrap();
    assert_eq!(hold.release().await, Ok(()));
}

#[tokio::test]
async fn by_a_server_that_becomes_a_replica() {
    let server = Server::start();
    let master = Server::start();
    let locks = Locks::with_timeout(server.client(), s(30));
    let hold = locks.acquire("jobs").await.unwrap();
    server.ask::<String>(&format!("REPLICAOF 127.0.0.1 {}", master.port));
    let reason = soon(hold.lost()).await;
    assert!(
        matches!(reason, Reason::Demoted | Reason::Connection),
        "{reason}"
    );
    // While it is none the request asks again and again.
    let tries = tokio::spawn(locks.acquire("jobs").into_future());
    tokio::time::sleep(ms(300)).await;
    assert!(!tries.is_finished());
    server.ask::<String>("REPLICAOF NO ONE");
    soon(tries).await.unwrap().unwrap().release().await.unwrap();
}

#[tokio::test]
async fn nobody_there() {
    let locks = Locks::with_timeout(client(1), ms(300));
    let begun = Instant::now();
    let error = locks.acquire("jobs").await.unwrap_err();
    assert!(matches!(error, Error::Connection(_)), "{error}");
    assert!(begun.elapsed() >= ms(300));
    let error = soon(locks.acquire("jobs").wait(ms(600))).await.unwrap_err();
    assert!(matches!(error, Error::Connection(_)), "{error}");
}

#[tokio::test]
async fn the_session_ends_when_nobody_has_it() {
    let server = Server::start();
    let clients = || server.ask::<String>("CLIENT LIST").lines().count();
    let locks = server.locks();
    let hold = locks.acquire("jobs").await.unwrap();
    drop(locks);
    // That of who asks, too; those who asked before may be on their way out.
    until(|| clients() == 2).await;
    assert!(!hold.is_lost());
    drop(hold);
    until(|| clients() == 1).await;
    assert!(server.is_free("jobs"));
}

//! The reply to each command is lost with its connection.

use rlock_client::{Error, Locks};

use crate::proxy::Proxy;
use crate::server::{Server, client, s, soon};

async fn cut_off() -> (Server, Proxy, Locks) {
    let server = Server::start();
    let proxy = Proxy::before(server.port).await;
    let locks = Locks::new(client(proxy.port));
    locks
        .acquire("first")
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    (server, proxy, locks)
}

#[tokio::test]
async fn of_a_try() {
    let (server, proxy, locks) = cut_off().await;
    for plain in [false, true] {
        proxy.cut("RLOCK.ACQUIRE");
        let ask = locks.acquire("jobs");
        let hold = soon(if plain { ask.plain() } else { ask }).await.unwrap();
        assert!(!hold.is_lost() && !server.is_free("jobs"));
        hold.release().await.unwrap();
        assert!(server.is_free("jobs"));
    }
}

#[tokio::test]
async fn of_a_wait_that_keeps_its_place() {
    let (server, proxy, locks) = cut_off().await;
    let held = server.locks().acquire("jobs").await.unwrap();
    proxy.cut("RLOCK.ACQUIRE");
    let first = tokio::spawn(locks.acquire("jobs").wait(s(60)).into_future());
    server.waiting("jobs", 1).await;
    held.release().await.unwrap();
    soon(first).await.unwrap().unwrap().release().await.unwrap();
    assert!(server.is_free("jobs"));
}

#[tokio::test]
async fn of_a_release() {
    let (server, proxy, locks) = cut_off().await;
    for plain in [false, true] {
        let ask = locks.acquire("jobs").lease(s(60));
        let hold = soon(if plain { ask.plain() } else { ask }).await.unwrap();
        proxy.cut("RLOCK.RELEASE");
        assert_eq!(soon(hold.release()).await, Ok(()));
        server.free("jobs").await;
    }
}

#[tokio::test]
async fn of_a_renewal() {
    let (server, proxy, locks) = cut_off().await;
    let plain = locks.acquire("plain").plain().await.unwrap();
    let hold = locks.acquire("jobs").await.unwrap();
    proxy.cut("RLOCK.RENEW");
    assert_eq!(soon(plain.renew(s(60))).await, Ok(()));
    assert!(hold.is_lost());
    assert!(matches!(hold.renew(s(60)).await, Err(Error::Lost(_))));
    plain.release().await.unwrap();
    assert!(server.is_free("plain"));
}

#[tokio::test]
async fn of_a_cancel() {
    let (server, proxy, locks) = cut_off().await;
    let held = server.locks().acquire("jobs").await.unwrap();
    let waits = tokio::spawn(locks.acquire("jobs").wait(s(60)).into_future());
    server.waiting("jobs", 1).await;
    proxy.cut("RLOCK.CANCEL");
    waits.abort();
    server.waiting("jobs", 0).await;
    held.release().await.unwrap();
    server.free("jobs").await;
}

//! Waiting: order, time-outs, and giving up.

use rlock_client::Error;
use tokio::time::timeout;

use crate::server::{Server, ms, s, soon};

#[tokio::test]
async fn served_in_order() {
    let server = Server::start();
    let locks = server.locks();
    let held = locks.acquire("jobs").await.unwrap();
    let (sender, mut order) = tokio::sync::mpsc::unbounded_channel();
    for number in 0..5 {
        let (wait, sender) = (locks.acquire("jobs").wait(s(30)), sender.clone());
        tokio::spawn(async move {
            let hold = wait.await.unwrap();
            sender.send((number, hold.token())).unwrap();
            hold.release().await.unwrap();
        });
        server.waiting("jobs", number + 1).await;
    }
    held.release().await.unwrap();
    let mut last = 0;
    for expected in 0..5 {
        let (number, token) = soon(order.recv()).await.unwrap();
        assert!(number == expected && token > last);
        last = token;
    }
}

#[tokio::test]
async fn a_wait_ends_with_its_time() {
    let server = Server::start();
    let locks = server.locks();
    let _held = locks.acquire("jobs").await.unwrap();
    let end = soon(locks.acquire("jobs").wait(ms(100))).await;
    assert!(matches!(end.unwrap_err(), Error::NotAcquired { .. }));
    assert_eq!(server.waiters("jobs"), 0);
}

#[tokio::test]
async fn a_dropped_wait_ends_on_the_server() {
    let server = Server::start();
    let locks = server.locks();
    let held = locks.acquire("jobs").await.unwrap();
    let waits = tokio::spawn(locks.acquire("jobs").wait(s(60)).into_future());
    server.waiting("jobs", 1).await;
    waits.abort();
    server.waiting("jobs", 0).await;
    held.release().await.unwrap();
    assert!(server.is_free("jobs"));
}

#[tokio::test]
async fn a_grant_that_crosses_the_cancel_is_released() {
    let server = Server::start();
    let locks = server.locks();
    for round in 0..200_u64 {
        let held = locks.acquire("jobs").await.unwrap();
        let wait = locks.acquire("jobs").wait(s(60)).into_future();
        let release = async {
            tokio::time::sleep(ms(round % 4)).await;
            held.release().await.unwrap();
        };
        let gives_up = timeout(ms(round % 5), wait);
        let (end, ()) = tokio::join!(gives_up, release);
        drop(end);
    }
    let last = soon(locks.acquire("jobs").wait(s(20))).await.unwrap();
    last.release().await.unwrap();
    assert!(server.is_free("jobs"));
    assert_eq!(server.waiters("jobs"), 0);
}

/// The crossing itself, made certain: the server grants while its messages are held up.
#[tokio::test]
async fn a_grant_behind_a_frozen_network_is_released() {
    let server = Server::start();
    let proxy = crate::proxy::Proxy::before(server.port).await;
    let locks = rlock_client::Locks::new(crate::server::client(proxy.port));
    let held = server.locks().acquire("jobs").await.unwrap();
    let waits = tokio::spawn(locks.acquire("jobs").wait(s(60)).into_future());
    server.waiting("jobs", 1).await;
    proxy.freeze(true);
    held.release().await.unwrap();
    waits.abort();
    _ = waits.await;
    assert!(!server.is_free("jobs"), "granted to who gave up");
    proxy.freeze(false);
    server.free("jobs").await;
}

#[tokio::test]
async fn a_job_may_ask_again_for_what_it_gave_up() {
    let server = Server::start();
    let locks = server.locks();
    let job = locks.job();
    let held = locks.acquire("jobs").await.unwrap();
    for _ in 0..50 {
        let wait = locks.acquire("jobs").job(&job).wait(s(60)).into_future();
        assert!(timeout(ms(1), wait).await.is_err());
    }
    let wait = tokio::spawn(locks.acquire("jobs").job(&job).wait(s(60)).into_future());
    server.waiting("jobs", 1).await;
    held.release().await.unwrap();
    let hold = soon(wait).await.unwrap().unwrap();
    assert!(!hold.is_lost() && !server.is_free("jobs"));
    hold.release().await.unwrap();
    assert!(server.is_free("jobs"));
}

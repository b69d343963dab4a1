//! Many at once, and many one after the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rlock_client::Reason;

use tokio::sync::Mutex;

use crate::server::{Server, s, soon};

/// Who runs.
static ALONE: Mutex<()> = Mutex::const_new(());

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_waits_for_one_lock() {
    let _alone = ALONE.lock().await;
    let server = Server::start();
    let locks = server.locks();
    let inside = Arc::new(AtomicU64::new(0));
    let tasks: Vec<_> = (0..1000)
        .map(|_| {
            let (wait, inside) = (locks.acquire("jobs").wait(s(600)), Arc::clone(&inside));
            tokio::spawn(async move {
                let hold = wait.await.unwrap();
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                tokio::task::yield_now().await;
                inside.fetch_sub(1, Ordering::SeqCst);
                hold.release().await.unwrap();
            })
        })
        .collect();
    for task in tasks {
        soon(task).await.unwrap();
    }
    assert!(server.is_free("jobs"));
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_holds_and_waits_on_one_connection() {
    const MANY: usize = 10_000;
    let _alone = ALONE.lock().await;
    let server = Server::start();
    let locks = server.locks();
    let ask = |i: usize| tokio::spawn(locks.acquire(format!("k:{i}")).wait(s(600)).into_future());
    let held: Vec<_> = (0..MANY).map(ask).collect();
    let mut holds = Vec::new();
    for hold in held {
        holds.push(hold.await.unwrap().unwrap());
    }
    let waits: Vec<_> = (0..MANY).map(ask).collect();
    let waiting = || {
        server
            .ask::<String>("INFO rlock")
            .contains("rlock_waiting:10000\r\n")
    };
    crate::server::until(waiting).await;
    assert_eq!(server.ask::<String>("CLIENT LIST").lines().count(), 2);
    drop(holds);
    for wait in waits {
        soon(wait).await.unwrap().unwrap().release().await.unwrap();
    }
    assert_eq!(server.ask::<i64>("DBSIZE"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_thousand_that_are_lost_at_once() {
    const MANY: usize = 20_000;
    let _alone = ALONE.lock().await;
    let server = Server::start();
    let locks = server.locks();
    let ask = |i: usize| tokio::spawn(locks.acquire(format!("k:{i}")).wait(s(600)).into_future());
    let asked: Vec<_> = (0..MANY).map(ask).collect();
    let mut holds = Vec::new();
    let begun = std::time::Instant::now();
    for hold in asked {
        holds.push(hold.await.unwrap().unwrap());
    }
    let acquired = begun.elapsed();
    let begun = std::time::Instant::now();
    server.ask::<i64>("CLIENT KILL TYPE pubsub");
    for hold in &holds {
        assert_eq!(soon(hold.lost()).await, Reason::Connection);
    }
    // To look at all that are lost for each of them took half a minute, where to acquire them took a second.
    let most = s(15).max(acquired * 5);
    assert!(begun.elapsed() < most, "{:?}", begun.elapsed());
    assert!(
        soon(locks.acquire("new").wait(s(600)).into_future())
            .await
            .is_ok()
    );
}

//! Odd times, and what a program does that is paused or has been forked.

use std::task::Poll;
use std::time::{Duration, Instant};

use rlock_client::{Error, Locks, Quorum, Reason, blocking};

use crate::server::{Server, ms, s, soon, until};

/// Whatever is added to them.
#[tokio::test]
async fn the_longest_times_are_no_error() {
    const LONGEST: Duration = Duration::MAX;
    let servers = [Server::start(), Server::start(), Server::start()];
    let locks = Locks::with_timeout(servers[0].client(), LONGEST);
    let asks = [
        locks.acquire("jobs"),
        locks.acquire("jobs").wait(LONGEST),
        locks.acquire("jobs").lease(LONGEST),
        locks.acquire("jobs").lease(LONGEST).plain(),
        locks.acquire("jobs").max(LONGEST),
    ];
    for ask in asks {
        let hold = soon(ask).await.unwrap();
        assert_eq!(soon(hold.renew(LONGEST)).await, Ok(()));
        assert_eq!(soon(hold.release()).await, Ok(()));
    }
    let late = locks.acquire("acked").acks(1, LONGEST).wait_forever();
    let late = tokio::spawn(late.into_future());
    until(|| !servers[0].is_free("acked")).await;
    let end = soon(locks.acquire("jobs").acks(1, ms(50)).into_future()).await;
    assert!(matches!(end, Err(Error::Refused { .. })), "{end:?}");
    late.abort();
    servers[0].free("acked").await;

    let quorum = Quorum::new(servers.iter().map(Server::client));
    let ask = quorum.acquire("jobs").lease(LONGEST).wait(LONGEST);
    assert_eq!(soon(soon(ask).await.unwrap().release()).await, Ok(()));
    soon(locks.close()).await;
}

#[tokio::test]
async fn a_very_short_lease_ends_no_other_hold() {
    let server = Server::start();
    let locks = server.locks();
    let mut held = locks.acquire("held").await.unwrap();
    for lease in [Duration::from_nanos(1), ms(1), ms(3)] {
        // A server may be silent for longer than it lasts: only one that ends with its connection has
        // that watched so closely.
        let short = locks.acquire("short").wait(s(10)).lease(lease).plain();
        _ = soon(short).await;
        tokio::time::sleep(ms(150)).await;
        assert_eq!(held.reason(), None);
    }
    // A busy machine may not answer within 100 ms, and then the connection is lost; but it is not so slow each time.
    for n in 1.. {
        match soon(held.renew(ms(1))).await {
            Ok(()) => break,
            Err(end) => assert_eq!(end, Error::Lost(Reason::Connection)),
        }
        assert!(n < 20, "it is too short each time");
        held = soon(locks.acquire("held").wait(s(20))).await.unwrap();
    }
}

#[tokio::test]
async fn who_waits_long_for_replicas_holds_up_nobody() {
    let server = Server::start();
    let locks = server.locks();
    let long = locks.acquire("long").wait(s(60)).acks(1, s(20));
    let long = tokio::spawn(long.into_future());
    until(|| !server.is_free("long")).await;
    let end = soon(locks.acquire("short").acks(1, ms(50)).into_future()).await;
    assert!(matches!(end, Err(Error::Refused { .. })), "{end:?}");
    assert!(!long.is_finished());
    long.abort();
}

/// Polls it once: what it asks for is asked for.
async fn begun(asks: &mut (impl Future + Unpin)) -> bool {
    let mut asks = std::pin::Pin::new(asks);
    std::future::poll_fn(|context| Poll::Ready(asks.as_mut().poll(context).is_pending())).await
}

/// What is asked for, and not answered yet: an answer may come while it is polled.
async fn asked<F: Future + Unpin>(ask: impl Fn() -> F) -> F {
    for _ in 0..100 {
        let mut asks = ask();
        if begun(&mut asks).await {
            return asks;
        }
    }
    panic!("it was answered at once each time");
}

/// The reply was there in time.
#[tokio::test]
async fn a_paused_task_does_not_take_the_server_for_silent() {
    let server = Server::start();
    let locks = Locks::with_timeout(server.client(), s(5));
    drop(soon(locks.acquire("other")).await);
    let asks = asked(|| locks.acquire("jobs").into_future()).await;
    std::thread::sleep(s(6));
    assert_eq!(soon(soon(asks).await.unwrap().release()).await, Ok(()));

    let plain = soon(locks.acquire("plain").plain().lease(s(5)))
        .await
        .unwrap();
    let renews = asked(|| Box::pin(plain.renew(s(60)))).await;
    std::thread::sleep(s(6));
    assert_eq!(soon(renews).await, Ok(()));
    assert_eq!(soon(plain.release()).await, Ok(()));
}

/// Of a RENEW that was answered too late.
#[tokio::test]
async fn a_lease_that_passed_here_is_released_there() {
    let server = Server::start();
    let locks = server.locks();
    let plain = locks.acquire("plain").plain().lease(s(5)).await.unwrap();
    // By another connection, so that its answer never comes.
    let renew = format!("RLOCK.RENEW plain {} 60000", plain.owner());
    assert_eq!(server.ask::<i64>(&renew), 1);
    soon(plain.lost()).await;
    server.free("plain").await;
}

#[test]
fn a_fork_that_releases_a_hold_by_quorum_gets_lost() {
    let servers = [Server::start(), Server::start(), Server::start()];
    let quorum = Quorum::new(servers.iter().map(Server::client));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let held = runtime.block_on(quorum.acquire("jobs").into_future());
    let held = held.unwrap();
    let locks = blocking::Locks::new(servers[0].client());
    let plain = locks.acquire("plain").get().unwrap();
    // SAFETY: the child runs what may be run there: this very thing is what is tested.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: takes a number. It ends a child that hangs.
        unsafe { libc::alarm(20) };
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let end = runtime.unwrap().block_on(held.release());
        drop(plain);
        let is_lost = end == Err(Error::Lost(Reason::Fork));
        // SAFETY: ends this process, without what the parent is to do at its end.
        unsafe { libc::_exit(if is_lost { 7 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: a child of this process, and a number that may be written.
    unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!(libc::WEXITSTATUS(status), 7, "{status}");
    assert_eq!(plain.release(), Ok(()));
    assert_eq!(runtime.block_on(held.release()), Ok(()));
}

#[tokio::test]
async fn replicas_are_waited_for_as_long_as_was_said_and_no_longer() {
    let server = Server::start();
    let locks = Locks::with_timeout(server.client(), s(3));
    // Longer than anything else may take; and what is less than a ms, which would be for ever.
    for within in [s(4), Duration::from_nanos(1)] {
        let begun = Instant::now();
        let end = soon(locks.acquire("jobs").acks(1, within).into_future()).await;
        assert!(
            matches!(&end, Err(Error::Refused { code, .. }) if code == "NOREPLICAS"),
            "{end:?}"
        );
        assert!(begun.elapsed() >= within);
        server.free("jobs").await;
    }
}

#[tokio::test]
async fn a_silent_server_is_named_in_the_error() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let client = crate::server::client(silent.local_addr().unwrap().port());
    let locks = Locks::with_timeout(client, ms(200));
    let end = soon(locks.acquire("jobs").into_future()).await;
    assert!(
        matches!(&end, Err(Error::Connection(why)) if why.contains("not answer") || why.contains("timed out")),
        "{end:?}"
    );
}

//! Calls of the program that end before they are done: at each of their `.await`s, which are as
//! many as they can be polled. Afterwards the key is free or held by the caller, a new key can be
//! acquired at once, and nothing is left on the server.

use std::pin::pin;
use std::task::Poll;

use rlock_client::{Error, Locks, Quorum, Reason};

use crate::server::{Server, ms, s, soon};

/// Polls it so many times, each time when it was woken, and drops it then.
async fn polled<T>(times: usize, future: impl IntoFuture<Output = T>) -> Option<T> {
    let mut future = pin!(future.into_future());
    let mut left = times;
    let poll = |context: &mut std::task::Context<'_>| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    };
    let end = std::future::poll_fn(poll).await;
    if times % 2 == 1 {
        // What it has asked for comes to its end while nobody looks.
        tokio::time::sleep(ms(3)).await;
    }
    end
}

/// Each number of times until it is done, twice.
const TIMES: std::ops::Range<usize> = 0..400;

/// As an executor would that has nothing of tokio's.
pub fn without_runtime<T>(future: impl Future<Output = T>) -> T {
    struct Parked(std::thread::Thread);
    impl std::task::Wake for Parked {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = std::sync::Arc::new(Parked(std::thread::current())).into();
    let mut context = std::task::Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(done) => return done,
            Poll::Pending => std::thread::park(),
        }
    }
}

async fn goes_on(server: &Server, locks: &Locks) {
    server.waiting("jobs", 0).await;
    server.free("jobs").await;
    let other = soon(locks.acquire("other").into_future()).await.unwrap();
    assert_eq!(soon(other.release()).await, Ok(()));
    assert!(server.is_free("other"));
}

#[tokio::test]
async fn acquire() {
    let server = Server::start();
    let locks = server.locks();
    let job = locks.job();
    for times in TIMES {
        let ask = locks.acquire("jobs");
        let ask = match times % 3 {
            0 => ask,
            1 => ask.plain().wait(s(60)),
            _ => ask.job(&job).wait_forever(),
        };
        let end = polled(times / 3, ask).await;
        if let Some(hold) = &end {
            assert!(!hold.as_ref().unwrap().is_lost() && !server.is_free("jobs"));
        }
        let done = end.is_some();
        drop(end);
        goes_on(&server, &locks).await;
        if done && times > 12 {
            return;
        }
    }
    panic!("it never ends");
}

#[tokio::test]
async fn acquire_in_line() {
    let server = Server::start();
    let (locks, theirs) = (server.locks(), server.locks());
    for times in TIMES {
        let held = theirs.acquire("jobs").await.unwrap();
        let mut waits = pin!(polled(times, locks.acquire("jobs").wait(s(60))));
        // It is granted while it is being given up.
        let first = tokio::select! {
            biased;
            end = &mut waits => Err(end),
            () = tokio::time::sleep(ms(5)) => Ok(()),
        };
        held.release().await.unwrap();
        let end = match first {
            Ok(()) => soon(waits).await,
            Err(end) => end,
        };
        let done = end.is_some();
        drop(end);
        goes_on(&server, &locks).await;
        if done && times > 6 {
            return;
        }
    }
    panic!("it never ends");
}

#[tokio::test]
async fn release_and_renew() {
    let server = Server::start();
    let locks = server.locks();
    for times in TIMES {
        let ask = locks.acquire("jobs").lease(s(60));
        let ask = if times % 2 == 0 { ask.plain() } else { ask };
        let hold = ask.await.unwrap();
        let renewed = polled(times / 2, hold.renew(s(30))).await;
        assert!(renewed.is_none_or(|end| end == Ok(())) && !hold.is_lost());
        assert_eq!(soon(hold.renew(s(40))).await, Ok(()));
        let released = polled(times / 2, hold.release()).await;
        goes_on(&server, &locks).await;
        if released.is_some_and(|end| end == Ok(())) && times > 8 {
            return;
        }
    }
    panic!("it never ends");
}

/// The next one has it in between, for a moment.
#[tokio::test]
async fn give_way() {
    let server = Server::start();
    let (locks, theirs) = (server.locks(), server.locks());
    let job = locks.job();
    for times in TIMES {
        let ask = locks.acquire("jobs").wait(s(60));
        let ask = if times % 3 == 0 { ask.job(&job) } else { ask };
        let mut hold = soon(ask).await.unwrap();
        let body = |_| async { tokio::time::sleep(ms(2)).await };
        let next = theirs.acquire("jobs").wait(s(60)).run(body);
        let next = tokio::spawn(next);
        assert!(soon(hold.wanted()).await);
        let end = polled(times / 2, hold.give_way().least(ms(0))).await;
        let is_done = end.is_some();
        match end {
            Some(end) => assert_eq!((end, hold.reason()), (Ok(true), None)),
            None if times < 2 => assert_eq!(hold.reason(), None),
            None => assert_eq!(hold.reason(), Some(Reason::Released)),
        }
        assert_eq!(soon(hold.release()).await, Ok(()));
        soon(next).await.unwrap().unwrap();
        goes_on(&server, &locks).await;
        if is_done && times > 8 {
            return;
        }
    }
    panic!("it never ends");
}

#[tokio::test]
async fn a_scope() {
    let server = Server::start();
    let locks = server.locks();
    for times in TIMES {
        let body = |_| async { tokio::time::sleep(ms(2)).await };
        let done = polled(times, locks.acquire("jobs").run(body)).await;
        goes_on(&server, &locks).await;
        if done.is_some() && times > 6 {
            return;
        }
    }
    panic!("it never ends");
}

#[tokio::test]
async fn close() {
    let server = Server::start();
    for times in TIMES {
        let locks = server.locks();
        let hold = locks.acquire("jobs").await.unwrap();
        let done = polled(times, locks.close()).await;
        if times > 0 {
            assert!(matches!(
                locks.acquire("jobs").await,
                Err(Error::Connection(_))
            ));
            server.free("jobs").await;
            let end = hold.release().await;
            assert_eq!(end, Err(Error::Lost(Reason::Closed)));
        } else {
            drop(hold);
        }
        goes_on(&server, &server.locks()).await;
        soon(locks.close()).await;
        if done.is_some() && times > 6 {
            return;
        }
    }
    panic!("it never ends");
}

#[tokio::test]
async fn by_quorum() {
    let servers = [Server::start(), Server::start(), Server::start()];
    let quorum = Quorum::new(servers.iter().map(Server::client));
    for times in TIMES {
        let hold = polled(times, quorum.acquire("jobs").lease(s(60))).await;
        let taken = hold.is_some();
        if let Some(hold) = hold {
            _ = polled(times % 4, hold.unwrap().release()).await;
        }
        for server in &servers {
            server.free("jobs").await;
        }
        let other = soon(quorum.acquire("other").wait(s(20))).await.unwrap();
        assert_eq!(soon(other.release()).await, Ok(()));
        if taken && times > 12 {
            break;
        }
        assert!(times + 1 < TIMES.end, "it never ends");
    }
    // Closing ends a wait too.
    let _held = servers[0].ask::<i64>("RLOCK.ACQUIRE jobs other 60000");
    let waits = tokio::spawn(quorum.acquire("jobs").wait_forever().into_future());
    servers[0].waiting("jobs", 1).await;
    _ = polled(1, quorum.close()).await;
    let end = soon(waits).await.unwrap();
    assert!(matches!(end, Err(Error::Connection(_))), "{end:?}");
    soon(quorum.close()).await;
    assert_eq!(servers[0].waiters("jobs"), 0);
}

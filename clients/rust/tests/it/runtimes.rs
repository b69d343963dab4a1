//! Where the program calls from, and what becomes of it meanwhile.

use std::time::Instant;

use rlock_client::{Error, Hold, Locks, Quorum, Reason, blocking};
use tokio::runtime::{Builder, Runtime};

use crate::dropped::without_runtime as wait;
use crate::server::{PATIENCE, Server, ms, s, soon, until};

fn one() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn holds_outlive_the_runtime_that_they_were_taken_in() {
    let server = Server::start();
    let locks = server.locks();
    let ask = |key: &str| locks.acquire(key).lease(s(2)).into_future();
    let runtime = one();
    let (watched, dropped) = (
        runtime.block_on(ask("watched")).unwrap(),
        runtime.block_on(ask("dropped")).unwrap(),
    );
    let plain = locks.acquire("plain").plain().lease(s(60)).into_future();
    let plain = runtime.block_on(plain).unwrap();
    let waits = locks.acquire("plain").wait(s(60)).into_future();
    let waits = runtime.spawn(waits);
    runtime.block_on(server.waiting("plain", 1));
    runtime.shutdown_background();
    drop(waits);
    std::thread::sleep(s(3));
    assert!(!watched.is_lost() && !dropped.is_lost() && !plain.is_lost());
    drop(dropped);
    one().block_on(async {
        assert_eq!(soon(plain.release()).await, Ok(()));
        assert_eq!(soon(watched.release()).await, Ok(()));
        server.free("dropped").await;
        server.free("plain").await;
    });
}

#[test]
fn a_runtime_that_nobody_drives_holds_nothing_up() {
    let server = Server::start();
    let locks = server.locks();
    let idle = one();
    let hold = idle.block_on(locks.acquire("jobs").into_future()).unwrap();
    one().block_on(async {
        let other = soon(locks.acquire("other").into_future()).await.unwrap();
        assert_eq!(soon(other.release()).await, Ok(()));
        assert_eq!(soon(hold.release()).await, Ok(()));
    });
    // A program that computes in its only thread sees the loss all the same.
    one().block_on(async {
        let hold = locks.acquire("jobs").await.unwrap();
        server.ask::<i64>("RLOCK.FORCE jobs");
        let end = Instant::now() + PATIENCE;
        while !hold.is_lost() {
            assert!(Instant::now() < end);
            std::thread::sleep(ms(5));
        }
        assert_eq!(hold.reason(), Some(Reason::Forced));
    });
}

/// The blocking face in a runtime, and the async one without any: its wait polls and parks.
#[test]
fn each_face_where_the_other_is_at_home() {
    let server = Server::start();
    let locks = blocking::Locks::new(server.client());
    for runtime in [one(), Runtime::new().unwrap()] {
        runtime.block_on(async {
            let hold = locks.acquire("jobs").wait(s(5)).get().unwrap();
            hold.renew(s(20)).unwrap();
            tokio::spawn(async move { hold.release() })
                .await
                .unwrap()
                .unwrap();
            drop(locks.acquire("jobs").wait(s(5)).get().unwrap());
            drop(blocking::Locks::new(server.client()));
        });
    }
    let locks = server.locks();
    let hold: Hold = wait(locks.acquire("async").into_future()).unwrap();
    assert_eq!(wait(hold.renew(s(20))), Ok(()));
    assert_eq!(wait(hold.release()), Ok(()));
    let quorum = Quorum::new([server.client()]);
    let hold = wait(quorum.acquire("quorum").into_future()).unwrap();
    assert_eq!(wait(hold.release()), Ok(()));
    wait(quorum.close());
    wait(locks.close());
    assert!(server.is_free("async") && server.is_free("quorum"));
}

#[test]
fn tasks_that_are_aborted() {
    let server = Server::start();
    let locks = server.locks();
    Runtime::new().unwrap().block_on(async {
        let ask = |i: u64| {
            let locks = locks.clone();
            tokio::spawn(async move {
                let hold = locks.acquire("jobs").wait(s(60)).await?;
                tokio::time::sleep(ms(i % 3)).await;
                hold.release().await
            })
        };
        let tasks: Vec<_> = (0..200).map(ask).collect();
        for (i, task) in tasks.iter().enumerate() {
            if i % 2 == 0 {
                tokio::time::sleep(ms(1)).await;
                task.abort();
            }
        }
        for task in tasks {
            if let Ok(end) = soon(task).await {
                assert_eq!(end, Ok(()));
            }
        }
        server.free("jobs").await;
        assert_eq!(server.waiters("jobs"), 0);
    });
}

#[test]
fn a_fork_holds_nothing_and_has_a_session_of_its_own() {
    let server = Server::start();
    let locks = blocking::Locks::new(server.client());
    let hold = locks.acquire("jobs").get().unwrap();
    let job = locks.job();
    // SAFETY: the child has one thread, makes others, and ends without returning from here.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let good = hold.reason() == Some(Reason::Fork)
            && hold.renew(s(20)) == Err(Error::Lost(Reason::Fork))
            && matches!(
                locks.acquire("job").job(&job).get(),
                Err(Error::Argument(_))
            )
            && matches!(locks.acquire("jobs").get(), Err(Error::NotAcquired { .. }))
            && locks
                .acquire("child")
                .wait(s(5))
                .get()
                .and_then(blocking::Hold::release)
                == Ok(());
        let good = good && hold.release() == Err(Error::Lost(Reason::Fork));
        drop(locks);
        // SAFETY: ends the child.
        unsafe { libc::_exit(i32::from(!good)) };
    }
    let end = Instant::now() + PATIENCE;
    let mut status = 0;
    // SAFETY: a child, and a number that may be written.
    while unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) } == 0 {
        assert!(Instant::now() < end, "the child hangs");
        std::thread::sleep(ms(10));
    }
    assert_eq!(status, 0);
    assert!(!hold.is_lost() && !server.is_free("jobs"));
    assert_eq!(hold.release(), Ok(()));
}

#[tokio::test]
async fn close_returns_when_the_server_is_silent() {
    let server = Server::start();
    let locks = Locks::with_timeout(server.client(), s(1));
    let hold = locks.acquire("jobs").lease(s(60)).await.unwrap();
    server.signal(libc::SIGSTOP);
    let begun = Instant::now();
    tokio::join!(locks.close(), locks.close());
    let took = begun.elapsed();
    soon(locks.close()).await;
    server.signal(libc::SIGCONT);
    assert!(took < s(5), "{took:?}");
    assert_eq!(hold.reason(), Some(Reason::Closed));
    assert_eq!(hold.release().await, Err(Error::Lost(Reason::Closed)));
    until(|| server.is_free("jobs")).await;
}

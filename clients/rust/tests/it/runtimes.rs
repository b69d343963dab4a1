//! Where the program calls from, and what becomes of it meanwhile.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
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
    let ask = |key: &str| locks.acquire(key).lease(s(4)).into_future();
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
    std::thread::sleep(s(5));
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
            let hold = locks.acquire("jobs").wait(s(20)).get().unwrap();
            hold.renew(s(20)).unwrap();
            tokio::spawn(async move { hold.release() })
                .await
                .unwrap()
                .unwrap();
            drop(locks.acquire("jobs").wait(s(20)).get().unwrap());
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

/// tokio has a task yield after so many steps, and says until then that nothing is ready.
#[test]
fn the_blocking_face_in_one_long_step_of_a_task() {
    let server = Server::start();
    let locks = blocking::Locks::new(server.client());
    let (over, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        one().block_on(async {
            for i in 0..300 {
                let hold = locks.acquire(format!("{i}")).get().unwrap();
                hold.renew(s(20)).unwrap();
                hold.release().unwrap();
            }
            locks.close();
        });
        over.send(()).unwrap();
    });
    assert_eq!(ended.recv_timeout(PATIENCE), Ok(()));
}

#[test]
fn in_the_destructor_of_a_thread_local() {
    struct Last(blocking::Locks, Option<blocking::Hold>, mpsc::Sender<()>);
    impl Last {
        fn work(&mut self) -> Result<(), Error> {
            let hold = self.0.acquire("last").wait(s(20)).get()?;
            hold.on_lost(drop);
            hold.renew(s(20))?;
            hold.release()?;
            drop(self.1.take());
            self.0.close();
            Ok(())
        }
    }
    impl Drop for Last {
        fn drop(&mut self) {
            // A panic would abort the process.
            if self.work().is_ok() {
                _ = self.2.send(());
            }
        }
    }
    thread_local!(static LAST: RefCell<Option<Last>> = const { RefCell::new(None) });
    let server = Server::start();
    let locks = blocking::Locks::new(server.client());
    let (worked, has_worked) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        // Before tokio's, which is gone then.
        LAST.set(None);
        let hold = locks.acquire("first").get().unwrap();
        LAST.set(Some(Last(locks, Some(hold), worked)));
    });
    thread.join().unwrap();
    assert_eq!(has_worked.recv_timeout(PATIENCE), Ok(()));
    assert!(server.is_free("first") && server.is_free("last"));
}

/// What a child does, which says whether it was good.
pub fn in_a_fork(child: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child has one thread, makes others, and ends without returning from here.
    let id = unsafe { libc::fork() };
    if id == 0 {
        // Its panic would end this thread, and that the child, well.
        let good = catch_unwind(AssertUnwindSafe(child)).unwrap_or(false);
        // SAFETY: ends the child.
        unsafe { libc::_exit(i32::from(!good)) };
    }
    was_good(id)
}

fn was_good(child: i32) -> bool {
    let end = Instant::now() + PATIENCE;
    let mut status = 0;
    // SAFETY: a child, and a number that may be written.
    while unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) } == 0 {
        if Instant::now() > end {
            // SAFETY: a child.
            unsafe { libc::kill(child, libc::SIGKILL) };
        }
        std::thread::sleep(ms(10));
    }
    status == 0
}

#[test]
fn a_fork_while_others_look_for_the_threads() {
    let server = Server::start();
    let over = Arc::new(AtomicBool::new(false));
    let look = || {
        let over = Arc::clone(&over);
        std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                wait(Quorum::new([]).close());
            }
        })
    };
    let others: Vec<_> = (0..3).map(|_| look()).collect();
    for _ in 0..20 {
        assert!(in_a_fork(|| {
            let locks = blocking::Locks::new(server.client());
            let hold = locks.acquire("jobs").wait(s(20)).get();
            hold.and_then(blocking::Hold::release) == Ok(())
        }));
    }
    over.store(true, Ordering::Relaxed);
    others.into_iter().for_each(|other| other.join().unwrap());
}

#[test]
fn where_the_system_gives_no_thread() {
    let server = Server::start();
    assert!(in_a_fork(|| {
        let one = libc::rlimit {
            rlim_cur: 1,
            rlim_max: 1,
        };
        // SAFETY: numbers, and a struct that is read. Nobody is limited who may do anything.
        let limited =
            unsafe { libc::setrlimit(libc::RLIMIT_NPROC, &one) == 0 && libc::setuid(65_533) == 0 };
        let locks = blocking::Locks::new(server.client());
        let end = locks.acquire("jobs").get();
        !limited || matches!(&end, Err(Error::Connection(why)) if why.starts_with("no thread"))
    }));
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
                .wait(s(20))
                .get()
                .and_then(blocking::Hold::release)
                == Ok(());
        let good = good && hold.release() == Err(Error::Lost(Reason::Fork));
        drop(locks);
        // SAFETY: ends the child.
        unsafe { libc::_exit(i32::from(!good)) };
    }
    assert!(was_good(child));
    assert!(!hold.is_lost() && !server.is_free("jobs"));
    assert_eq!(hold.release(), Ok(()));
}

#[tokio::test]
async fn close_returns_when_the_server_is_silent() {
    let server = Server::start();
    let locks = Locks::with_timeout(server.client(), s(5));
    let hold = locks.acquire("jobs").lease(s(60)).await.unwrap();
    server.signal(libc::SIGSTOP);
    let begun = Instant::now();
    tokio::join!(locks.close(), locks.close());
    let took = begun.elapsed();
    soon(locks.close()).await;
    server.signal(libc::SIGCONT);
    assert!(took < s(20), "{took:?}");
    assert_eq!(hold.reason(), Some(Reason::Closed));
    assert_eq!(hold.release().await, Err(Error::Lost(Reason::Closed)));
    until(|| server.is_free("jobs")).await;
}

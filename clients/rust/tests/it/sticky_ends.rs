//! However a use of a sticky lock ends, its turn is given back, and nothing stays on the server.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use rlock_client::{Error, Reason, Sticky, blocking};
use tokio::task::JoinHandle;

use crate::server::{PATIENCE, Server, ms, s, soon, until};
use crate::sticky::{owner, sticky};

/// Goes on until it is told to end.
struct Busy {
    end: tokio::sync::oneshot::Sender<()>,
    task: JoinHandle<Result<(), Error>>,
}

async fn busy(sticky: &Sticky) -> Busy {
    let (begins, begun) = tokio::sync::oneshot::channel();
    let (end, ends) = tokio::sync::oneshot::channel::<()>();
    let sticky = sticky.clone();
    let task = tokio::spawn(async move {
        let body = |_| async {
            _ = begins.send(());
            _ = ends.await;
        };
        sticky.run(body).await
    });
    soon(begun).await.unwrap();
    Busy { end, task }
}

impl Busy {
    async fn ends(self) {
        self.end.send(()).unwrap();
        soon(self.task).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn by_a_panic() {
    let server = Server::start();
    let locks = server.locks();
    let sticky = sticky(&locks);
    for late in [false, true] {
        let panics = sticky.clone();
        let task = tokio::spawn(async move {
            let body = |_| async move {
                if late {
                    tokio::task::yield_now().await;
                }
                panic!("the body's own");
            };
            panics.run(body).await
        });
        assert!(soon(task).await.unwrap_err().is_panic());
        owner(&sticky).await;
    }
    let panics = sticky.clone();
    let task = tokio::spawn(async move {
        let body = |_| -> std::future::Ready<()> { panic!("before there is a future") };
        panics.run(body).await
    });
    assert!(soon(task).await.unwrap_err().is_panic());
    owner(&sticky).await;
    soon(sticky.close()).await;
    assert!(server.is_free("jobs"));
}

#[test]
fn by_a_panic_without_tokio() {
    let server = Server::start();
    let locks = blocking::Locks::with_timeout(server.client(), PATIENCE);
    let sticky = locks.sticky("jobs").build().unwrap();
    for _ in 0..3 {
        let panics = AssertUnwindSafe(|| sticky.run(|_| panic!("the body's own")));
        assert!(catch_unwind(panics).is_err());
        // It is within no use any more.
        assert_eq!(sticky.run(|used| used.reason()), Ok(None));
    }
    sticky.close();
    assert!(server.is_free("jobs"));
}

#[tokio::test]
async fn by_a_future_that_is_dropped() {
    let server = Server::start();
    let (locks, others) = (server.locks(), server.locks());
    let sticky = sticky(&locks);
    for _ in 0..3 {
        // In its body.
        let busy = busy(&sticky).await;
        let waits = tokio::spawn({
            let sticky = sticky.clone();
            async move { owner(&sticky).await }
        });
        tokio::task::yield_now().await;
        assert!(!waits.is_finished());
        busy.task.abort();
        soon(waits).await.unwrap();
        // While it waits for another use.
        let busy = self::busy(&sticky).await;
        let run = sticky.run(|_| async {});
        assert!(tokio::time::timeout(ms(20), run).await.is_err());
        busy.ends().await;
        owner(&sticky).await;
        // While it waits for the lock.
        soon(sticky.run(|used| async move { drop(used) }))
            .await
            .unwrap();
        let hold = soon(others.acquire("jobs").wait(s(20))).await.unwrap();
        let run = sticky.run(|_| async {});
        assert!(tokio::time::timeout(ms(50), run).await.is_err());
        server.waiting("jobs", 0).await;
        hold.release().await.unwrap();
        // At every moment on its way there.
        for n in 0..30 {
            let run = sticky.run(|used| async move { used.token().await });
            _ = tokio::time::timeout(std::time::Duration::from_micros(n * 20), run).await;
        }
        owner(&sticky).await;
    }
    soon(sticky.close()).await;
    assert!(server.is_free("jobs"));
}

#[tokio::test]
async fn uses_never_overlap_though_the_lock_is_lost() {
    let server = Server::start();
    let locks = blocking::Locks::with_timeout(server.client(), PATIENCE);
    let sticky = locks.sticky("jobs").build().unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    let (go, goes) = channel::<()>();
    let (begun, begins) = channel::<()>();
    let first = thread::spawn({
        let (sticky, order) = (sticky.clone(), Arc::clone(&order));
        move || {
            sticky.run(|used| {
                begun.send(()).unwrap();
                goes.recv().unwrap();
                order.lock().unwrap().push("first");
                (used.reason(), used.token())
            })
        }
    });
    tokio::task::spawn_blocking(move || begins.recv().unwrap())
        .await
        .unwrap();
    let second = thread::spawn({
        let (sticky, order) = (sticky.clone(), Arc::clone(&order));
        move || {
            sticky.run(|used| {
                order.lock().unwrap().push("second");
                used.reason()
            })
        }
    });
    server.ask::<i64>("RLOCK.FORCE jobs");
    // For so long it could begin.
    tokio::time::sleep(ms(200)).await;
    assert!(!second.is_finished());
    go.send(()).unwrap();
    until(|| first.is_finished() && second.is_finished()).await;
    assert_eq!(first.join().unwrap(), Err(Error::Lost(Reason::Forced)));
    assert_eq!(second.join().unwrap(), Ok(None));
    assert_eq!(*order.lock().unwrap(), ["first", "second"]);
}

/// Some take it all the time, while others wait for it, poll it, force it and give up.
#[test]
fn however_often_it_is_lost() {
    let server = Server::start();
    let locks = blocking::Locks::with_timeout(server.client(), PATIENCE);
    let others = blocking::Locks::with_timeout(server.client(), PATIENCE);
    let sticky = locks.sticky("jobs").idle(ms(5)).build().unwrap();
    let (in_use, stop) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicBool::new(false)),
    );
    let users: Vec<_> = (0..4)
        .map(|n| {
            let (sticky, in_use, stop) = (sticky.clone(), Arc::clone(&in_use), Arc::clone(&stop));
            thread::spawn(move || {
                let (mut done, mut lost) = (0, 0);
                while done == 0 || !stop.load(Ordering::SeqCst) {
                    let body = |used: &blocking::Use| {
                        assert!(!in_use.swap(true, Ordering::SeqCst), "two at once");
                        if n == 0 {
                            _ = used.token();
                        }
                        in_use.store(false, Ordering::SeqCst);
                    };
                    match sticky.run(body) {
                        Ok(()) => done += 1,
                        Err(Error::Lost(Reason::Forced)) => lost += 1,
                        Err(error) => panic!("{error}"),
                    }
                }
                (done, lost)
            })
        })
        .collect();
    for n in 0..200 {
        server.ask::<i64>("RLOCK.FORCE jobs");
        thread::sleep(ms(n % 7));
        let wait = ms(n % 5);
        match others.acquire("jobs").wait(wait).get() {
            Ok(hold) => _ = hold.release(),
            Err(Error::NotAcquired { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    stop.store(true, Ordering::SeqCst);
    for user in users {
        let (done, _) = user.join().unwrap();
        assert!(done > 0);
    }
    sticky.close();
    assert!(server.is_free("jobs"));
}

#[tokio::test]
async fn a_use_within_a_use() {
    let server = Server::start();
    let locks = server.locks();
    let (sticky, other) = (sticky(&locks), locks.sticky("other").build().unwrap());
    let body = |used: rlock_client::Use| {
        let (sticky, other) = (&sticky, &other);
        async move {
            let within = sticky.run(|_| async {}).await.unwrap_err();
            assert_eq!(within, Error::UseWithin("jobs".into()));
            assert!(within.to_string().contains("jobs"));
            tokio::task::yield_now().await;
            let within = sticky.clone().run(|_| async {}).await.unwrap_err();
            assert_eq!(within, Error::UseWithin("jobs".into()));
            owner(other).await;
            assert!(!used.is_lost());
            // In another task it waits.
            let other = sticky.clone();
            (tokio::spawn(async move { other.run(|_| async {}).await }),)
        }
    };
    let waits = soon(sticky.run(body)).await.unwrap();
    soon(waits.0).await.unwrap().unwrap();
    // In the same task, but not within it.
    let both = async {
        tokio::join!(
            sticky.run(|_| tokio::task::yield_now()),
            sticky.run(|_| async {})
        )
    };
    assert_eq!(soon(both).await, (Ok(()), Ok(())));
}

#[test]
fn a_use_within_a_use_without_tokio() {
    let server = Server::start();
    let locks = blocking::Locks::with_timeout(server.client(), PATIENCE);
    let sticky = locks.sticky("jobs").build().unwrap();
    let other = locks.sticky("other").build().unwrap();
    let end = sticky.run(|_| {
        assert_eq!(
            other.run(|_| sticky.run(|_| ())),
            Ok(Err(Error::UseWithin("jobs".into())))
        );
        sticky.run(|_| ())
    });
    assert_eq!(end, Ok(Err(Error::UseWithin("jobs".into()))));
    assert_eq!(sticky.run(|_| 1), Ok(1));
}

#[tokio::test]
async fn close_within_a_use_does_not_wait_for_it() {
    let server = Server::start();
    let locks = server.locks();
    let sticky = sticky(&locks);
    let closed = sticky.run(|used| {
        let sticky = &sticky;
        async move {
            soon(sticky.close()).await;
            used.is_lost()
        }
    });
    assert_eq!(soon(closed).await, Ok(false));
    server.free("jobs").await;
    let end = soon(sticky.run(|_| async {})).await;
    assert!(matches!(end, Err(Error::Connection(_))));
    soon(sticky.close()).await;
    _ = soon(locks.acquire("jobs").wait(s(20))).await.unwrap();
}

#[tokio::test]
async fn one_that_nobody_refers_to_any_more_is_released() {
    let server = Server::start();
    let locks = server.locks();
    for _ in 0..3 {
        let sticky = sticky(&locks);
        let kept = soon(sticky.run(|used| async move { used })).await.unwrap();
        assert_eq!(kept.token().await, Err(Error::Lost(Reason::Released)));
        std::mem::forget(kept); // it keeps nobody from a turn
        let other = sticky.clone();
        drop(sticky);
        owner(&other).await;
        // The forgotten use refers to it yet: it is idle in the end.
        drop(other);
        server.free("jobs").await;
        let sticky = crate::sticky::sticky(&locks);
        owner(&sticky).await;
        drop(sticky);
        server.free("jobs").await;
    }
    soon(locks.close()).await;
}

#[tokio::test]
async fn the_locks_are_closed() {
    let server = Server::start();
    let locks = server.locks();
    let sticky = sticky(&locks);
    let busy = busy(&sticky).await;
    let waits = tokio::spawn({
        let sticky = sticky.clone();
        async move { sticky.run(|_| async {}).await }
    });
    tokio::time::sleep(ms(20)).await;
    soon(locks.close()).await;
    assert!(server.is_free("jobs"));
    let end = soon(busy.task).await.unwrap();
    assert_eq!(end, Err(Error::Lost(Reason::Closed)));
    let end = soon(waits).await.unwrap();
    assert!(matches!(end, Err(Error::Connection(_))));
    let end = soon(sticky.run(|_| async {})).await;
    assert!(matches!(end, Err(Error::Connection(_))));
    soon(sticky.close()).await;
}

#[test]
fn a_callback_of_a_loss_is_of_its_use_alone() {
    let server = Server::start();
    let locks = blocking::Locks::with_timeout(server.client(), PATIENCE);
    let sticky = locks.sticky("jobs").build().unwrap();
    let (said, says) = channel();
    let first = said.clone();
    sticky
        .run(|used| used.on_lost(move |reason| _ = first.send(("first", reason))))
        .unwrap();
    let end = sticky.run(|used| {
        used.on_lost(move |reason| _ = said.send(("second", reason)));
        server.ask::<i64>("RLOCK.FORCE jobs");
        assert_eq!(says.recv(), Ok(("second", Reason::Forced)));
        // The first was dropped.
        assert!(says.recv().is_err());
    });
    assert_eq!(end, Err(Error::Lost(Reason::Forced)));
    assert_eq!(sticky.run(|_| ()), Ok(()));
}

#[test]
fn a_fork_has_nothing_of_it() {
    use crate::runtimes::in_a_fork;
    let server = Server::start();
    let locks = blocking::Locks::with_timeout(server.client(), PATIENCE);
    let sticky = locks.sticky("jobs").build().unwrap();
    let owner = sticky.run(|used| used.owner().to_string()).unwrap();
    let own = || {
        let mine = sticky.run(|used| (used.owner().to_string(), used.token()));
        mine.is_ok_and(|(mine, token)| mine != owner && token.is_ok())
            // A fork of the fork cannot have it.
            && in_a_fork(|| matches!(sticky.run(|_| ()), Err(Error::Connection(_))))
    };
    // The parent's goes to whoever waits.
    assert!(in_a_fork(own));
    let mut in_child = false;
    let end = sticky.run(|used| {
        let lost = || {
            used.reason() == Some(Reason::Fork) && used.token() == Err(Error::Lost(Reason::Fork))
        };
        let good = in_a_fork(lost);
        in_child = good;
        used.is_lost()
    });
    assert!(in_child);
    assert_eq!(end, Ok(false));
    assert!(in_a_fork(own));
}

//! Code of the program that runs because of a loss, and calls again.

use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier, Mutex};
use std::task::{Context, Wake, Waker};

use rlock_client::blocking::{self, Hold};
use rlock_client::{Error, Reason};

use crate::server::{PATIENCE, Server, ms, s};

fn locks(server: &Server) -> blocking::Locks {
    blocking::Locks::new(server.client())
}

/// The lock is lost, and then `callback` runs to its end in the callback.
fn when_lost<T: Send + 'static>(
    server: &Server,
    hold: &Hold,
    callback: impl FnOnce(Reason) -> T + Send + 'static,
) -> T {
    let (done, over) = channel();
    hold.on_lost(move |reason| _ = done.send(callback(reason)));
    server.ask::<i64>(&format!("RLOCK.FORCE {}", hold.key()));
    over.recv_timeout(PATIENCE).expect("the callback ends")
}

#[test]
fn that_releases_acquires_and_renews() {
    let server = Server::start();
    let locks = locks(&server);
    let (a, b) = (
        locks.acquire("a").get().unwrap(),
        locks.acquire("b").get().unwrap(),
    );
    let again = locks.clone();
    let end = when_lost(&server, &a, move |reason| {
        let renewed = b.renew(s(20));
        let released = b.release();
        let next = again.acquire("c").get().and_then(Hold::release);
        (reason, renewed, released, next)
    });
    assert_eq!(end, (Reason::Forced, Ok(()), Ok(()), Ok(())));
    let free = locks.acquire("free").wait(s(20)).get().unwrap();
    assert_eq!(free.release(), Ok(()));
    assert!(
        ["a", "b", "c", "free"]
            .iter()
            .all(|key| server.is_free(key))
    );
}

#[test]
fn that_blocks_and_that_panics() {
    let server = Server::start();
    let locks = locks(&server);
    // More than there are threads in a pool of tokio's.
    let many: usize = 520;
    let hold = |i: usize| locks.acquire(format!("k{i}")).get().unwrap();
    let holds: Vec<Hold> = (0..many).map(hold).collect();
    let all = Arc::new(Barrier::new(many + 1));
    for hold in &holds {
        let (all, locks) = (Arc::clone(&all), locks.clone());
        hold.on_lost(move |_| {
            all.wait();
            locks
                .acquire("one")
                .wait(PATIENCE * 4)
                .get()
                .unwrap()
                .release()
                .unwrap();
            panic!("the program's own");
        });
    }
    server.ask::<String>("FLUSHALL");
    all.wait();
    let free = locks.acquire("one").wait(PATIENCE * 4).get().unwrap();
    assert_eq!(free.release(), Ok(()));
}

#[test]
fn that_drops_and_that_closes() {
    let server = Server::start();
    let first = locks(&server);
    let (a, b) = (
        first.acquire("a").get().unwrap(),
        first.acquire("b").get().unwrap(),
    );
    when_lost(&server, &a, move |_| drop(b));
    let end = std::time::Instant::now() + PATIENCE;
    while !server.is_free("b") {
        assert!(std::time::Instant::now() < end);
        std::thread::sleep(ms(5));
    }
    let c = first.acquire("c").get().unwrap();
    let other = first.acquire("other").get().unwrap();
    let close = first.clone();
    when_lost(&server, &c, move |_| close.close());
    assert_eq!(other.reason(), Some(Reason::Closed));
    assert_eq!(other.release(), Err(Error::Lost(Reason::Closed)));
    assert!(server.is_free("other"));
    assert!(matches!(
        first.acquire("a").get(),
        Err(Error::Connection(_))
    ));
    // The last that there is of it, in its own callback.
    let last = locks(&server);
    let hold = last.acquire("a").get().unwrap();
    let shared = Arc::new(Mutex::new(Some((hold.again().unwrap(), last))));
    let copy = Arc::clone(&shared);
    when_lost(&server, &hold, move |_| drop(copy.lock().unwrap().take()));
    drop(hold);
    assert_eq!(locks(&server).acquire("a").get().unwrap().release(), Ok(()));
}

#[test]
fn that_is_not_needed_is_dropped_with_the_hold() {
    let server = Server::start();
    let locks = locks(&server);
    let (kept, other) = (Arc::new(()), locks.acquire("other").get().unwrap());
    for key in ["a", "b"] {
        let hold = locks.acquire(key).get().unwrap();
        let (its, other) = (Arc::clone(&kept), other.again().unwrap());
        hold.on_lost(move |_| drop((its, other)));
        match key {
            "a" => hold.release().unwrap(),
            _ => drop(hold),
        }
    }
    let end = std::time::Instant::now() + PATIENCE;
    while Arc::strong_count(&kept) > 1 {
        assert!(std::time::Instant::now() < end);
        std::thread::sleep(ms(5));
    }
    other.release().unwrap();
    assert!(server.is_free("other"));
}

#[test]
fn by_a_waker_that_drops_a_hold() {
    struct Drops(Mutex<Option<Hold>>);
    impl Wake for Drops {
        fn wake(self: Arc<Self>) {
            drop(self.0.lock().unwrap().take());
            panic!("the program's own");
        }
    }
    let server = Server::start();
    let locks = rlock_client::blocking::Locks::new(server.client());
    let b = locks.acquire("b").get().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    let theirs = rlock_client::Locks::new(server.client());
    let a = runtime.block_on(theirs.acquire("a").into_future()).unwrap();
    let c = theirs.acquire("c");
    let c = runtime.block_on(c.into_future()).unwrap();
    let waker = Waker::from(Arc::new(Drops(Mutex::new(Some(b)))));
    let mut lost = Box::pin(a.lost());
    let poll = lost.as_mut().poll(&mut Context::from_waker(&waker));
    assert!(poll.is_pending());
    server.ask::<i64>("RLOCK.FORCE a");
    runtime.block_on(server.free("b"));
    assert_eq!(runtime.block_on(c.release()), Ok(()));
}

#[test]
fn by_a_waker_that_panics_while_a_reply_comes() {
    struct Panics(std::sync::mpsc::Sender<()>);
    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            _ = self.0.send(());
            panic!("the program's own: its executor is gone");
        }
    }
    let server = Server::start();
    let locks = rlock_client::Locks::new(server.client());
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    let ask = |key: &str| locks.acquire(key).into_future();
    let other = runtime.block_on(ask("other")).unwrap();
    server.ask::<String>("CLIENT PAUSE 300");
    let (woken, wakes) = std::sync::mpsc::channel();
    let waker = Waker::from(Arc::new(Panics(woken)));
    let mut asks = Box::pin(ask("mine"));
    let poll = asks.as_mut().poll(&mut Context::from_waker(&waker));
    assert!(poll.is_pending());
    wakes.recv_timeout(PATIENCE).unwrap();
    // Both by the same connection.
    drop(runtime.block_on(ask("new")).unwrap());
    assert_eq!(runtime.block_on(other.release()), Ok(()));
    assert!(runtime.block_on(asks).is_ok());
}

//! A program knows that somebody waits for what it holds, once it has asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rlock_client::{Acquire, Error, Hold, Locks, Reason, blocking};
use tokio::task::JoinHandle;

use crate::proxy::Proxy;
use crate::server::{Server, client, ms, s, soon, until};

pub struct World {
    pub server: Server,
    pub proxy: Proxy,
    /// By the proxy.
    pub locks: Locks,
    /// Those of somebody else.
    pub others: Locks,
}

pub type Waits = JoinHandle<Result<Hold, Error>>;

impl World {
    pub async fn start() -> Self {
        let server = Server::start();
        let proxy = Proxy::before(server.port).await;
        Self {
            locks: Locks::new(client(proxy.port)),
            others: server.locks(),
            server,
            proxy,
        }
    }

    pub async fn hold(&self) -> Hold {
        soon(self.locks.acquire("jobs").wait(s(20))).await.unwrap()
    }

    pub async fn plain(&self, lease: u64) -> Hold {
        let acquire = self.locks.acquire("jobs").wait(s(20));
        soon(acquire.plain().lease(s(lease))).await.unwrap()
    }

    pub async fn waits(&self) -> Waits {
        self.waits_for("jobs", |ask| ask).await
    }

    pub async fn waits_for(&self, key: &str, so: impl FnOnce(Acquire) -> Acquire) -> Waits {
        let waits = so(self.others.acquire(key).wait_forever());
        let waits = tokio::spawn(waits.into_future());
        self.server.waiting(key, 1).await;
        waits
    }

    /// What the server has said before that is read.
    pub async fn is_read(&self) {
        let beside = self.locks.acquire("beside").wait(s(20));
        soon(beside).await.unwrap().release().await.unwrap();
    }

    pub fn said(&self, word: &str) -> usize {
        let asked = self.proxy.asked();
        asked.lines().filter(|line| *line == word).count()
    }

    pub async fn asked(&self, word: &str, times: usize) {
        until(|| self.said(word) >= times).await;
    }
}

pub async fn has(waits: Waits) {
    let hold = soon(waits).await.unwrap().unwrap();
    hold.release().await.unwrap();
}

#[tokio::test]
async fn when_somebody_begins_to_wait() {
    let world = World::start().await;
    let hold = world.hold().await;
    assert!(!hold.is_wanted());
    let wanted = tokio::spawn(hold.wanted());
    world.is_read().await;
    assert!(!hold.is_wanted() && !wanted.is_finished());
    let waits = world.waits().await;
    assert!(soon(wanted).await.unwrap());
    until(|| hold.is_wanted()).await;
    assert!(soon(hold.wanted()).await);
    assert_eq!(world.said("WANTED"), 1);
    let late = hold.wanted();
    hold.release().await.unwrap();
    assert!(!soon(late).await);
    has(waits).await;
}

#[tokio::test]
async fn at_its_first_use_if_somebody_waits_already() {
    type So = fn(Acquire) -> Acquire;
    let world = World::start().await;
    let kinds: [So; 3] = [|ask| ask, Acquire::write, |ask| ask.permits(2, 2)];
    for (key, so) in ["jobs", "rw", "gpu"].into_iter().zip(kinds) {
        let hold = soon(so(world.locks.acquire(key))).await.unwrap();
        let waits = world.waits_for(key, so).await;
        assert!(soon(hold.wanted()).await, "{key}");
        hold.release().await.unwrap();
        has(waits).await;
    }
}

#[tokio::test]
async fn not_by_who_only_tries() {
    let world = World::start().await;
    let hold = world.hold().await;
    let wanted = tokio::spawn(hold.wanted());
    for _ in 0..5 {
        let tries = soon(world.others.acquire("jobs")).await;
        assert!(matches!(tries, Err(Error::NotAcquired { .. })));
        world.is_read().await;
    }
    assert!(!hold.is_wanted() && !wanted.is_finished());
}

#[tokio::test]
async fn as_long_as_somebody_waits_and_no_longer() {
    let world = World::start().await;
    let hold = soon(world.locks.acquire("jobs").lease(s(6))).await.unwrap();
    let waits = world.waits().await;
    assert!(soon(hold.wanted()).await);
    // It was said long ago for the first time.
    tokio::time::sleep(s(8)).await;
    until(|| hold.is_wanted()).await;
    waits.abort();
    world.server.waiting("jobs", 0).await;
    until(|| !hold.is_wanted()).await;
    world.is_read().await;
    assert!(!hold.is_wanted());
    assert_eq!(hold.release().await, Ok(()));
}

#[tokio::test]
async fn readers_by_who_writes_and_not_by_each_other() {
    let world = World::start().await;
    let hold = soon(world.locks.acquire("jobs").read()).await.unwrap();
    let wanted = tokio::spawn(hold.wanted());
    let beside = soon(world.others.acquire("jobs").read()).await.unwrap();
    world.is_read().await;
    assert!(!hold.is_wanted() && !wanted.is_finished());
    let writes = world.waits_for("jobs", Acquire::write).await;
    assert!(soon(wanted).await.unwrap());
    assert!(soon(beside.wanted()).await);
    hold.release().await.unwrap();
    beside.release().await.unwrap();
    let writer = soon(writes).await.unwrap().unwrap();
    let reads = world.waits_for("jobs", Acquire::read).await;
    assert!(soon(writer.wanted()).await);
    writer.release().await.unwrap();
    has(reads).await;
}

#[tokio::test]
async fn a_deadline_stays() {
    let world = World::start().await;
    let hold = world.plain(20).await;
    let before = world.server.ask::<i64>("PEXPIRETIME jobs");
    // So that a lease that began anew would be seen.
    tokio::time::sleep(s(4)).await;
    let waits = world.waits().await;
    assert!(soon(hold.wanted()).await);
    let after = world.server.ask::<i64>("PEXPIRETIME jobs");
    assert!(after - before < 3_000, "{before} {after}");
    // When it is over.
    has(waits).await;
    let reason = soon(hold.lost()).await;
    assert!(matches!(reason, Reason::Expired | Reason::Lease));
    assert!(!hold.is_wanted());
}

#[tokio::test]
async fn it_is_over_with_the_hold() {
    let world = World::start().await;
    for forced in [true, false] {
        let hold = world.hold().await;
        let again = hold.again().unwrap();
        let wanted = tokio::spawn(again.wanted());
        again.release().await.unwrap();
        world.is_read().await;
        assert!(!wanted.is_finished());
        if forced {
            world.server.ask::<i64>("RLOCK.FORCE jobs");
            assert_eq!(soon(hold.lost()).await, Reason::Forced);
            assert!(!hold.is_wanted() && !soon(hold.wanted()).await);
        }
        drop(hold);
        assert!(!soon(wanted).await.unwrap());
    }
}

#[tokio::test]
async fn what_is_said_behind_the_release_is_nothing() {
    let world = World::start().await;
    let hold = world.hold().await;
    let wanted = hold.wanted();
    world.is_read().await;
    world.proxy.freeze(true);
    let waits = world.waits().await;
    let released = tokio::spawn(hold.release());
    assert!(!soon(wanted).await);
    world.proxy.freeze(false);
    soon(released).await.unwrap().unwrap();
    has(waits).await;
    let next = world.hold().await;
    world.is_read().await;
    assert!(!next.is_wanted());
    assert_eq!(next.release().await, Ok(()));
}

#[tokio::test]
async fn a_first_use_comes_from_anywhere_and_is_one() {
    let world = World::start().await;
    let hold = Arc::new(world.hold().await);
    let counted = Arc::new(AtomicUsize::new(0));
    let threads = (0..20).map(|_| {
        let (hold, counted) = (Arc::clone(&hold), Arc::clone(&counted));
        std::thread::spawn(move || {
            tokio::runtime::Builder::new_current_thread()
                .build()
                .unwrap()
                .block_on(hold.wanted());
            counted.fetch_add(1, Ordering::SeqCst);
        })
    });
    let threads: Vec<_> = threads.collect();
    let waits = world.waits().await;
    until(|| counted.load(Ordering::SeqCst) == threads.len()).await;
    assert_eq!(world.said("WANTED"), 1);
    world.locks.close().await;
    assert!(!soon(hold.wanted()).await);
    has(waits).await;
}

#[tokio::test]
async fn who_never_uses_it_says_nothing_nor_is_it_said_of_several_keys() {
    let world = World::start().await;
    world.hold().await.release().await.unwrap();
    let several = soon(world.locks.acquire_many(["jobs", "more"])).await;
    let several = several.unwrap();
    let wanted = several.wanted();
    let waits = world.waits().await;
    world.is_read().await;
    assert!(!several.is_wanted());
    assert_eq!(world.said("WANTED"), 0);
    several.release().await.unwrap();
    assert!(!soon(wanted).await);
    has(waits).await;
}

#[test]
fn without_async() {
    let server = Server::start();
    let locks = blocking::Locks::new(server.client());
    let hold = locks.acquire("jobs").get().unwrap();
    assert!(!hold.is_wanted());
    assert!(!hold.wanted_within(ms(50)));
    let others = blocking::Locks::new(server.client());
    let waits = std::thread::spawn(move || others.acquire("jobs").wait_forever().get());
    assert!(hold.wanted());
    assert!(hold.wanted_within(s(30)));
    hold.release().unwrap();
    waits.join().unwrap().unwrap().release().unwrap();
    let gone = locks.acquire("gone").get().unwrap();
    server.ask::<i64>("RLOCK.FORCE gone");
    assert!(!gone.wanted() && !gone.wanted_within(s(600)));
}

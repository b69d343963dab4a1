//! A hold gives way to whoever waits, and is a hold again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rlock_client::{Acquire, Error, Hold, Locks, Reason, blocking};
use tokio::task::JoinHandle;

use crate::server::{Server, ms, s, soon, until};
use crate::wanted::{Waits, World, has};

pub type Gives = JoinHandle<(Hold, Result<bool, Error>)>;

/// In a task of its own, however young it is.
pub fn gives(mut hold: Hold) -> Gives {
    tokio::spawn(async move {
        let end = hold.give_way().least(ms(0)).await;
        (hold, end)
    })
}

/// Another waits for it, who has it once it gives way.
pub async fn wanted_by(world: &World, hold: &Hold) -> Waits {
    let waits = world.waits_for(hold.key(), |ask| ask).await;
    until(|| hold.is_wanted()).await;
    waits
}

pub async fn of(waits: Waits) -> Hold {
    soon(waits).await.unwrap().unwrap()
}

/// What was said of holds.
pub fn said(world: &World) -> usize {
    ["ACQUIRE", "RELEASE", "RENEW", "CANCEL"]
        .iter()
        .map(|verb| world.said(&format!("RLOCK.{verb}")))
        .sum()
}

/// Once more, to one who has the lock just so long.
async fn gives_way(world: &World, hold: Hold) -> Hold {
    let token = hold.token();
    let waits = wanted_by(world, &hold).await;
    let key = hold.key().to_string();
    let giving = gives(hold);
    let between = of(waits).await;
    assert!(between.token() > token);
    world.server.waiting(&key, 1).await;
    assert!(!giving.is_finished());
    let token = between.token();
    between.release().await.unwrap();
    let (hold, end) = soon(giving).await.unwrap();
    assert_eq!(end, Ok(true));
    assert!(hold.token() > token && !hold.is_lost());
    hold
}

#[tokio::test]
async fn not_if_nobody_waits() {
    let world = World::start().await;
    let mut hold = world.hold().await;
    let token = hold.token();
    assert_eq!(hold.give_way().least(ms(0)).await, Ok(false));
    world.is_read().await;
    let before = said(&world);
    for _ in 0..50 {
        assert_eq!(hold.give_way().least(ms(0)).await, Ok(false));
    }
    assert_eq!((said(&world), world.said("WANTED")), (before, 1));
    assert_eq!(hold.token(), token);
    hold.release().await.unwrap();
}

#[tokio::test]
async fn not_if_it_is_too_young() {
    let world = World::start().await;
    let began = Instant::now();
    let mut hold = world.hold().await;
    let waits = wanted_by(&world, &hold).await;
    let before = said(&world);
    for least in [s(30), Duration::MAX] {
        assert_eq!(hold.give_way().least(least).await, Ok(false));
    }
    world.is_read().await;
    assert_eq!(said(&world), before + 2);
    assert!(!waits.is_finished());
    let giving = tokio::spawn(async move {
        while hold.give_way().least(ms(500)).await == Ok(false) {
            tokio::task::yield_now().await;
        }
        hold
    });
    let between = of(waits).await;
    assert!(began.elapsed() >= ms(500));
    between.release().await.unwrap();
    let mut hold = soon(giving).await.unwrap();
    let waits = wanted_by(&world, &hold).await;
    // It is counted from the new grant.
    assert_eq!(hold.give_way().least(s(30)).await, Ok(false));
    hold.release().await.unwrap();
    has(waits).await;
}

#[tokio::test]
async fn who_waits_is_served_in_between() {
    type So = fn(Acquire) -> Acquire;
    let world = World::start().await;
    let kinds: [(&str, So, So); 6] = [
        ("jobs", |ask| ask, |ask| ask),
        ("plain", |ask| ask.plain().lease(s(60)), |ask| ask),
        ("short", |ask| ask.lease(s(6)), |ask| ask),
        ("gpu", |ask| ask.permits(2, 2), |ask| ask.permits(2, 1)),
        ("read", |ask| ask.read().lease(s(60)), Acquire::write),
        ("write", |ask| ask.write().lease(s(60)), Acquire::read),
    ];
    for (key, so, others) in kinds {
        let hold = soon(so(world.locks.acquire(key))).await.unwrap();
        let (token, owner) = (hold.token(), hold.owner().to_string());
        let waits = world.waits_for(key, others).await;
        assert!(soon(hold.wanted()).await, "{key}");
        let giving = gives(hold);
        let between = of(waits).await;
        assert!(between.token() > token, "{key}");
        world.server.waiting(key, 1).await;
        assert!(!giving.is_finished(), "{key}");
        let token = between.token();
        between.release().await.unwrap();
        let (hold, end) = soon(giving).await.unwrap();
        assert_eq!(end, Ok(true), "{key}");
        assert!(hold.token() > token && !hold.is_lost(), "{key}");
        assert_ne!(hold.owner(), owner, "{key}");
        assert_eq!(hold.remaining().is_some(), key == "plain");
        soon(hold.renew(s(20))).await.unwrap();
        soon(hold.release()).await.unwrap();
        world.server.free(key).await;
    }
}

#[tokio::test]
async fn both_commands_go_out_in_one_write() {
    let world = World::start().await;
    let job = world.locks.job();
    let asks = [
        world.locks.acquire("jobs"),
        world.locks.acquire("of-a-job").job(&job),
    ];
    for ask in asks {
        let mut hold = soon(ask).await.unwrap();
        for _ in 0..20 {
            hold = gives_way(&world, hold).await;
        }
        soon(hold.release()).await.unwrap();
    }
    let proxy = &world.proxy;
    assert_eq!(proxy.asked_at_once("RLOCK.RELEASE", "RLOCK.ACQUIRE"), 40);
    assert_eq!(world.said("RLOCK.RELEASE"), 42);
    assert_eq!(world.said("WANTED"), 40 + 2);
}

#[tokio::test]
async fn in_the_order_of_the_queue() {
    let world = World::start().await;
    let mut hold = world.hold().await;
    let mut all = Vec::new();
    for number in 1..=5 {
        let ask = world.others.acquire("jobs").wait_forever();
        all.push(tokio::spawn(ask.run(|hold| async move { hold.token() })));
        world.server.waiting("jobs", number).await;
    }
    until(|| hold.is_wanted()).await;
    assert_eq!(soon(hold.give_way().least(ms(0))).await, Ok(true));
    for one in all {
        assert!(soon(one).await.unwrap().unwrap() < hold.token());
    }
    assert_eq!(hold.give_way().least(ms(0)).await, Ok(false));
}

async fn alternates(locks: Locks, mine: Arc<AtomicUsize>, theirs: Arc<AtomicUsize>) {
    static INSIDE: AtomicUsize = AtomicUsize::new(0);
    let mut hold = soon(locks.acquire("jobs").wait(s(30))).await.unwrap();
    let mut token = 0;
    while mine
        .load(Ordering::SeqCst)
        .min(theirs.load(Ordering::SeqCst))
        < 50
    {
        assert_eq!(INSIDE.fetch_add(1, Ordering::SeqCst), 0);
        assert!(hold.token() >= token);
        token = hold.token();
        tokio::task::yield_now().await;
        INSIDE.fetch_sub(1, Ordering::SeqCst);
        if hold.give_way().wait(s(30)).least(ms(1)).await.unwrap() {
            mine.fetch_add(1, Ordering::SeqCst);
        }
    }
    hold.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_that_alternate() {
    let world = World::start().await;
    let (one, two) = (Arc::default(), Arc::default());
    let first = alternates(world.locks.clone(), Arc::clone(&one), Arc::clone(&two));
    let second = alternates(world.others.clone(), two, one);
    let (first, second) = (tokio::spawn(first), tokio::spawn(second));
    soon(first).await.unwrap();
    soon(second).await.unwrap();
}

#[tokio::test]
async fn its_lease_is_that_of_now_and_its_max_counted_anew() {
    let world = World::start().await;
    let hold = world.plain(15).await;
    soon(hold.renew(s(60))).await.unwrap();
    let hold = gives_way(&world, hold).await;
    assert!(hold.remaining().unwrap() > s(30));
    assert!(world.server.ask::<i64>("PTTL jobs") > 30_000);
    soon(hold.release()).await.unwrap();
    let hold = world.locks.acquire("jobs").max(s(10)).await.unwrap();
    tokio::time::sleep(s(5)).await;
    let hold = gives_way(&world, hold).await;
    let again = Instant::now();
    assert_eq!(soon(hold.lost()).await, Reason::Max);
    assert!(again.elapsed() > s(5));
}

/// By whoever waits behind it; what was said before is not counted.
#[tokio::test]
async fn it_is_wanted_again() {
    let world = World::start().await;
    let hold = world.hold().await;
    let first = wanted_by(&world, &hold).await;
    let giving = gives(hold);
    let between = of(first).await;
    world.server.waiting("jobs", 1).await;
    let second = tokio::spawn(world.others.acquire("jobs").wait(s(30)).into_future());
    world.server.waiting("jobs", 2).await;
    let renewed = world.said("RLOCK.RENEW");
    between.release().await.unwrap();
    let (hold, end) = soon(giving).await.unwrap();
    assert_eq!(end, Ok(true));
    assert!(soon(hold.wanted()).await);
    // The request itself has asked.
    assert_eq!(world.said("RLOCK.RENEW"), renewed);
    let giving = gives(hold);
    has(second).await;
    let (hold, end) = soon(giving).await.unwrap();
    assert_eq!((end, hold.is_wanted()), (Ok(true), false));
}

#[tokio::test]
async fn whoever_wants_to_know_of_its_loss() {
    let world = World::start().await;
    let hold = world.hold().await;
    let (lost, wanted) = (tokio::spawn(hold.lost()), hold.wanted());
    let late = hold.lost();
    assert!(!hold.is_wanted());
    let waits = wanted_by(&world, &hold).await;
    let giving = gives(hold);
    has(waits).await;
    let (hold, end) = soon(giving).await.unwrap();
    assert_eq!(end, Ok(true));
    world.is_read().await;
    assert!(!lost.is_finished() && !hold.is_lost());
    assert!(!soon(wanted).await); // it has given way
    world.server.ask::<i64>("RLOCK.FORCE jobs");
    assert_eq!(soon(lost).await.unwrap(), Reason::Forced);
    assert_eq!(soon(late).await, Reason::Forced);
    assert_eq!(hold.release().await, Err(Error::Lost(Reason::Forced)));
}

#[tokio::test]
async fn other_locks_of_its_job_stay() {
    let world = World::start().await;
    let job = world.locks.job();
    let ask = |key: &str| world.locks.acquire(key).job(&job).wait(s(20));
    let other = soon(ask("other")).await.unwrap();
    let mut hold = soon(ask("jobs")).await.unwrap();
    for _ in 0..5 {
        let waits = wanted_by(&world, &hold).await;
        let giving = gives(hold);
        let between = of(waits).await;
        world.server.waiting("jobs", 1).await;
        assert!(!world.server.is_free("other"));
        let twice = soon(ask("jobs")).await.unwrap_err();
        assert_eq!(twice, Error::HeldByJob("jobs".into()));
        between.release().await.unwrap();
        let end;
        (hold, end) = soon(giving).await.unwrap();
        assert_eq!((end, hold.owner()), (Ok(true), job.owner()));
    }
    assert!(!other.is_lost());
    hold.release().await.unwrap();
    assert!(world.server.is_free("jobs"));
    soon(ask("jobs")).await.unwrap().release().await.unwrap();
    other.release().await.unwrap();
}

#[tokio::test]
async fn not_what_is_held_more_than_once_or_of_several_keys() {
    let world = World::start().await;
    let hold = world.hold().await;
    let mut again = hold.again().unwrap();
    let mut several = soon(world.locks.acquire_many(["a", "b"])).await.unwrap();
    let waits = wanted_by(&world, &hold).await;
    let before = said(&world);
    for one in [&mut again, &mut several] {
        let error = one.give_way().least(ms(0)).await.unwrap_err();
        assert!(matches!(error, Error::Argument(_)), "{error}");
    }
    assert_eq!(said(&world), before);
    drop(hold);
    let giving = gives(again);
    has(waits).await;
    assert_eq!(soon(giving).await.unwrap().1, Ok(true));
}

/// Its body has the hold alone, and what is lost afterwards ends it.
#[tokio::test]
async fn in_a_scope() {
    let world = World::start().await;
    let (begun, begins) = tokio::sync::oneshot::channel();
    let ask = world.locks.acquire("jobs").wait(s(20));
    let running = tokio::spawn(ask.run(|mut hold| async move {
        assert!(hold.wanted().await);
        assert_eq!(hold.give_way().least(ms(0)).await, Ok(true));
        _ = begun.send(hold.token());
        std::future::pending::<()>().await;
    }));
    until(|| !world.server.is_free("jobs")).await;
    let between = of(world.waits().await).await;
    let token = between.token();
    between.release().await.unwrap();
    assert!(soon(begins).await.unwrap() > token);
    world.server.ask::<i64>("RLOCK.FORCE jobs");
    let end = soon(running).await.unwrap();
    assert_eq!(end, Err(Error::Lost(Reason::Forced)));

    let ask = world.locks.acquire("jobs").wait(s(20));
    let running = tokio::spawn(ask.run(|mut hold| async move {
        assert!(hold.wanted().await);
        hold.give_way().least(ms(0)).await
    }));
    until(|| !world.server.is_free("jobs")).await;
    has(world.waits().await).await;
    assert_eq!(soon(running).await.unwrap(), Ok(Ok(true)));
    assert!(
        world.server.is_free("jobs"),
        "it has waited for the release"
    );
}

/// It was granted again, and lost, before the body could go on.
#[tokio::test]
async fn lost_before_its_body_knows_that_it_is_a_hold_again() {
    let world = World::start().await;
    let ask = world.locks.acquire("jobs").wait(s(20));
    let running = tokio::spawn(ask.run(|mut hold| async move {
        assert!(hold.wanted().await);
        hold.give_way().least(ms(0)).await?; // which may know it already
        std::future::pending::<Result<(), Error>>().await
    }));
    until(|| !world.server.is_free("jobs")).await;
    let between = of(world.waits().await).await;
    let before = [between.owner().to_string()];
    tokio::time::sleep(ms(200)).await; // it has the reply to its request
    drop(between);
    // This keeps the only thread of the runtime: the session, which has its own, knows both before the body goes on.
    while world.server.ask::<Vec<String>>("HKEYS jobs")[..] == before {}
    std::thread::sleep(ms(200));
    world.server.ask::<i64>("DEL jobs");
    std::thread::sleep(ms(200));
    let end = soon(running).await.unwrap().and_then(|end| end);
    assert_eq!(end, Err(Error::Lost(Reason::Deleted)));
}

#[test]
fn without_async() {
    let server = Server::start();
    let locks = blocking::Locks::new(server.client());
    let others = blocking::Locks::new(server.client());
    let mut hold = locks.acquire("jobs").get().unwrap();
    assert_eq!(hold.give_way().least(ms(0)).get(), Ok(false));
    let waits = std::thread::spawn(move || {
        let hold = others.acquire("jobs").wait(s(30)).get().unwrap();
        let token = hold.token();
        hold.release().unwrap();
        token
    });
    assert!(hold.wanted());
    assert_eq!(hold.give_way().wait(s(30)).least(ms(0)).get(), Ok(true));
    assert!(hold.token() > waits.join().unwrap());
    hold.release().unwrap();
    assert!(server.is_free("jobs"));
}

//! A hold that gives way is none again: it is over, nothing is left on the server, and its scope says nothing more.

use std::task::{Context, Poll, Waker};

use rlock_client::{Error, Hold, Locks, Reason};

use crate::give_way::{gives, of, wanted_by};
use crate::server::{Server, client, ms, s, soon, until};
use crate::wanted::{World, has};

async fn is_over(mut hold: Hold, reason: Reason) {
    assert_eq!((hold.reason(), hold.is_wanted()), (Some(reason), false));
    assert_eq!(soon(hold.lost()).await, reason);
    assert!(!soon(hold.wanted()).await);
    assert_eq!(soon(hold.renew(s(20))).await, Err(Error::Lost(reason)));
    assert_eq!(soon(hold.give_way()).await, Err(Error::Lost(reason)));
    assert_eq!(hold.again().unwrap_err(), Error::Lost(reason));
    assert_eq!(soon(hold.release()).await, Ok(()));
}

#[tokio::test]
async fn the_time_is_over() {
    let world = World::start().await;
    let mut hold = world.hold().await;
    let lost = tokio::spawn(hold.lost());
    let waits = wanted_by(&world, &hold).await;
    let end = soon(hold.give_way().wait(ms(300)).least(ms(0))).await;
    assert!(matches!(end, Err(Error::NotAcquired { .. })), "{end:?}");
    let between = of(waits).await;
    assert_eq!(soon(lost).await.unwrap(), Reason::Released);
    is_over(hold, Reason::Released).await;
    assert_eq!(world.server.waiters("jobs"), 0);
    assert!(!between.is_lost());
    between.release().await.unwrap();
    world.hold().await.release().await.unwrap();
}

/// It has the error where it asked, and goes on.
#[tokio::test]
async fn a_scope_is_not_ended_by_that() {
    let world = World::start().await;
    let ask = world.locks.acquire("jobs").wait(s(20));
    let running = tokio::spawn(ask.run(|mut hold| async move {
        assert!(hold.wanted().await);
        let end = hold.give_way().wait(ms(200)).least(ms(0)).await;
        assert!(hold.is_lost());
        tokio::time::sleep(ms(300)).await;
        end
    }));
    until(|| !world.server.is_free("jobs")).await;
    let between = of(world.waits().await).await;
    let end = soon(running).await.unwrap().unwrap();
    assert!(matches!(end, Err(Error::NotAcquired { .. })), "{end:?}");
    assert!(!between.is_lost());
}

/// Who was served waits for another lock of the job.
#[tokio::test]
async fn a_deadlock() {
    let world = World::start().await;
    let (job, theirs) = (world.locks.job(), world.others.job());
    let ask = |key: &str| world.locks.acquire(key).job(&job).wait(s(20));
    let other = soon(ask("other")).await.unwrap();
    let mut hold = soon(ask("jobs")).await.unwrap();
    let waits = world.waits_for("jobs", |ask| ask.job(&theirs)).await;
    let more = world.waits_for("other", |ask| ask.job(&theirs)).await;
    until(|| hold.is_wanted()).await;
    let end = soon(hold.give_way().least(ms(0))).await;
    assert!(matches!(end, Err(Error::Deadlock(_))), "{end:?}");
    let between = of(waits).await;
    is_over(hold, Reason::Released).await;
    assert!(!other.is_lost());
    other.release().await.unwrap();
    has(more).await;
    between.release().await.unwrap();
    soon(ask("jobs")).await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn a_user_who_may_not_any_more() {
    let world = World::start().await;
    for (verb, of_a_job) in [
        ("acquire", false),
        ("acquire", true),
        ("release", false),
        ("release", true),
    ] {
        let job = world.locks.job();
        // So that it is retried soon.
        let ask = || match (of_a_job, world.locks.acquire("jobs").lease(s(6))) {
            (true, ask) => ask.job(&job).wait(s(20)),
            (false, ask) => ask.wait(s(20)),
        };
        let mut hold = soon(ask()).await.unwrap();
        let waits = wanted_by(&world, &hold).await;
        let user = |sign| format!("ACL SETUSER default {sign}rlock.{verb}");
        world.server.ask::<String>(&user('-'));
        let end = soon(hold.give_way().least(ms(0))).await;
        assert!(
            matches!(&end, Err(Error::Refused { code, .. }) if code == "NOPERM"),
            "{end:?}"
        );
        if verb == "release" {
            world.server.waiting("jobs", 1).await; // what was asked for is cancelled
            assert!(!waits.is_finished());
        }
        let token = hold.token();
        is_over(hold, Reason::Released).await;
        world.server.ask::<String>(&user('+'));
        // The job's next one comes behind the release, and is not the one that is to end.
        let next = tokio::spawn(ask().into_future());
        let between = of(waits).await;
        assert!(between.token() > token);
        let token = between.token();
        between.release().await.unwrap();
        let next = of(next).await;
        assert!(next.token() > token);
        soon(next.release()).await.unwrap();
        world.server.free("jobs").await;
    }
}

/// What a job is granted behind a release that is refused is the hold that is to end: whichever reply is taken first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_that_is_taken_at_once() {
    let world = World::start().await;
    let job = world.locks.job();
    for _ in 0..10 {
        let ask = world.locks.acquire("jobs").job(&job).lease(s(6));
        let mut hold = soon(ask.wait(s(20))).await.unwrap();
        let waits = wanted_by(&world, &hold).await;
        world
            .server
            .ask::<String>("ACL SETUSER default -rlock.release");
        let mut giving = hold.give_way().least(ms(0)).into_future();
        let mut context = Context::from_waker(Waker::noop());
        let end = loop {
            if let Poll::Ready(end) = giving.as_mut().poll(&mut context) {
                break end;
            }
        };
        drop(giving);
        assert!(matches!(end, Err(Error::Refused { .. })), "{end:?}");
        world
            .server
            .ask::<String>("ACL SETUSER default +rlock.release");
        is_over(hold, Reason::Released).await;
        has(waits).await;
    }
}

/// It is no hold that could give way: so it is not acquired anew.
#[tokio::test]
async fn a_loss_that_it_learns_of_only_then() {
    let world = World::start().await;
    for of_a_job in [false, true] {
        let job = world.locks.job();
        let ask = world.locks.acquire("jobs").wait(s(20)).lease(s(60));
        let ask = if of_a_job { ask.job(&job) } else { ask };
        let hold = soon(ask).await.unwrap();
        let waits = wanted_by(&world, &hold).await;
        world.proxy.freeze(true);
        world.server.ask::<i64>("RLOCK.FORCE jobs");
        let between = of(waits).await;
        let giving = gives(hold);
        tokio::time::sleep(ms(100)).await;
        world.proxy.freeze(false);
        let (hold, end) = soon(giving).await.unwrap();
        assert_eq!(end, Err(Error::Lost(hold.reason().unwrap())));
        let reason = hold.reason().unwrap();
        assert_eq!(reason, Reason::Forced);
        is_over(hold, reason).await;
        world.server.waiting("jobs", 0).await;
        assert!(!between.is_lost());
        between.release().await.unwrap();
        world.server.free("jobs").await;
    }
}

/// The request goes on by the next one: if it was waiting, or the release had no reply.
#[tokio::test]
async fn a_connection_that_breaks_does_not_end_it() {
    let world = World::start().await;
    for (plain, of_a_job, cut) in (0..8).map(|n| (n % 2 == 0, n % 4 < 2, n < 4)) {
        let job = world.locks.job();
        let ask = world.locks.acquire("jobs").wait(s(20)).lease(s(60));
        let ask = if plain { ask.plain() } else { ask };
        let ask = if of_a_job { ask.job(&job) } else { ask };
        let hold = soon(ask).await.unwrap();
        let waits = wanted_by(&world, &hold).await;
        if cut {
            world.proxy.cut("RLOCK.RELEASE");
        }
        let giving = gives(hold);
        let between = of(waits).await;
        if !cut {
            world.server.waiting("jobs", 1).await;
            let asked = world.said("ONCE"); // as each request says
            world.proxy.close();
            world.asked("ONCE", asked + 1).await;
        }
        world.server.waiting("jobs", 1).await;
        assert!(!giving.is_finished());
        let token = between.token();
        between.release().await.unwrap();
        let (hold, end) = soon(giving).await.unwrap();
        assert_eq!(end, Ok(true), "{plain} {of_a_job} {cut}");
        assert!(hold.token() > token);
        soon(hold.release()).await.unwrap();
        world.server.free("jobs").await;
    }
}

/// By the next connection a job's request waits for the release: the server would take it for what is to end.
#[tokio::test]
async fn a_release_that_the_next_connection_is_refused() {
    let world = World::start().await;
    let job = world.locks.job();
    let ask = world.locks.acquire("jobs").job(&job).plain().lease(s(15));
    let hold = soon(ask).await.unwrap();
    let waits = wanted_by(&world, &hold).await;
    world
        .server
        .ask::<String>("ACL SETUSER default -rlock.release");
    world.proxy.freeze(true);
    let token = hold.token();
    let giving = gives(hold);
    let asked = world.said("ONCE"); // as each request says
    tokio::time::sleep(ms(100)).await;
    world.proxy.close();
    world.proxy.freeze(false);
    world.asked("RLOCK.RELEASE", 1).await;
    tokio::time::sleep(ms(300)).await;
    assert_eq!(world.said("ONCE"), asked);
    assert!(!giving.is_finished() && !waits.is_finished());
    world
        .server
        .ask::<String>("ACL SETUSER default +rlock.release");
    let between = of(waits).await;
    assert!(between.token() > token);
    between.release().await.unwrap();
    assert_eq!(soon(giving).await.unwrap().1, Ok(true));
}

#[tokio::test]
async fn there_is_no_answer_any_more() {
    let world = World::start().await;
    let locks = Locks::with_timeout(client(world.proxy.port), s(5));
    let mut hold = soon(locks.acquire("jobs").plain().lease(s(60)))
        .await
        .unwrap();
    let waits = wanted_by(&world, &hold).await;
    world.proxy.freeze(true);
    let end = soon(hold.give_way().wait(ms(300)).least(ms(0))).await;
    assert!(matches!(end, Err(Error::Connection(_))), "{end:?}");
    is_over(hold, Reason::Released).await;
    // And what is left to say is said.
    world.proxy.freeze(false);
    has(waits).await;
    world.server.free("jobs").await;
}

/// While it waits, and while the grant is on its way.
#[tokio::test]
async fn its_future_is_dropped() {
    let world = World::start().await;
    for (granted, of_a_job) in [(false, false), (false, true), (true, false), (true, true)] {
        let job = world.locks.job();
        let ask = || match (of_a_job, world.locks.acquire("jobs").wait(s(20))) {
            (true, ask) => ask.job(&job),
            (false, ask) => ask,
        };
        let mut hold = soon(ask()).await.unwrap();
        let waits = wanted_by(&world, &hold).await;
        {
            let mut giving = hold.give_way().least(ms(0)).into_future();
            let between = tokio::select! {
                between = of(waits) => between,
                end = &mut giving => panic!("{end:?}"),
            };
            world.server.waiting("jobs", 1).await;
            if granted {
                world.proxy.freeze(true);
            }
            let token = between.token();
            between.release().await.unwrap();
            if granted {
                world.server.waiting("jobs", 0).await;
            }
            drop(giving);
            assert!(token > 0);
        }
        assert_eq!(hold.reason(), Some(Reason::Released));
        world.proxy.freeze(false);
        is_over(hold, Reason::Released).await;
        world.server.free("jobs").await;
        world.server.waiting("jobs", 0).await;
        soon(ask()).await.unwrap().release().await.unwrap();
    }
}

#[tokio::test]
async fn its_locks_are_closed_meanwhile() {
    let world = World::start().await;
    let hold = world.hold().await;
    let waits = wanted_by(&world, &hold).await;
    let giving = gives(hold);
    let between = of(waits).await;
    world.server.waiting("jobs", 1).await;
    soon(world.locks.close()).await;
    let (hold, end) = soon(giving).await.unwrap();
    assert!(matches!(end, Err(Error::Connection(_))), "{end:?}");
    assert_eq!(hold.reason(), Some(Reason::Released));
    assert_eq!(soon(hold.release()).await, Ok(()));
    world.server.waiting("jobs", 0).await;
    assert!(!between.is_lost());
}

#[tokio::test]
async fn a_hold_that_was_lost_does_not_give_way() {
    let world = World::start().await;
    let mut hold = world.hold().await;
    world.server.ask::<i64>("RLOCK.FORCE jobs");
    assert_eq!(soon(hold.lost()).await, Reason::Forced);
    let lost = Err(Error::Lost(Reason::Forced));
    assert_eq!(hold.give_way().await, lost);
    assert_eq!(hold.release().await, lost.map(drop));
}

#[tokio::test]
async fn nobody_is_wanted_by_an_older_module_or_without_one() {
    let world = World::start().await;
    world.proxy.unknown("WANTED", "WANTEB");
    let bare = Server::bare(&[]);
    let ask = |locks: &Locks| locks.acquire("jobs").lease(s(60)).wait(s(20));
    for (locks, others) in [
        (world.locks.clone(), world.others.clone()),
        (bare.locks(), bare.locks()),
    ] {
        let mut hold = soon(ask(&locks)).await.unwrap();
        let waits = tokio::spawn(ask(&others).into_future());
        for _ in 0..20 {
            assert_eq!(hold.give_way().least(ms(0)).await, Ok(false));
            tokio::time::sleep(ms(10)).await;
        }
        assert!(!waits.is_finished() && !hold.is_lost());
        soon(hold.release()).await.unwrap();
        has(waits).await;
    }
}

/// One that came by the next connection is asked without the word.
#[tokio::test]
async fn an_older_module_meanwhile() {
    let world = World::start().await;
    let hold = world.hold().await;
    let waits = wanted_by(&world, &hold).await;
    let giving = gives(hold);
    let between = of(waits).await;
    world.server.waiting("jobs", 1).await;
    world.proxy.unknown("WANTED", "WANTEB");
    world.proxy.close();
    world.asked("WANTEB", 1).await;
    world.server.waiting("jobs", 1).await;
    between.release().await.unwrap();
    let (hold, end) = soon(giving).await.unwrap();
    assert_eq!((end, hold.is_wanted()), (Ok(true), false));
    assert_eq!(world.said("WANTEB"), 1);
    soon(hold.release()).await.unwrap();
    world.server.free("jobs").await;
}

//! On servers without the module.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use redis::Client;
use rlock_client::{Backend, Error, Locks, Quorum, blocking};

use crate::cluster::Cluster;
use crate::proxy::Proxy;
use crate::server::{Server, client, ms, reason, s, soon, until};

/// Its user bob may not use functions.
fn plain() -> Server {
    let server = Server::bare(&["--enable-module-command", "yes"]);
    server.ask::<()>("ACL SETUSER bob on >right ~* &* +@all -fcall -fcall_ro -function");
    server
}

fn bob(server: &Server) -> Locks {
    let address = format!("redis://bob:right@127.0.0.1:{}/", server.port);
    Locks::new(Client::open(address).unwrap())
}

fn places(server: &Server, key: &str) -> i64 {
    server.ask(&format!("ZCARD rlock1_places:{{{key}}}"))
}

#[tokio::test]
async fn the_same_locks_by_functions_and_by_the_script() {
    let server = plain();
    let (one, other) = (server.locks(), bob(&server));
    assert_eq!(one.backend(), None);
    let mut last = 0;
    for (locks, theirs, backend) in [
        (&one, &other, Backend::Functions),
        (&other, &one, Backend::Script),
    ] {
        let hold = soon(locks.acquire("jobs")).await.unwrap();
        assert_eq!(locks.backend(), Some(backend));
        assert!(hold.token() > last && hold.remaining().is_none());
        last = hold.token();
        let taken = soon(theirs.acquire("jobs")).await.unwrap_err();
        assert!(matches!(taken, Error::NotAcquired { held_by: None, .. }));
        let ours = soon(locks.acquire("jobs")).await.unwrap_err();
        assert!(matches!(
            ours,
            Error::NotAcquired {
                held_by: Some(_),
                ..
            }
        ));
        hold.renew(s(20)).await.unwrap();
        hold.release().await.unwrap();
        assert!(server.is_free("jobs"));
        let reads = soon(locks.acquire("rw").read()).await.unwrap();
        let too = soon(theirs.acquire("rw").read()).await.unwrap();
        assert!(soon(theirs.acquire("rw").write()).await.is_err());
        reads.release().await.unwrap();
        too.release().await.unwrap();
        let permits = soon(locks.acquire("gpu").permits(4, 3)).await.unwrap();
        assert!(soon(theirs.acquire("gpu").permits(4, 2)).await.is_err());
        permits.release().await.unwrap();
        let many = soon(locks.acquire_many(["x", "y"])).await.unwrap();
        assert!(soon(theirs.acquire("y")).await.is_err());
        many.release().await.unwrap();
        assert!(
            ["rw", "gpu", "x", "y"]
                .iter()
                .all(|key| server.is_free(key))
        );
    }
}

#[tokio::test]
async fn a_wait_takes_its_turn_and_leaves_nothing() {
    let server = plain();
    let locks = server.locks();
    let (held, theirs) = (locks.acquire("jobs").await.unwrap(), bob(&server));
    let waits = |locks: &Locks| tokio::spawn(locks.acquire("jobs").wait(s(60)).into_future());
    let first = waits(&theirs);
    until(|| places(&server, "jobs") == 1).await;
    let second = waits(&locks);
    until(|| places(&server, "jobs") == 2).await;
    held.release().await.unwrap();
    let hold = soon(first).await.unwrap().unwrap();
    assert!(!second.is_finished());
    second.abort();
    until(|| places(&server, "jobs") == 0).await;
    let in_time = soon(locks.acquire("jobs").wait(ms(250))).await;
    assert!(matches!(in_time.unwrap_err(), Error::NotAcquired { .. }));
    assert_eq!(places(&server, "jobs"), 0);
    hold.release().await.unwrap();
    assert!(server.is_free("jobs"));
}

/// How often the functions were called.
fn calls(server: &Server) -> u64 {
    let stats: String = server.ask("INFO commandstats");
    let after = |text: &str| {
        let (_, rest) = text.split_once("cmdstat_fcall:calls=")?;
        rest.split_once(',')?.0.parse().ok()
    };
    after(&stats).unwrap_or(0)
}

/// Until somebody has tried again.
async fn tried(server: &Server) {
    let before = calls(server);
    until(|| calls(server) > before).await;
}

/// A busy machine may be slow at any time, but is not each time; and the next try is not sooner at any.
#[tokio::test]
async fn a_release_is_heard_long_before_the_next_try() {
    let server = plain();
    let (ours, theirs) = (server.locks(), server.locks());
    let mut best = s(60);
    for _ in 0..20 {
        let held = ours.acquire("jobs").wait(s(60)).await.unwrap();
        let waits = tokio::spawn(theirs.acquire("jobs").wait(s(60)).into_future());
        until(|| places(&server, "jobs") == 1).await;
        tried(&server).await;
        let begun = Instant::now();
        held.release().await.unwrap();
        soon(waits).await.unwrap().unwrap().release().await.unwrap();
        best = best.min(begun.elapsed());
        if best < ms(300) {
            return;
        }
    }
    panic!("{best:?}");
}

#[tokio::test]
async fn a_wait_keeps_its_place_when_its_connection_is_gone() {
    let server = plain();
    // The server keeps a place for two seconds after a try. Where a busy machine took those, it is done again.
    for _ in 0..20 {
        if keeps_its_place(&server).await {
            return;
        }
    }
    panic!("the machine is too slow to see it");
}

/// Whether the machine was fast enough to see it.
async fn keeps_its_place(server: &Server) -> bool {
    let (locks, others) = (server.locks(), server.locks());
    let held = server.locks().acquire("jobs").wait(s(60)).await.unwrap();
    let waits = |locks: &Locks| tokio::spawn(locks.acquire("jobs").wait(s(60)).into_future());
    let name = || server.ask::<Vec<String>>("ZRANGE rlock1_queue:{jobs} 0 -1 WITHSCORES");
    let ours = waits(&locks);
    until(|| places(server, "jobs") == 1).await;
    let mut seen = Instant::now();
    let place = name();
    let behind = waits(&others);
    until(|| places(server, "jobs") == 2).await;
    let both = name();
    // A try is half a second old at most.
    let in_time = |seen: Instant| seen.elapsed() < ms(1400);
    let mut fast = in_time(seen);
    for forgets in [false, true, false] {
        seen = Instant::now();
        let heard = || server.ask::<Vec<String>>("PUBSUB CHANNELS redisson_lock__channel:{jobs}:*");
        if forgets {
            server.ask::<()>("FUNCTION FLUSH");
        } else {
            server.ask::<i64>("CLIENT KILL TYPE pubsub");
        }
        until(|| heard().len() == 2).await;
        tokio::time::sleep(ms(600)).await;
        let now = name();
        fast &= in_time(seen);
        assert!(!fast || now == both, "{now:?} {both:?}");
    }
    seen = Instant::now();
    held.release().await.unwrap();
    until(|| ours.is_finished() || behind.is_finished()).await;
    fast &= in_time(seen);
    if !fast {
        for one in [locks, others] {
            soon(one.close()).await;
        }
        return false;
    }
    let hold = soon(ours).await.unwrap().unwrap();
    // In its turn.
    assert!(!behind.is_finished() && place != name());
    hold.release().await.unwrap();
    let hold = soon(behind).await.unwrap().unwrap();
    let more: Vec<_> = (0..3).map(|_| waits(&locks)).collect();
    until(|| places(server, "jobs") == 1).await;
    soon(locks.close()).await;
    assert_eq!(places(server, "jobs"), 0);
    drop((hold, more));
    true
}

#[tokio::test]
async fn who_gives_up_between_two_connections_leaves_its_place_to_the_next() {
    let server = plain();
    let proxy = Proxy::before(server.port).await;
    let locks = Locks::new(client(proxy.port));
    let waits = || tokio::spawn(locks.acquire("jobs").wait(s(60)).into_future());
    let place = || server.ask::<Vec<String>>("ZRANGE rlock1_queue:{jobs} 0 -1 WITHSCORES");
    // The server keeps a place for two seconds after a try. Where a busy machine took those, it is done again.
    for _ in 0..20 {
        let held = server.locks().acquire("jobs").wait(s(20)).await.unwrap();
        let first = waits();
        until(|| places(&server, "jobs") == 1).await;
        let second = waits();
        let begun = Instant::now();
        tried(&server).await;
        let (before, kept) = (place(), Instant::now());
        // A try is under way, so that the server is told of the end of that request.
        proxy.freeze(true);
        tokio::time::sleep(ms(700)).await;
        first.abort();
        tokio::time::sleep(ms(50)).await;
        proxy.close();
        proxy.freeze(false);
        tried(&server).await;
        let (after, took) = (place(), kept.elapsed());
        held.release().await.unwrap();
        let second = soon(second).await.unwrap().unwrap();
        second.release().await.unwrap();
        assert!(server.is_free("jobs"));
        if took < ms(1900) {
            return assert_eq!(after, before);
        }
        assert!(begun.elapsed() < s(30), "{took:?}");
    }
    panic!("the machine is too slow to see it");
}

#[tokio::test]
async fn many_waits_are_one_line_in_order() {
    let server = plain();
    let locks = server.locks();
    let held = locks.acquire("jobs").await.unwrap();
    let order = Arc::new(AtomicUsize::new(0));
    let mut waiting = Vec::new();
    for number in 0..50 {
        let (order, wait) = (Arc::clone(&order), locks.acquire("jobs").wait(s(60)));
        waiting.push(tokio::spawn(async move {
            let hold = wait.await.unwrap();
            assert_eq!(order.fetch_add(1, Ordering::AcqRel), number);
            hold.release().await.unwrap();
        }));
        tokio::task::yield_now().await;
    }
    until(|| places(&server, "jobs") == 1).await;
    held.release().await.unwrap();
    for one in waiting {
        soon(one).await.unwrap();
    }
    assert!(server.is_free("jobs"));
}

#[tokio::test]
async fn a_wait_for_several_locks_or_for_permits() {
    let server = plain();
    let locks = server.locks();
    let (x, y) = (
        locks.acquire("x").await.unwrap(),
        locks.acquire("y").await.unwrap(),
    );
    let both = tokio::spawn(locks.acquire_many(["x", "y"]).wait(s(60)).into_future());
    let gpu = locks.acquire("gpu").permits(2, 2).await.unwrap();
    let more = tokio::spawn(locks.acquire("gpu").permits(2, 1).wait(s(60)).into_future());
    until(|| places(&server, "gpu") == 1).await;
    x.release().await.unwrap();
    assert!(!both.is_finished());
    y.release().await.unwrap();
    soon(both).await.unwrap().unwrap().release().await.unwrap();
    gpu.release().await.unwrap();
    soon(more).await.unwrap().unwrap().release().await.unwrap();
}

#[tokio::test]
async fn a_hold_is_renewed_and_outlives_its_connections() {
    let server = plain();
    let proxy = Proxy::before(server.port).await;
    let locks = Locks::new(client(proxy.port));
    let hold = locks.acquire("jobs").lease(s(8)).await.unwrap();
    for _ in 0..20 {
        tokio::time::sleep(ms(500)).await;
        proxy.close();
    }
    assert!(!hold.is_lost() && !server.is_free("jobs"));
    hold.release().await.unwrap();
    server.free("jobs").await;
    // Nothing comes any more: its deadline passes.
    let hold = locks.acquire("jobs").lease(s(3)).await.unwrap();
    proxy.freeze(true);
    assert_eq!(reason(&hold).await, "lease");
    proxy.freeze(false);
    server.free("jobs").await;
}

#[tokio::test]
async fn why_a_hold_is_lost() {
    let server = plain();
    let locks = server.locks();
    let hold = locks.acquire("jobs").lease(s(6)).await.unwrap();
    server.ask::<i64>("DEL jobs");
    assert_eq!(reason(&hold).await, "deleted");
    assert!(matches!(hold.release().await, Err(Error::Lost(_))));
    let hold = locks.acquire("jobs").lease(s(6)).await.unwrap();
    server.ask::<()>("SET jobs somebody");
    assert_eq!(reason(&hold).await, "overwritten");
    server.ask::<i64>("DEL jobs");
    // Its release is what finds it gone.
    let hold = locks.acquire("jobs").await.unwrap();
    server.ask::<i64>("DEL jobs");
    assert!(matches!(hold.release().await, Err(Error::Lost(_))));
    let hold = locks.acquire("jobs").plain().lease(s(60)).await.unwrap();
    server.ask::<i64>("DEL jobs");
    assert!(matches!(hold.renew(s(60)).await, Err(Error::Lost(_))));
}

#[tokio::test]
async fn a_server_that_forgets_the_functions_loses_no_hold() {
    let server = plain();
    for locks in [server.locks(), bob(&server)] {
        let forget = || {
            server.ask::<()>("FUNCTION FLUSH");
            server.ask::<()>("SCRIPT FLUSH");
        };
        let hold = locks.acquire("jobs").lease(s(6)).await.unwrap();
        let waits = tokio::spawn(locks.acquire("jobs").wait(s(60)).into_future());
        until(|| places(&server, "jobs") == 1).await;
        for _ in 0..16 {
            forget();
            tokio::time::sleep(ms(500)).await;
        }
        assert!(!hold.is_lost() && !server.is_free("jobs"));
        forget();
        hold.release().await.unwrap();
        forget();
        let next = soon(waits).await.unwrap().unwrap();
        forget();
        next.release().await.unwrap();
        assert!(server.is_free("jobs"));
        forget();
        soon(locks.acquire("jobs"))
            .await
            .unwrap()
            .release()
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn who_may_do_too_little_is_refused_with_what_would_help() {
    let server = plain();
    server.ask::<()>("ACL SETUSER ann on >right ~* &* +@all -@scripting");
    let address = format!("redis://ann:right@127.0.0.1:{}/", server.port);
    let locks = Locks::new(Client::open(address.as_str()).unwrap());
    let waits = locks.acquire("jobs").wait_forever();
    let Error::Refused { code, text } = soon(waits).await.unwrap_err() else {
        panic!("it is refused");
    };
    assert!(code == "NOPERM" && text.contains("+fcall"), "{code} {text}");
    // What a running call may not do inside.
    server.ask::<()>("ACL SETUSER ann +@scripting resetkeys ~jobs");
    let error = soon(locks.acquire("jobs").wait_forever())
        .await
        .unwrap_err();
    assert!(
        matches!(&error, Error::Refused { code, .. } if code == "NOPERM"),
        "{error:?}"
    );
}

#[tokio::test]
async fn the_module_comes_and_nothing_stops() {
    let server = plain();
    let locks = server.locks().ask_again_every(ms(100));
    let hold = locks.acquire("jobs").lease(s(30)).await.unwrap();
    let plain = locks.acquire("plain").plain().lease(s(60)).await.unwrap();
    let both = locks.acquire_many(["x", "y"]).lease(s(5)).await.unwrap();
    let waits = tokio::spawn(locks.acquire("jobs").wait(s(60)).into_future());
    until(|| places(&server, "jobs") == 1).await;
    let module = std::env::var("RLOCK_MODULE").unwrap();
    server.ask::<()>(&format!("MODULE LOAD {module}"));
    until(|| locks.backend() == Some(Backend::Module)).await;
    server.waiting("jobs", 1).await;
    // From now on the server says at once that a hold is gone, and the client keeps what the
    // module's MRENEW does not.
    server.ask::<i64>("RLOCK.FORCE plain");
    assert_eq!(reason(&plain).await, "forced");
    hold.release().await.unwrap();
    let next = soon(waits).await.unwrap().unwrap();
    server.ask::<i64>("RLOCK.FORCE jobs");
    assert_eq!(reason(&next).await, "forced");
    tokio::time::sleep(s(6)).await;
    assert!(!both.is_lost() && !server.is_free("x"));
    server.ask::<i64>("RLOCK.FORCE y");
    assert_eq!(reason(&both).await, "forced");
    until(|| server.is_free("x")).await;
}

#[tokio::test]
async fn each_acquisition_of_a_job_has_an_owner_of_its_own() {
    let server = plain();
    let locks = server.locks();
    let job = locks.job();
    let one = locks.acquire("a").job(&job).await.unwrap();
    let other = locks.acquire("b").job(&job).await.unwrap();
    assert_ne!(one.owner(), other.owner());
    let again = locks.acquire("a").job(&job).await.unwrap_err();
    assert!(matches!(again, Error::HeldByJob(_)));
    one.release().await.unwrap();
    locks
        .acquire("a")
        .job(&job)
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
}

#[tokio::test]
async fn in_a_cluster() {
    let cluster = Cluster::of(Server::bare).await;
    let locks = cluster.locks();
    // The last has neither place nor messages: what is named after it lies in another slot.
    for key in ["b", "c", "a{x}", "a{b"] {
        let hold = soon(locks.acquire(key)).await.unwrap();
        let waits = tokio::spawn(locks.acquire(key).wait(s(60)).into_future());
        tokio::time::sleep(ms(200)).await;
        hold.release().await.unwrap();
        soon(waits).await.unwrap().unwrap().release().await.unwrap();
    }
    let hold = soon(locks.acquire("b").lease(s(5))).await.unwrap();
    let waits = tokio::spawn(locks.acquire("b").wait(s(60)).into_future());
    until(|| places(&cluster.0[0], "b") == 1).await;
    cluster.move_slot("b", 0, 1);
    tokio::time::sleep(s(6)).await;
    assert!(!hold.is_lost() && !cluster.0[1].is_free("b"));
    hold.release().await.unwrap();
    soon(waits).await.unwrap().unwrap().release().await.unwrap();
    cluster.0[1].free("b").await;
}

#[tokio::test]
async fn by_quorum() {
    let servers = [plain(), plain(), plain()];
    let quorum = || Quorum::new(servers.iter().map(Server::client));
    let (ours, theirs) = (quorum(), quorum());
    let hold = soon(ours.acquire("jobs").lease(s(6))).await.unwrap();
    let waits = tokio::spawn(theirs.acquire("jobs").wait(s(30)).into_future());
    tokio::time::sleep(s(8)).await;
    assert!(!hold.is_lost() && !waits.is_finished());
    let token = hold.token();
    hold.release().await.unwrap();
    let next = soon(waits).await.unwrap().unwrap();
    assert!(next.token() > token);
    next.release().await.unwrap();
    let refused = soon(quorum().require_module().acquire("jobs"))
        .await
        .unwrap_err();
    assert!(matches!(refused, Error::Refused { .. }), "{refused:?}");
}

#[test]
fn without_async() {
    let server = plain();
    let locks = blocking::Locks::new(server.client());
    let hold = locks.acquire("jobs").wait(s(10)).get().unwrap();
    assert_eq!(locks.backend(), Some(Backend::Functions));
    let waits = locks.acquire("jobs").wait(s(30));
    let next = std::thread::spawn(move || waits.get().unwrap().release().unwrap());
    std::thread::sleep(ms(200));
    hold.release().unwrap();
    next.join().unwrap();
    let refused = blocking::Locks::new(server.client()).require_module();
    assert!(matches!(
        refused.acquire("x").get(),
        Err(Error::Refused { .. })
    ));
    locks.close();
}

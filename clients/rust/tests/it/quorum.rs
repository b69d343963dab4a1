//! A lock by a majority of three servers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use rlock_client::{Error, Quorum};

use crate::server::{Server, ms, s, soon, until};

/// Less than the time that an answer has.
const AT_ONCE: std::time::Duration = ms(1900);

/// A busy machine may be slow at any time, but is not each time: what always takes longer never is at once.
const TIMES: usize = 8;

fn three() -> ([Server; 3], Quorum) {
    let servers = [Server::start(), Server::start(), Server::start()];
    let quorum = of(&servers);
    (servers, quorum)
}

fn of(servers: &[Server; 3]) -> Quorum {
    Quorum::new(servers.iter().map(Server::client))
}

async fn all_free(servers: &[Server; 3]) {
    until(|| servers.iter().all(|server| server.is_free("jobs"))).await;
}

#[tokio::test]
async fn one_at_a_time_with_tokens_that_rise() {
    let (servers, ours) = three();
    let theirs = of(&servers);
    let mut last = 0;
    for _ in 0..5 {
        let hold = ours.acquire("jobs").await.unwrap();
        assert!(hold.token() > last && !hold.is_lost());
        last = hold.token();
        assert!(matches!(
            theirs.acquire("jobs").await.unwrap_err(),
            Error::NotAcquired { .. }
        ));
        hold.release().await.unwrap();
        all_free(&servers).await;
    }
    drop(ours.acquire("jobs").await.unwrap());
    all_free(&servers).await;
}

#[tokio::test]
async fn handed_over_to_who_waits() {
    let (servers, ours) = three();
    let hold = ours.acquire("jobs").await.unwrap();
    let waits = tokio::spawn(of(&servers).acquire("jobs").wait(s(30)).into_future());
    servers[0].waiting("jobs", 1).await;
    hold.release().await.unwrap();
    let hold = soon(waits).await.unwrap().unwrap();
    hold.release().await.unwrap();
    let held = ours.acquire("jobs").await.unwrap();
    let waits = tokio::spawn(of(&servers).acquire("jobs").wait(s(30)).into_future());
    servers[0].waiting("jobs", 1).await;
    waits.abort();
    servers[0].waiting("jobs", 0).await;
    held.release().await.unwrap();
    all_free(&servers).await;
}

#[tokio::test]
async fn a_minority_that_is_away_does_not_matter_and_a_majority_does() {
    let (mut servers, quorum) = three();
    let hold = quorum.acquire("jobs").lease(s(5)).await.unwrap();
    servers[0].kill();
    tokio::time::sleep(s(7)).await;
    assert!(!hold.is_lost(), "renewed at the other two");
    hold.release().await.unwrap();
    let hold = soon(quorum.acquire("jobs").lease(s(6)).wait(s(20)))
        .await
        .unwrap();
    hold.release().await.unwrap();
    servers[1].kill();
    let error = soon(quorum.acquire("jobs")).await.unwrap_err();
    assert!(matches!(error, Error::Connection(_)), "{error:?}");
}

/// How much is left of it at least, over some leases.
async fn least(hold: &rlock_client::QuorumHold, lease: std::time::Duration) -> std::time::Duration {
    let (mut least, end) = (lease, Instant::now() + lease * 2);
    while Instant::now() < end {
        least = least.min(hold.remaining());
        tokio::time::sleep(ms(5)).await;
    }
    least
}

/// It is renewed when a third has passed, and not later by the time that an answer has.
async fn assert_kept_up(hold: &rlock_client::QuorumHold, lease: std::time::Duration) {
    let mut best = ms(0);
    for _ in 0..TIMES / 2 {
        best = best.max(least(hold, lease).await);
        if best > lease * 2 / 3 - AT_ONCE {
            return;
        }
    }
    panic!("{best:?}");
}

#[tokio::test]
async fn a_server_that_is_away_or_stands_still_keeps_no_renewal_up() {
    let (mut servers, quorum) = three();
    let ask = || quorum.acquire("jobs").lease(s(9)).wait(s(20)).into_future();
    let hold = soon(ask()).await.unwrap();
    servers[2].kill();
    assert_kept_up(&hold, s(9)).await;
    hold.release().await.unwrap();
    servers[2].restart();
    let mut hold = soon(ask()).await.unwrap();
    servers[1].signal(libc::SIGSTOP);
    assert_kept_up(&hold, s(9)).await;
    for n in 1.. {
        let begun = Instant::now();
        hold.release().await.unwrap();
        if begun.elapsed() < AT_ONCE {
            break;
        }
        assert!(n < TIMES, "{:?}", begun.elapsed());
        hold = soon(ask()).await.unwrap();
    }
    servers[1].signal(libc::SIGCONT);
    all_free(&servers).await;
}

#[tokio::test]
async fn a_server_that_came_back_counts_again() {
    let (mut servers, quorum) = three();
    let hold = quorum.acquire("jobs").lease(s(6)).await.unwrap();
    let token = hold.token();
    servers[0].kill();
    // With nothing in it.
    servers[0].restart();
    until(|| !servers[0].is_free("jobs")).await;
    servers[1].kill();
    tokio::time::sleep(s(8)).await;
    assert!(!hold.is_lost(), "renewed at the other two");
    assert_eq!(hold.token(), token);
    let error = of(&servers).acquire("jobs").await.unwrap_err();
    assert!(matches!(error, Error::NotAcquired { .. }));
    hold.release().await.unwrap();
    until(|| servers[0].is_free("jobs") && servers[2].is_free("jobs")).await;
    servers[1].restart();
    let next = soon(quorum.acquire("jobs").wait(s(20))).await.unwrap();
    assert!(next.token() > token);
    next.release().await.unwrap();
}

#[tokio::test]
async fn a_server_that_was_away_is_taken_too() {
    let (mut servers, quorum) = three();
    servers[2].kill();
    let hold = quorum.acquire("jobs").lease(s(6)).await.unwrap();
    servers[2].restart();
    until(|| !servers[2].is_free("jobs")).await;
    servers[0].kill();
    tokio::time::sleep(s(8)).await;
    assert!(!hold.is_lost(), "renewed at the other two");
    hold.release().await.unwrap();
}

#[tokio::test]
async fn a_server_that_refuses_is_passed_over_at_once() {
    let (mut servers, quorum) = three();
    servers[0].kill();
    for quorum in [&quorum, &quorum, &of(&servers)] {
        for n in 1.. {
            let begun = Instant::now();
            let hold = quorum.acquire("jobs").await.unwrap();
            let took = begun.elapsed();
            hold.release().await.unwrap();
            until(|| servers[1..].iter().all(|server| server.is_free("jobs"))).await;
            if took < AT_ONCE {
                break;
            }
            assert!(n < TIMES, "{took:?}");
        }
    }
    // Who has it where two others are taken gets its error at once too.
    servers[1].ask::<i64>("RLOCK.ACQUIRE jobs other 60000");
    for n in 1.. {
        let begun = Instant::now();
        let error = quorum.acquire("jobs").await.unwrap_err();
        assert!(matches!(error, Error::NotAcquired { .. }));
        if begun.elapsed() < AT_ONCE {
            break;
        }
        assert!(n < TIMES, "{:?}", begun.elapsed());
    }
}

#[tokio::test]
async fn who_waits_goes_on_when_its_server_is_killed() {
    let mut took = went_on().await;
    for _ in 1..TIMES {
        if took < AT_ONCE {
            return;
        }
        took = went_on().await;
    }
    panic!("{took:?}");
}

/// What it took.
async fn went_on() -> std::time::Duration {
    let (mut servers, ours) = three();
    let held = ours.acquire("jobs").lease(s(60)).await.unwrap();
    let waits = tokio::spawn(of(&servers).acquire("jobs").wait(s(30)).into_future());
    servers[0].waiting("jobs", 1).await;
    servers[0].kill();
    let begun = Instant::now();
    servers[1].waiting("jobs", 1).await;
    let took = begun.elapsed();
    held.release().await.unwrap();
    let hold = soon(waits).await.unwrap().unwrap();
    hold.release().await.unwrap();
    took
}

#[tokio::test]
async fn a_server_that_was_away_for_long_is_taken_too() {
    let (mut servers, quorum) = three();
    servers[2].kill();
    let hold = quorum.acquire("jobs").lease(s(6)).await.unwrap();
    tokio::time::sleep(s(7)).await;
    servers[2].restart();
    until(|| !servers[2].is_free("jobs")).await;
    servers[0].kill();
    tokio::time::sleep(s(8)).await;
    assert!(!hold.is_lost(), "renewed at the other two");
    hold.release().await.unwrap();
}

#[tokio::test]
async fn lost_with_a_majority() {
    let (servers, quorum) = three();
    let hold = quorum.acquire("jobs").await.unwrap();
    // A majority is enough for it; the last one may come a moment later.
    until(|| !servers.iter().any(|server| server.is_free("jobs"))).await;
    servers[0].ask::<i64>("RLOCK.FORCE jobs");
    tokio::time::sleep(ms(200)).await;
    assert!(!hold.is_lost());
    servers[2].ask::<i64>("RLOCK.FORCE jobs");
    assert_eq!(soon(hold.lost()).await.as_str(), "forced");
    all_free(&servers).await;
    assert!(matches!(hold.release().await, Err(Error::Lost(_))));
}

#[tokio::test]
async fn lost_within_a_lease_when_a_majority_stands_still() {
    let (servers, quorum) = three();
    let hold = quorum.acquire("jobs").lease(s(5)).await.unwrap();
    servers[0].signal(libc::SIGSTOP);
    servers[1].signal(libc::SIGSTOP);
    let begun = Instant::now();
    assert_eq!(soon(hold.lost()).await.as_str(), "lease");
    // But for what a busy machine takes to notice it.
    assert!(begun.elapsed() < s(20), "{:?}", begun.elapsed());
    servers[0].signal(libc::SIGCONT);
    servers[1].signal(libc::SIGCONT);
    all_free(&servers).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_that_fight_for_it() {
    let (servers, _) = three();
    let (inside, last) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let programs: Vec<_> = (0..4)
        .map(|_| {
            let (quorum, inside, last) = (of(&servers), Arc::clone(&inside), Arc::clone(&last));
            tokio::spawn(async move {
                for _ in 0..25 {
                    let hold = quorum.acquire("jobs").wait(s(60)).await.unwrap();
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                    assert!(last.swap(hold.token(), Ordering::SeqCst) < hold.token());
                    tokio::task::yield_now().await;
                    inside.fetch_sub(1, Ordering::SeqCst);
                    hold.release().await.unwrap();
                }
            })
        })
        .collect();
    for program in programs {
        soon(program).await.unwrap();
    }
}

#[tokio::test]
async fn an_even_number_is_refused() {
    let server = Server::start();
    let error = Quorum::new([server.client(), server.client()])
        .acquire("jobs")
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Argument(_)));
}

#[tokio::test]
async fn a_server_that_is_named_twice_is_refused() {
    let (server, other) = (Server::start(), Server::start());
    let error = Quorum::new([server.client(), other.client(), server.client()])
        .acquire("jobs")
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Argument(_)), "{error:?}");
}

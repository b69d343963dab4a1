//! A lock that stays with the process between its uses.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rlock_client::{Error, Locks, Reason, Sticky, blocking};

use crate::proxy::Proxy;
use crate::server::{PATIENCE, Server, client, ms, s, soon, until};

pub fn sticky(locks: &Locks) -> Sticky {
    locks.sticky("jobs").build().unwrap()
}

pub async fn owner(sticky: &Sticky) -> String {
    let used = sticky.run(|used| async move { used.owner().to_string() });
    soon(used).await.unwrap()
}

pub async fn token(sticky: &Sticky) -> u64 {
    let used = sticky.run(|used| async move { used.token().await });
    soon(used).await.unwrap().unwrap()
}

#[tokio::test]
async fn bad_arguments() {
    let locks = Locks::open("redis://127.0.0.1:1/").unwrap();
    let made = [
        locks.sticky(""),
        locks.sticky("k".repeat(600_000)),
        locks.sticky("k").idle(ms(0)),
        locks.sticky("k").idle(ms(1001)),
        locks.sticky("k").idle(Duration::MAX),
        locks.sticky("k").lease(ms(0)),
    ];
    for make in made {
        assert!(matches!(make.build(), Err(Error::Argument(_))));
    }
    let longest = locks.sticky("k").wait(Duration::MAX).lease(Duration::MAX);
    let longest = longest.idle(s(1)).build().unwrap();
    assert_eq!(longest.key(), "k");
    assert!(format!("{longest:?}").contains('k'));
}

#[tokio::test]
async fn a_use_needs_no_word_to_the_server() {
    let server = Server::start();
    let proxy = Proxy::before(server.port).await;
    let locks = Locks::new(client(proxy.port));
    let sticky = sticky(&locks);
    let said = || proxy.asked().matches("RLOCK.ACQUIRE\n").count();
    for _ in 0..2000 {
        assert_eq!(sticky.run(|_| async { 7 }).await, Ok(7));
    }
    // The module is asked for by the first, and once a second it goes back.
    assert!(said() < 20, "{}", proxy.asked());
    server.free("jobs").await;
}

#[tokio::test]
async fn without_a_wait() {
    let server = Server::start();
    let (locks, others) = (server.locks(), server.locks());
    let sticky = locks.sticky("jobs").wait(ms(0)).build().unwrap();
    soon(sticky.run(|_| async {})).await.unwrap();
    soon(sticky.close()).await;
    let hold = soon(others.acquire("jobs")).await.unwrap();
    let sticky = locks.sticky("jobs").wait(ms(0)).build().unwrap();
    let end = soon(sticky.run(|_| async {})).await.unwrap_err();
    assert!(matches!(end, Error::NotAcquired { held_by: None, .. }));
    server.waiting("jobs", 0).await;
    hold.release().await.unwrap();
    soon(sticky.run(|_| async {})).await.unwrap();
}

/// However busy it is, and though nobody can say that he waits.
async fn polled_while(server: &Server, stop: Arc<AtomicBool>, busy: Vec<thread::JoinHandle<()>>) {
    let mut connection = server.client().get_connection().unwrap();
    until(|| !server.is_free("jobs")).await;
    for n in 0..3 {
        let owner = format!("raw-{n}");
        let end = Instant::now() + PATIENCE;
        loop {
            let mut ask = redis::cmd("RLOCK.ACQUIRE");
            ask.arg("jobs").arg(&owner).arg(60_000);
            if ask.query::<Option<u64>>(&mut connection).unwrap().is_some() {
                break;
            }
            assert!(Instant::now() < end, "who polls gets nothing");
            tokio::time::sleep(ms(1)).await;
        }
        server.ask::<i64>(&format!("RLOCK.RELEASE jobs {owner}"));
    }
    stop.store(true, Ordering::Relaxed);
    for one in busy {
        one.join().unwrap();
    }
}

fn uses(sticky: &blocking::Sticky, stop: &Arc<AtomicBool>) -> thread::JoinHandle<()> {
    let (sticky, stop) = (sticky.clone(), Arc::clone(stop));
    thread::spawn(move || {
        let mut uses = 0;
        while uses == 0 || !stop.load(Ordering::Relaxed) {
            sticky.run(|_| ()).unwrap();
            uses += 1;
        }
    })
}

#[tokio::test]
async fn who_polls_has_a_chance() {
    let server = Server::start();
    for threads in [1, 3] {
        let locks = blocking::Locks::with_timeout(server.client(), PATIENCE);
        let sticky = locks.sticky("jobs").build().unwrap();
        let stop = Arc::default();
        let busy = (0..threads).map(|_| uses(&sticky, &stop)).collect();
        polled_while(&server, stop, busy).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn many_tasks_and_threads_count_exactly() {
    const TIMES: u64 = 300;
    let server = Server::start();
    let (ours, theirs) = (server.locks(), server.locks());
    let number = Arc::new(AtomicU64::new(0));
    // It is the lock that makes it one step.
    let add = |number: &AtomicU64| {
        let was = number.load(Ordering::Relaxed);
        thread::yield_now();
        number.store(was + 1, Ordering::Relaxed);
    };
    let mut tasks = Vec::new();
    let both = [sticky(&ours), sticky(&theirs)];
    for sticky in both.iter().chain([&both[0]; 4]) {
        let (sticky, number) = (sticky.clone(), Arc::clone(&number));
        tasks.push(tokio::spawn(async move {
            for n in 0..TIMES {
                let body = |_| async {
                    let was = number.load(Ordering::Relaxed);
                    if n % 16 == 0 {
                        tokio::task::yield_now().await;
                    }
                    number.store(was + 1, Ordering::Relaxed);
                };
                sticky.run(body).await.unwrap();
            }
        }));
    }
    let locks = blocking::Locks::with_timeout(server.client(), PATIENCE);
    let blocks = locks.sticky("jobs").build().unwrap();
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let (sticky, number) = (blocks.clone(), Arc::clone(&number));
            thread::spawn(move || (0..TIMES).for_each(|_| sticky.run(|_| add(&number)).unwrap()))
        })
        .collect();
    let many = (tasks.len() + threads.len()) as u64;
    for task in tasks {
        soon(task).await.unwrap();
    }
    let joined =
        tokio::task::spawn_blocking(|| threads.into_iter().for_each(|t| t.join().unwrap()));
    soon(joined).await.unwrap();
    assert_eq!(number.load(Ordering::Relaxed), many * TIMES);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_rise_over_all_who_have_it() {
    let server = Server::start();
    let (locks, others) = (server.locks(), server.locks());
    let (sticky, stop) = (sticky(&locks), Arc::new(AtomicBool::new(false)));
    let tokens = Arc::new(std::sync::Mutex::new(Vec::new()));
    let busy: Vec<_> = (0..3)
        .map(|_| {
            let (sticky, stop, tokens) = (sticky.clone(), Arc::clone(&stop), Arc::clone(&tokens));
            tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    let tokens = Arc::clone(&tokens);
                    let body = |used: rlock_client::Use| async move {
                        let token = used.token().await.unwrap();
                        assert_eq!(used.token().await, Ok(token));
                        tokens.lock().unwrap().push(token);
                    };
                    sticky.run(body).await.unwrap();
                }
            })
        })
        .collect();
    for _ in 0..30 {
        let hold = soon(others.acquire("jobs").wait_forever()).await.unwrap();
        tokens.lock().unwrap().push(hold.token());
        soon(hold.release()).await.unwrap();
    }
    until(|| tokens.lock().unwrap().len() > 60).await;
    stop.store(true, Ordering::Relaxed);
    for one in busy {
        soon(one).await.unwrap();
    }
    let tokens = tokens.lock().unwrap();
    assert!(tokens.is_sorted_by(|one, next| one < next), "{tokens:?}");
}

#[tokio::test]
async fn a_token_that_gets_no_reply() {
    let server = Server::start();
    let proxy = Proxy::before(server.port).await;
    let locks = Locks::with_timeout(client(proxy.port), s(5));
    let sticky = locks.sticky("jobs").lease(s(60)).build().unwrap();
    let first = token(&sticky).await;
    let body = |used: rlock_client::Use| {
        let proxy = &proxy;
        async move {
            proxy.freeze(true);
            let none = used.token().await.unwrap_err();
            assert!(matches!(none, Error::Connection(_)), "{none}");
            assert!(!used.is_lost());
            proxy.freeze(false);
            used.owner().to_string()
        }
    };
    let before = soon(sticky.run(body)).await.unwrap();
    let after = sticky.run(|used| async move { (used.owner().to_string(), used.token().await) });
    let after = soon(after).await.unwrap();
    assert!(after.0 != before && after.1.unwrap() > first);
}

#[tokio::test]
async fn where_nobody_can_say_that_he_waits_each_use_acquires_it() {
    let server = Server::start();
    let proxy = Proxy::before(server.port).await;
    proxy.unknown("WANTED", "UNSAID");
    let locks = Locks::new(client(proxy.port));
    let sticky = sticky(&locks);
    let (one, other) = (owner(&sticky).await, owner(&sticky).await);
    assert_ne!(one, other);
    let last = token(&sticky).await;
    assert!(token(&sticky).await > last);
    server.free("jobs").await;
}

#[tokio::test]
async fn without_the_module_each_use_acquires_it() {
    let server = Server::bare(&[]);
    let (locks, others) = (server.locks(), server.locks());
    let sticky = sticky(&locks);
    let mut tokens = Vec::new();
    for _ in 0..3 {
        tokens.push(token(&sticky).await);
        let hold = soon(others.acquire("jobs").wait(s(20))).await.unwrap();
        tokens.push(hold.token());
        let waits = tokio::spawn({
            let sticky = sticky.clone();
            async move { token(&sticky).await }
        });
        tokio::time::sleep(ms(20)).await;
        assert!(!waits.is_finished());
        hold.release().await.unwrap();
        tokens.push(soon(waits).await.unwrap());
    }
    assert!(tokens.is_sorted_by(|one, next| one < next), "{tokens:?}");
    assert_ne!(owner(&sticky).await, owner(&sticky).await);
    until(|| server.is_free("jobs")).await;
}

#[tokio::test]
async fn one_that_was_lost_while_nobody_used_it_is_acquired_anew() {
    let server = Server::start();
    let locks = server.locks();
    let sticky = sticky(&locks);
    let (before, first) = (owner(&sticky).await, token(&sticky).await);
    server.ask::<i64>("RLOCK.FORCE jobs");
    // What the server has said is read behind this.
    _ = soon(locks.acquire("beside").wait(s(20))).await.unwrap();
    assert_ne!(owner(&sticky).await, before);
    assert!(token(&sticky).await > first);
}

#[test]
fn the_example_runs() {
    let server = Server::start();
    let directory = std::env::current_exe().unwrap();
    let directory = directory.ancestors().nth(2).unwrap();
    let mut example = Command::new(directory.join("examples/sticky"));
    let url = format!("redis://127.0.0.1:{}/", server.port);
    let seen = example.env("REDIS_URL", url).output().unwrap();
    let seen = String::from_utf8(seen.stdout).unwrap();
    assert!(seen.contains("booked"), "{seen}");
    assert!(server.is_free("ledger"));
}

#[tokio::test]
async fn a_use_that_has_lost_it_ends_with_that() {
    let server = Server::start();
    let locks = server.locks();
    let sticky = sticky(&locks);
    let dropped = Arc::new(AtomicBool::new(false));
    struct Drops(Arc<AtomicBool>);
    impl Drop for Drops {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let flag = Drops(Arc::clone(&dropped));
    let body = |used: rlock_client::Use| async move {
        let _flag = flag;
        server.ask::<i64>("RLOCK.FORCE jobs");
        used.lost().await;
        assert_eq!(used.reason(), Some(Reason::Forced));
        std::future::pending::<()>().await;
    };
    let end = soon(sticky.run(body)).await;
    assert_eq!(end, Err(Error::Lost(Reason::Forced)));
    assert!(dropped.load(Ordering::SeqCst));
}

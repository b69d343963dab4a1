//! What the program gets for what the server answers, and for what it does not answer.

use rlock_client::{Error, Locks, Quorum};

use crate::server::{Server, client, ms, s, soon, until};

/// Only the server knows that somebody else has it.
#[tokio::test]
async fn a_waiter_gets_a_connection_error_when_the_server_stops() {
    let server = Server::start();
    server.ask::<i64>("RLOCK.ACQUIRE jobs other 60000");
    let locks = Locks::with_timeout(server.client(), s(5));
    let waits = tokio::spawn(locks.acquire("jobs").wait(s(15)).into_future());
    let tries = tokio::spawn(locks.acquire("jobs").wait(s(12)).into_future());
    server.waiting("jobs", 2).await;
    server.signal(libc::SIGSTOP);
    let ends = [soon(waits).await.unwrap(), soon(tries).await.unwrap()];
    let once = soon(locks.acquire("free").into_future()).await;
    server.signal(libc::SIGCONT);
    for end in ends.into_iter().chain([once]) {
        assert!(matches!(end, Err(Error::Connection(_))), "{end:?}");
    }
    server.waiting("jobs", 0).await;
    server.free("free").await;
}

#[tokio::test]
async fn by_quorum_too() {
    let servers = [Server::start(), Server::start(), Server::start()];
    let quorum = Quorum::new(servers.iter().map(Server::client));
    quorum
        .acquire("other")
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    // One has it at one server, and whether the last would have granted is not known.
    servers[1].ask::<i64>("RLOCK.ACQUIRE jobs other 60000");
    servers[2].signal(libc::SIGSTOP);
    let end = soon(quorum.acquire("jobs").lease(s(2))).await;
    servers[2].signal(libc::SIGCONT);
    assert!(matches!(end, Err(Error::Connection(_))), "{end:?}");
    servers[0].free("jobs").await;
    servers[2].free("jobs").await;
    // Two have said so.
    servers[2].ask::<i64>("RLOCK.ACQUIRE jobs other 60000");
    let end = soon(quorum.acquire("jobs").into_future()).await;
    assert!(matches!(end, Err(Error::NotAcquired { .. })), "{end:?}");
    // In line at the first, which stops.
    servers[0].free("jobs").await;
    servers[0].ask::<i64>("RLOCK.ACQUIRE jobs other 60000");
    let waits = tokio::spawn(quorum.acquire("jobs").lease(s(20)).wait(s(5)).into_future());
    servers[0].waiting("jobs", 1).await;
    servers
        .iter()
        .for_each(|server| server.signal(libc::SIGSTOP));
    let end = soon(waits).await.unwrap();
    servers
        .iter()
        .for_each(|server| server.signal(libc::SIGCONT));
    assert!(matches!(end, Err(Error::Connection(_))), "{end:?}");
}

#[tokio::test]
async fn not_acquired_says_which_key_and_whether_this_program_has_it() {
    let server = Server::start();
    let locks = server.locks();
    let mine = locks.acquire("b").await.unwrap();
    let not = |key: &str, held_by: Option<&str>| {
        let (key, held_by) = (key.to_owned(), held_by.map(Into::into));
        Error::NotAcquired { key, held_by }
    };
    let by_me = not("b", Some(mine.owner()));
    assert_eq!(locks.acquire("b").await.unwrap_err(), by_me);
    assert!(by_me.to_string().contains(mine.owner()));
    let many = locks.acquire_many(["a", "b"]).wait(ms(50));
    assert_eq!(many.await.unwrap_err(), not("a", Some(mine.owner())));
    let theirs = server.locks();
    assert_eq!(theirs.acquire("b").await.unwrap_err(), not("b", None));
}

#[tokio::test]
async fn who_requires_the_module_is_refused_at_once_without_it() {
    let server = Server::bare(&[]);
    let locks = server.locks().require_module();
    for ask in [locks.acquire("jobs"), locks.acquire("jobs").wait_forever()] {
        let Err(Error::Refused { code, text }) = soon(ask).await else {
            panic!("it is refused");
        };
        assert_eq!(code, "ERR");
        assert!(text.contains("no rlock module: load librlock.so"), "{text}");
    }
}

#[tokio::test]
async fn a_node_of_a_cluster_is_refused_at_once() {
    let server = Server::with(&["--cluster-enabled", "yes"]);
    let slots: Vec<String> = (0..16384).map(|slot| slot.to_string()).collect();
    server.ask::<String>(&format!("CLUSTER ADDSLOTS {}", slots.join(" ")));
    until(|| {
        server
            .ask::<String>("CLUSTER INFO")
            .contains("cluster_state:ok")
    })
    .await;
    let here = soon(server.locks().acquire("a").wait_forever()).await;
    let other = Server::with(&["--cluster-enabled", "yes"]);
    other.ask::<String>(&format!("CLUSTER MEET 127.0.0.1 {}", server.port));
    until(|| {
        other
            .try_ask::<String>("RLOCK.INFO a")
            .is_err_and(|error| error.to_string().to_lowercase().contains("moved"))
    })
    .await;
    let elsewhere = soon(other.locks().acquire("a").wait_forever()).await;
    for end in [here, elsewhere] {
        let Err(Error::Refused { text, .. }) = end else {
            panic!("{end:?}");
        };
        assert!(text.contains("Locks::cluster"), "{text}");
    }
}

#[tokio::test]
async fn a_connection_has_a_name_and_a_lock_too() {
    let server = Server::start();
    let locks = server.locks();
    let hold = locks.acquire("jobs").await.unwrap();
    let name = format!("name=rlock-rust-{}", env!("CARGO_PKG_VERSION"));
    assert!(server.ask::<String>("CLIENT LIST").contains(&name));
    hold.release().await.unwrap();
    // Whom the server does not allow it goes on without.
    server.ask::<String>("ACL SETUSER bob on >secret ~* &* +@all -client|setname");
    let url = format!("redis://bob:secret@127.0.0.1:{}/", server.port);
    let theirs = Locks::open(&url).unwrap();
    theirs
        .acquire("jobs")
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    for keys in [&[""][..], &["a", ""]] {
        let empty = locks.acquire_many(keys.iter().copied()).await.unwrap_err();
        assert!(matches!(empty, Error::Argument(_)), "{empty}");
    }
    let empty = Quorum::new([client(1)]).acquire("").await.unwrap_err();
    assert!(matches!(empty, Error::Argument(_)), "{empty}");
}

/// Who asks as a user that may say all but this.
fn without(server: &Server, command: &str) -> Locks {
    server.ask::<()>(&format!(
        "ACL SETUSER bob on >secret ~* &* +@all -{command}"
    ));
    Locks::open(&format!("redis://bob:secret@127.0.0.1:{}/", server.port)).unwrap()
}

/// The RELEASE behind it is taken.
#[tokio::test]
async fn a_cancel_that_is_refused_is_retried() {
    let server = Server::start();
    server.ask::<i64>("RLOCK.ACQUIRE jobs other 60000");
    let locks = without(&server, "rlock.cancel");
    let waits = || {
        let ask = locks.acquire("jobs").lease(s(4)).wait_forever();
        tokio::spawn(ask.into_future())
    };
    let first = waits();
    server.waiting("jobs", 1).await;
    first.abort();
    tokio::time::sleep(s(2)).await;
    assert_eq!(server.waiters("jobs"), 1);
    // To whom nobody listens, before it may be said.
    server.ask::<i64>("RLOCK.RELEASE jobs other");
    server.free("jobs").await;
    server.ask::<i64>("RLOCK.ACQUIRE jobs other 60000");
    let second = waits();
    server.waiting("jobs", 1).await;
    second.abort();
    _ = second.await;
    server.ask::<()>("ACL SETUSER bob +rlock.cancel");
    server.waiting("jobs", 0).await;
}

/// Else what ends the first would end the second, and nobody would be notified.
#[tokio::test]
async fn a_jobs_next_request_comes_after_a_release_that_was_refused() {
    let server = Server::start();
    let locks = without(&server, "rlock.release");
    let job = locks.job();
    let ask = || locks.acquire("jobs").lease(s(6)).job(&job);
    for dropped in [true, false] {
        server.ask::<()>("ACL SETUSER bob -rlock.release");
        let first = soon(ask()).await.unwrap();
        let token = first.token();
        if dropped {
            drop(first);
        } else {
            let end = soon(first.release()).await;
            assert!(matches!(end, Err(Error::Refused { .. })), "{end:?}");
        }
        let next = tokio::spawn(ask().wait(s(60)).into_future());
        tokio::time::sleep(ms(500)).await;
        assert!(!next.is_finished());
        server.ask::<()>("ACL SETUSER bob +rlock.release");
        let next = soon(next).await.unwrap().unwrap();
        assert!(next.token() > token);
        // Two heartbeats.
        tokio::time::sleep(s(4)).await;
        assert!(!next.is_lost() && !server.is_free("jobs"));
        assert_eq!(soon(next.release()).await, Ok(()));
    }
}

#[tokio::test]
async fn close_connects_again_where_it_has_to_tell_something() {
    let server = Server::start();
    for released in [true, false] {
        let locks = server.locks();
        let hold = locks.acquire("jobs").plain().lease(s(60)).await.unwrap();
        server.ask::<i64>("CLIENT KILL TYPE pubsub");
        if released {
            assert_eq!(soon(hold.release()).await, Ok(()));
            soon(locks.close()).await;
        } else {
            soon(locks.close()).await;
            assert!(hold.is_lost());
        }
        assert!(server.is_free("jobs"));
    }
}

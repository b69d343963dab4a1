//! What a program says, and what it gets.

use rlock_client::{Error, Hold, Locks, Reason};

use crate::server::{Server, client, ms, reason, s, soon};

#[tokio::test]
async fn acquire_and_release() {
    let server = Server::start();
    let locks = server.locks();
    let first = locks.acquire("jobs").await.unwrap();
    assert_eq!((first.key(), first.is_lost()), ("jobs", false));
    assert!(matches!(
        locks.acquire("jobs").await.unwrap_err(),
        Error::NotAcquired { .. }
    ));
    let token = first.token();
    first.release().await.unwrap();
    assert!(server.is_free("jobs"));
    let second = locks.acquire("jobs").await.unwrap();
    assert!(second.token() > token);
    assert!(second.owner().contains(&std::process::id().to_string()));
    drop(second);
    server.free("jobs").await;
}

#[tokio::test]
async fn readers_beside_each_other_and_a_writer_alone() {
    let server = Server::start();
    let locks = server.locks();
    let readers = [
        locks.acquire("rw").read().await.unwrap(),
        locks.acquire("rw").read().await.unwrap(),
    ];
    assert!(matches!(
        locks.acquire("rw").write().await.unwrap_err(),
        Error::NotAcquired { .. }
    ));
    for reader in readers {
        reader.release().await.unwrap();
    }
    locks
        .acquire("rw")
        .write()
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    assert!(server.is_free("rw"));
}

#[tokio::test]
async fn permits_of_a_lock_with_a_limit() {
    let server = Server::start();
    let locks = server.locks();
    let two = locks.acquire("gpu").permits(3, 2).await.unwrap();
    let one = locks.acquire("gpu").permits(3, 1).await.unwrap();
    assert!(matches!(
        locks.acquire("gpu").permits(3, 1).await.unwrap_err(),
        Error::NotAcquired { .. }
    ));
    two.release().await.unwrap();
    locks
        .acquire("gpu")
        .permits(3, 2)
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    one.release().await.unwrap();
    assert!(server.is_free("gpu"));
    let wrong = locks.acquire("gpu").permits(3, 4).await.unwrap_err();
    assert!(matches!(wrong, Error::Argument(_)), "{wrong}");
}

#[tokio::test]
async fn several_keys_at_once() {
    let server = Server::start();
    let locks = server.locks();
    let both = locks.acquire_many(["a", "b"]).await.unwrap();
    assert_eq!(both.keys(), ["a", "b"]);
    assert!(matches!(
        locks.acquire("b").await.unwrap_err(),
        Error::NotAcquired { .. }
    ));
    both.release().await.unwrap();
    assert!(server.is_free("a") && server.is_free("b"));
    let both = locks.acquire_many(["a", "b"]).await.unwrap();
    // The loss of one is the loss of all, and nothing is left behind.
    server.ask::<i64>("RLOCK.FORCE a");
    assert_eq!(reason(&both).await, "forced");
    server.free("b").await;
    let twice = locks.acquire_many(["a", "a"]).await.unwrap_err();
    assert!(matches!(twice, Error::Argument(_)), "{twice}");
}

#[tokio::test]
async fn a_job_has_one_owner_and_again_nests() {
    let server = Server::start();
    let locks = server.locks();
    let job = locks.job();
    let a = locks.acquire("a").job(&job).await.unwrap();
    let b = locks.acquire("b").job(&job).await.unwrap();
    assert_eq!((a.owner(), b.owner()), (job.owner(), job.owner()));
    let twice = locks.acquire("a").job(&job).wait(s(5)).await.unwrap_err();
    assert_eq!(twice, Error::HeldByJob("a".into()));
    let inner = a.again().unwrap();
    inner.release().await.unwrap();
    assert!(!server.is_free("a"));
    a.release().await.unwrap();
    assert!(server.is_free("a"));
    locks
        .acquire("a")
        .job(&job)
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    b.release().await.unwrap();
}

#[tokio::test]
async fn two_jobs_that_wait_for_each_other() {
    let server = Server::start();
    let locks = server.locks();
    let (ann, bob) = (locks.job(), locks.job());
    let a = locks.acquire("a").job(&ann).await.unwrap();
    let b = locks.acquire("b").job(&bob).await.unwrap();
    let waits = tokio::spawn(locks.acquire("b").job(&ann).wait(s(20)).into_future());
    server.waiting("b", 1).await;
    let error = locks.acquire("a").job(&bob).wait(s(20)).await.unwrap_err();
    let Error::Deadlock(text) = error else {
        panic!("{error:?}");
    };
    assert!(text.contains("waits for"), "{text}");
    b.release().await.unwrap();
    soon(waits).await.unwrap().unwrap().release().await.unwrap();
    a.release().await.unwrap();
}

#[tokio::test]
async fn a_scope_releases_and_its_body_ends_with_the_lock() {
    let server = Server::start();
    let locks = server.locks();
    let done = locks
        .acquire("jobs")
        .run(|hold| async move { hold.token() })
        .await
        .unwrap();
    assert!(done > 0 && server.is_free("jobs"));
    let (begun, begins) = tokio::sync::oneshot::channel();
    let running = locks.acquire("jobs").run(|_| async move {
        _ = begun.send(());
        std::future::pending::<()>().await;
    });
    let running = tokio::spawn(running);
    begins.await.unwrap();
    server.ask::<i64>("RLOCK.FORCE jobs");
    assert_eq!(
        soon(running).await.unwrap(),
        Err(Error::Lost(Reason::Forced))
    );
}

#[tokio::test]
async fn a_plain_hold_has_a_deadline_and_is_renewed_by_hand() {
    let server = Server::start();
    let locks = server.locks();
    let hold = locks.acquire("jobs").plain().lease(s(6)).await.unwrap();
    assert!(hold.remaining().unwrap() <= s(6));
    hold.renew(s(60)).await.unwrap();
    assert!(hold.remaining().unwrap() > s(50));
    hold.renew(s(4)).await.unwrap();
    let reason = reason(&hold).await;
    assert!(reason == "lease" || reason == "expired", "{reason}");
    assert!(matches!(hold.renew(s(1)).await, Err(Error::Lost(_))));
    assert!(matches!(hold.release().await, Err(Error::Lost(_))));
}

#[tokio::test]
async fn max_bounds_a_hold() {
    let server = Server::start();
    let hold = server.locks().acquire("jobs").max(s(4)).await.unwrap();
    assert_eq!(reason(&hold).await, "max");
    server.free("jobs").await;
    assert_eq!(hold.release().await, Err(Error::Lost(Reason::Max)));
}

#[tokio::test]
async fn a_hold_is_given_when_replicas_have_it() {
    let master = Server::start();
    let replica = Server::with(&["--replicaof", "127.0.0.1", &master.port.to_string()]);
    let up = || {
        replica
            .ask::<String>("INFO replication")
            .contains("master_link_status:up")
    };
    crate::server::until(up).await;
    let locks = master.locks();
    let held = locks.acquire("jobs").await.unwrap();
    let waits = tokio::spawn(
        locks
            .acquire("jobs")
            .wait(s(20))
            .acks(1, s(5))
            .into_future(),
    );
    master.waiting("jobs", 1).await;
    held.release().await.unwrap();
    soon(waits).await.unwrap().unwrap().release().await.unwrap();
    replica.signal(libc::SIGSTOP);
    let refused = soon(locks.acquire("jobs").acks(1, ms(200)))
        .await
        .unwrap_err();
    replica.signal(libc::SIGCONT);
    assert!(
        matches!(&refused, Error::Refused { code, .. } if code == "NOREPLICAS"),
        "{refused}"
    );
    master.free("jobs").await;
}

#[tokio::test]
async fn closing_releases_everything() {
    let server = Server::start();
    let locks = server.locks();
    let hold = locks.acquire("a").await.unwrap();
    let plain = locks.acquire("b").plain().await.unwrap();
    let waits = tokio::spawn(locks.acquire("a").wait_forever().into_future());
    server.waiting("a", 1).await;
    soon(locks.close()).await;
    assert!(server.is_free("a") && server.is_free("b"));
    assert_eq!(
        (reason(&hold).await, reason(&plain).await),
        ("closed", "closed")
    );
    assert!(matches!(
        soon(waits).await.unwrap(),
        Err(Error::Connection(_))
    ));
    assert!(matches!(
        locks.acquire("a").await,
        Err(Error::Connection(_))
    ));
}

#[tokio::test]
async fn errors_of_the_server_and_of_arguments() {
    let server = Server::start();
    let locks = server.locks();
    server.ask::<String>("SET text x");
    let wrong = locks.acquire("text").await.unwrap_err();
    assert!(
        matches!(&wrong, Error::Refused { code, .. } if code == "WRONGTYPE"),
        "{wrong}"
    );
    let zero = locks.acquire("jobs").lease(s(0)).await.unwrap_err();
    assert!(matches!(zero, Error::Argument(_)));
    server.ask::<String>("CONFIG SET requirepass secret");
    let closed = Locks::new(server.client())
        .acquire("jobs")
        .await
        .unwrap_err();
    assert!(matches!(&closed, Error::Refused { .. }), "{closed:?}");
}

#[test]
fn its_futures_can_be_spawned() {
    fn sendable<T: Send>(_: &T) {}
    let locks = crate::server::client(1);
    let locks = Locks::new(locks);
    sendable(&locks.acquire("a").into_future());
    sendable(&locks.acquire("a").run(|_: Hold| async {}));
}

#[tokio::test]
async fn an_address_that_is_none_is_an_argument() {
    let secret = Locks::open("redis://bob:secret@").unwrap_err();
    assert!(matches!(secret, Error::Argument(_)), "{secret}");
    assert!(!secret.to_string().contains("secret"), "{secret}");
    if cfg!(not(any(feature = "tls-rustls", feature = "tls-native-tls"))) {
        let no_tls = Locks::open("rediss://127.0.0.1/").unwrap_err();
        assert!(
            no_tls.to_string().contains("feature tls-rustls"),
            "{no_tls}"
        );
        let (host, port) = ("127.0.0.1".into(), 1);
        let (insecure, tls_params) = (false, None);
        let address = redis::ConnectionAddr::TcpTls {
            host,
            port,
            insecure,
            tls_params,
        };
        let info = client(1).get_connection_info().clone();
        let by_hand = redis::Client::open(info.set_addr(address)).unwrap();
        let no_tls = soon(Locks::new(by_hand).acquire("jobs").wait_forever()).await;
        let no_tls = no_tls.unwrap_err();
        assert!(matches!(no_tls, Error::Argument(_)), "{no_tls}");
        assert!(
            no_tls.to_string().contains("feature tls-rustls"),
            "{no_tls}"
        );
    }
}

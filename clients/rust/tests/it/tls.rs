//! Over TLS: a real server, and certificates that are not those of who is asked.

use redis::{Client, TlsCertificates};
use rlock_client::{Error, Locks, Quorum, blocking};

use crate::ports::free_port;
use crate::server::{Server, s, soon};

fn key(name: &str) -> String {
    format!("{}/../../tests/tls/keys/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn server() -> (Server, u16) {
    let port = free_port();
    let [ca, certificate, own] = ["ca.crt", "server.crt", "server.key"].map(key);
    let server = Server::with(&[
        "--bind",
        "127.0.0.1",
        "127.0.0.3",
        "--tls-port",
        &port.to_string(),
        "--tls-auth-clients",
        "no",
        "--tls-ca-cert-file",
        &ca,
        "--tls-cert-file",
        &certificate,
        "--tls-key-file",
        &own,
    ]);
    (server, port)
}

/// Who trusts only that authority; or those of the system.
fn client(url: String, authority: Option<&str>) -> Client {
    let root_cert = authority.map(|name| std::fs::read(key(name)).unwrap());
    let client_tls = None;
    Client::build_with_tls(
        url,
        TlsCertificates {
            client_tls,
            root_cert,
        },
    )
    .unwrap()
}

#[tokio::test]
async fn locks_are_taken_and_lost() {
    let (server, port) = server();
    let url = || format!("rediss://127.0.0.1:{port}/");
    let locks = Locks::new(client(url(), Some("ca.crt")));
    let hold = locks.acquire("jobs").await.unwrap();
    let waits = tokio::spawn(locks.acquire("jobs").wait(s(30)).into_future());
    server.waiting("jobs", 1).await;
    hold.release().await.unwrap();
    let hold = soon(waits).await.unwrap().unwrap();
    server.ask::<i64>("RLOCK.FORCE jobs");
    assert_eq!(soon(hold.lost()).await.as_str(), "forced");
    let quorum = Quorum::new([client(url(), Some("ca.crt"))]);
    quorum
        .acquire("jobs")
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    let blocking = blocking::Locks::new(client(url(), Some("ca.crt")));
    tokio::task::spawn_blocking(move || blocking.acquire("jobs").get().unwrap().release())
        .await
        .unwrap()
        .unwrap();
    assert!(server.is_free("jobs"));
}

/// At once: trying on does not make it right.
#[tokio::test]
async fn a_certificate_that_is_not_trusted_or_of_another_name() {
    let (server, port) = server();
    let by = |host: &str| format!("rediss://{host}:{port}/");
    for (url, authority) in [
        (by("127.0.0.1"), None),
        (by("127.0.0.1"), Some("server.crt")),
        (by("127.0.0.3"), Some("ca.crt")),
    ] {
        let locks = Locks::new(client(url, authority));
        let end = soon(locks.acquire("jobs").wait_forever()).await;
        let Err(Error::Connection(text)) = end else {
            panic!("{end:?}");
        };
        assert!(text.contains("certificate"), "{text}");
    }
    // What speaks no TLS.
    let url = format!("rediss://127.0.0.1:{}/", server.port);
    let locks = Locks::with_timeout(client(url, Some("ca.crt")), s(1));
    let end = soon(locks.acquire("jobs").into_future()).await;
    assert!(matches!(end, Err(Error::Connection(_))), "{end:?}");
}

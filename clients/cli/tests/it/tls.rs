//! `rlock` at a server over TLS.

use std::process::Stdio;

use crate::ports::free_port;
use crate::server::Server;
use crate::tool::{Done, end, rlock};

fn key(name: &str) -> String {
    format!("{}/../../tests/tls/keys/{name}", env!("CARGO_MANIFEST_DIR"))
}

struct Secure(Server, u16);

impl Secure {
    /// `clients`: whether they have to show a certificate.
    fn start(clients: &str) -> Self {
        let port = free_port();
        let [ca, certificate, own] = ["ca.crt", "server.crt", "server.key"].map(key);
        let arguments = [
            "--tls-port",
            &port.to_string(),
            "--tls-auth-clients",
            clients,
            "--tls-ca-cert-file",
            &ca,
            "--tls-cert-file",
            &certificate,
            "--tls-key-file",
            &own,
        ];
        Self(Server::with(free_port(), &arguments), port)
    }

    fn done(&self, words: &[&str], environment: &[(&str, &str)]) -> Done {
        let mut command = rlock(&self.0, words);
        command.env("RLOCK_URL", format!("rediss://127.0.0.1:{}/", self.1));
        command.envs(environment.iter().copied());
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        end(command.spawn().unwrap())
    }
}

const RUN: [&str; 5] = ["run", "jobs", "--", "echo", "ran"];

#[test]
fn by_an_authority_of_a_file_of_the_system_or_by_none() {
    let server = Secure::start("no");
    let ca = key("ca.crt");
    for (option, environment) in [
        (&["--cacert", &ca][..], &[][..]),
        (&[], &[("RLOCK_CACERT", ca.as_str())]),
        (&[], &[("SSL_CERT_FILE", ca.as_str())]),
        (&["--insecure"], &[]),
    ] {
        let seen = server.done(&[option, &RUN].concat(), environment);
        assert_eq!(
            (seen.code, seen.out.as_str()),
            (0, "ran\n"),
            "{}",
            seen.errors
        );
        let seen = server.done(&[&["ls"], option].concat(), environment);
        assert_eq!(seen.code, 0, "{}", seen.errors);
    }
    // An address without a scheme is one of TLS then.
    let address = format!("127.0.0.1:{}", server.1);
    let words = [&["--url", &address, "--cacert", &ca][..], &RUN].concat();
    assert_eq!(server.done(&words, &[]).code, 0);
    assert!(server.0.is_free("jobs"));
}

#[test]
fn a_certificate_that_is_not_trusted_is_an_error_at_once() {
    let server = Secure::start("no");
    let other = key("server.crt");
    let wait = ["run", "--wait", "forever", "jobs", "--", "true"];
    for option in [&[][..], &["--cacert", &other]] {
        for words in [&wait[..], &["ls"]] {
            let seen = server.done(&[option, words].concat(), &[]);
            assert_eq!(seen.code, 117, "{}", seen.errors);
            assert!(seen.errors.contains("certificate"), "{}", seen.errors);
        }
    }
}

#[test]
fn a_certificate_of_one_s_own() {
    let server = Secure::start("yes");
    let [ca, certificate, own] = ["ca.crt", "server.crt", "server.key"].map(key);
    let trusting = [&["--cacert", &ca][..], &RUN].concat();
    assert_eq!(server.done(&trusting, &[]).code, 117);
    let shown = ["--cert", &certificate, "--key", &own];
    let seen = server.done(&[&shown[..], &trusting].concat(), &[]);
    assert_eq!(
        (seen.code, seen.out.as_str()),
        (0, "ran\n"),
        "{}",
        seen.errors
    );
}

#[test]
fn options_that_cannot_be() {
    let server = Secure::start("no");
    let ca = key("ca.crt");
    let own = key("server.key");
    for words in [
        &["--cacert", "/no/such/file", "ls"][..],
        &["--cacert", "/etc/passwd", "ls"],
        &["--cert", &ca, "ls"],
        &["--key", &own, "ls"],
        &["--cacert", &ca, "--url", "redis://127.0.0.1:1/", "ls"],
        &["--insecure", "--url", "redis://127.0.0.1:1/", "ls"],
    ] {
        assert_eq!(server.done(words, &[]).code, 125, "{words:?}");
    }
}

//! What shows locks, and what frees them.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::server::{Server, until};
use crate::tool::{done, rlock};

#[test]
fn ls_in_a_table_and_as_json_over_pages() {
    let server = Server::start();
    for i in 0..600 {
        server.ask::<i64>(&format!("RLOCK.ACQUIRE many:{i} ann:{i} 60000"));
    }
    server.ask::<i64>("RLOCK.ACQUIRE gpu bob 60000 LIMIT 4 PERMITS 3");
    let all = done(&server, &["ls", "--json"]);
    assert_eq!((all.code, all.out.lines().count()), (0, 601));
    let gpu = done(&server, &["ls", "--json", "--match", "g*"]);
    let gpu: serde_json::Value = serde_json::from_str(&gpu.out).unwrap();
    assert_eq!((&gpu["owner"], &gpu["permits"]), (&"bob".into(), &3.into()));
    let table = done(&server, &["ls", "--owner", "bob"]).out;
    assert!(
        table.starts_with("KEY") && table.contains("3 permits") && table.lines().count() == 2,
        "{table}"
    );
    assert_eq!(
        done(&server, &["ls", "--held-longer", "1h"])
            .out
            .lines()
            .count(),
        1
    );
}

#[test]
fn who_waiters_and_top() {
    let server = Server::start();
    assert_eq!(done(&server, &["who", "jobs"]).code, 1);
    server.ask::<i64>("RLOCK.ACQUIRE jobs ann 60000");
    let mut waits = rlock(&server, &["run", "--wait", "1h", "jobs", "--", "true"])
        .spawn()
        .unwrap();
    until(|| server.waiters("jobs") == 1);
    let who = done(&server, &["who", "jobs"]);
    assert!(
        who.code == 0 && who.out.contains("ann") && who.out.contains("1 waits"),
        "{}",
        who.out
    );
    let who = done(&server, &["who", "jobs", "--json"]);
    let who: serde_json::Value = serde_json::from_str(&who.out).unwrap();
    assert_eq!(
        (&who["holders"][0]["owner"], &who["waiters"]),
        (&"ann".into(), &1.into())
    );
    let waiters = done(&server, &["waiters", "jobs"]).out;
    assert!(
        waiters.starts_with("PLACE") && waiters.contains(&format!(":{}:", waits.id())),
        "{waiters}"
    );
    let top = done(&server, &["top"]).out;
    assert!(
        top.contains("1 held, 1 waiting") && top.contains("jobs") && top.contains("ann"),
        "{top}"
    );
    waits.kill().unwrap();
    waits.wait().unwrap();
}

#[test]
fn force_asks_back_or_is_given_yes() {
    let server = Server::start();
    let token: i64 = server.ask("RLOCK.ACQUIRE jobs ann 60000");
    assert_eq!(done(&server, &["force", "jobs"]).code, 125, "nobody to ask");
    assert_eq!(
        done(&server, &["force", "jobs", "--yes", "--owner", "bob"]).code,
        1
    );
    assert!(!server.is_free("jobs"));
    assert_eq!(
        done(
            &server,
            &["force", "jobs", "--yes", "--token", &token.to_string()]
        )
        .code,
        0
    );
    assert!(server.is_free("jobs"));
    assert_eq!(done(&server, &["force", "jobs", "-y"]).code, 1);
}

#[test]
fn watch_prints_what_happens() {
    let server = Server::start();
    server.ask::<String>("CONFIG SET notify-keyspace-events Kd");
    let mut watch = rlock(&server, &["watch", "jobs"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap())
        .lines()
        .map(Result::unwrap);
    let mut see = |what: &str| {
        let line = lines.find(|line| line.contains(what));
        assert!(line.is_some(), "{what}");
    };
    see("waiters 0");
    server.ask::<i64>("RLOCK.ACQUIRE jobs ann 60000");
    see(" acquired");
    see("held by ann");
    server.ask::<i64>("RLOCK.RELEASE jobs ann");
    see(" released");
    server.ask::<i64>("RLOCK.ACQUIRE jobs bob 60000");
    see("held by bob");
    let mut waits = rlock(&server, &["run", "--wait", "1h", "jobs", "--", "true"])
        .spawn()
        .unwrap();
    see("waiters 1 (were 0)");
    server.ask::<i64>("RLOCK.FORCE jobs");
    see(" forced");
    waits.wait().unwrap();
    server.ask::<i64>("RLOCK.ACQUIRE jobs cem 50");
    see(" expired");
    // A server that is frozen for a while.
    server.ask::<String>("CLIENT PAUSE 1500");
    std::thread::sleep(std::time::Duration::from_secs(2));
    assert!(watch.try_wait().unwrap().is_none());
    crate::tool::signal(&watch, libc::SIGINT);
    assert!(watch.wait().unwrap().success());
}

#[test]
fn completion_and_man() {
    let server = Server::start();
    for shell in ["bash", "zsh", "fish"] {
        let text = done(&server, &["completion", shell]);
        assert!(text.code == 0 && text.out.contains("waiters"), "{shell}");
    }
    let man = done(&server, &["man"]).out;
    assert!(man.contains(".TH rlock") && man.contains("EXIT STATUS") && man.contains("115"));
}

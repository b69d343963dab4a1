//! What the server's own commands tell of the words and of RLOCK.LIMIT.

use std::collections::BTreeMap;

use redis::Value;

use crate::support::{bulk, list, map, text, Ask, RawClient, Server};

/// The arguments of a command, by their names.
#[track_caller]
fn arguments(client: &mut RawClient, command: &str) -> BTreeMap<String, BTreeMap<String, Value>> {
    let docs = client.map(&format!("COMMAND DOCS {command}"));
    let of = map(docs[command].clone());
    let all = list(of["arguments"].clone()).into_iter().map(map);
    all.map(|one| (text(one["name"].clone()), one)).collect()
}

/// The ways of saying an argument: their words, those in a block too.
#[track_caller]
fn words(of: &BTreeMap<String, Value>) -> Vec<String> {
    let mut found = Vec::new();
    found.extend(of.get("token").cloned().map(text));
    let parts = of.get("arguments").cloned().map(list).unwrap_or_default();
    for part in parts {
        found.extend(words(&map(part)));
    }
    found
}

#[test]
fn the_words_of_acquire_and_release_are_documented() {
    let server = Server::start();
    let mut client = server.raw();
    let acquire = arguments(&mut client, "rlock.acquire");
    assert_eq!(words(&acquire["mode"]), ["READ", "WRITE", "LIMIT"]);
    let permits = acquire.values().find(|one| words(one) == ["PERMITS"]);
    let permits = permits.expect("PERMITS k");
    assert_eq!(text(permits["type"].clone()), "integer");
    let release = arguments(&mut client, "rlock.release");
    assert_eq!(words(&release["mode"]), ["READ", "WRITE", "PERMITS"]);
    for command in ["rlock.renew", "rlock.cancel"] {
        let its = arguments(&mut client, command);
        assert_eq!(
            words(&its["mode"]),
            ["READ", "WRITE", "PERMITS"],
            "{command}"
        );
    }
    let info = arguments(&mut client, "rlock.info");
    assert!(info.values().any(|one| words(one) == ["COUNT"]), "{info:?}");
}

#[test]
fn the_limit_is_a_command_of_its_own() {
    let server = Server::start();
    let mut client = server.raw();
    let docs = map(client.map("COMMAND DOCS rlock.limit")["rlock.limit"].clone());
    let summary = bulk("Changes how many permits of a lock there are");
    assert_eq!(docs["summary"], summary);
    let its = arguments(&mut client, "rlock.limit");
    let names: Vec<&String> = its.keys().collect();
    assert_eq!(names, ["key", "n"]);
    let info = list(client.list("COMMAND INFO rlock.limit").remove(0));
    let shown = format!("{:?}", info[2]);
    for flag in ["write", "fast"] {
        assert!(shown.contains(flag), "{shown}");
    }
    assert!(!shown.contains("denyoom"), "{shown}");
    assert_eq!(info[3..6], [1, 1, 1].map(Value::Int), "its key");
    if server.version().at_least(7, 2) {
        assert!(format!("{:?}", info[6]).contains("@dangerous"), "{info:?}");
    }
}

#[test]
fn the_server_knows_which_argument_is_the_key() {
    let server = Server::start();
    let mut client = server.raw();
    for request in [
        "RLOCK.LIMIT job 5",
        "RLOCK.ACQUIRE job a 1000 LIMIT 4 PERMITS 2",
        "RLOCK.RELEASE job a PERMITS 2",
    ] {
        let keys = client.texts(&format!("COMMAND GETKEYS {request}"));
        assert_eq!(keys, ["job"], "{request}");
    }
}

//! lua-compat/rlock.lua is what its parts make, and every server takes it.

use std::fs;

use redis::Value;

use super::caller::{bare, lua_dir, script, source, Lua};
use crate::support::{eventually, list, map, text, Ask, Server};

#[test]
fn the_file_is_what_its_parts_make() {
    let mut parts: Vec<_> = fs::read_dir(lua_dir().join("parts"))
        .expect("parts")
        .map(|part| part.expect("a part").path())
        .collect();
    parts.sort();
    let read = |path| fs::read_to_string(path).expect("a part");
    let made: String = parts.into_iter().map(read).collect();
    assert!(made == source(), "it has drifted: run `make lua`");
}

/// Each client brings the library along.
#[test]
fn each_client_has_the_same_file() {
    let clients = lua_dir().join("../clients");
    for copy in [
        "go/rlock.lua",
        "java/src/main/resources/dev/rlock/rlock.lua",
        "node/src/rlock.lua",
        "php/src/rlock.lua",
        "python/src/rlock/rlock.lua",
        "rust/src/rlock.lua",
    ] {
        let text = fs::read_to_string(clients.join(copy)).expect(copy);
        assert!(text == source(), "{copy} has drifted: run `make lua`");
    }
}

#[test]
fn the_server_knows_each_function_by_what_it_may_do() {
    let server = bare();
    let mut client = Lua::library(&server).client;
    let libraries = client.list("FUNCTION LIST LIBRARYNAME rlock1");
    let library = map(libraries[0].clone());
    let mut functions: Vec<(String, Vec<String>)> = list(library["functions"].clone())
        .into_iter()
        .map(map)
        .map(|function| {
            let flags = list(function["flags"].clone()).into_iter().map(text);
            (text(function["name"].clone()), flags.collect())
        })
        .collect();
    functions.sort();
    for (_, flags) in &mut functions {
        flags.sort();
    }
    let flags = |name: &str| -> Vec<&str> {
        match name {
            "rlock1_acquire" | "rlock1_limit" | "rlock1_macquire" => vec![],
            "rlock1_info" | "rlock1_version" => vec!["allow-oom", "no-writes"],
            _ => vec!["allow-oom"],
        }
    };
    let names = [
        "acquire", "cancel", "force", "info", "limit", "macquire", "mrelease", "mrenew", "release",
        "renew", "version",
    ];
    let expected: Vec<(String, Vec<String>)> = names
        .iter()
        .map(|name| {
            let name = format!("rlock1_{name}");
            let flags = flags(&name).into_iter().map(str::to_owned).collect();
            (name, flags)
        })
        .collect();
    assert_eq!(functions, expected);
}

/// A library that is loaded anew forgets the tokens it gave, and nothing else.
#[test]
fn a_lock_outlives_the_library() {
    let server = bare();
    let mut lua = Lua::library(&server);
    let first = lua.int("acquire job alice 100000");
    assert_eq!(lua.int("acquire job alice 100000"), first);
    let mut lua = Lua::library(&server);
    assert!(lua.refused("acquire job bob 100000"));
    assert!(lua.int("acquire job alice 100000") > first);
    assert_eq!(lua.int("release job alice ALL"), 0);
    lua.nothing_left();
}

#[test]
fn the_script_names_what_it_cannot_call() {
    let server = bare();
    let mut lua = Lua::script(&server);
    let script = script();
    for args in [vec![], vec!["acquire"], vec!["rlock1_top", "a"]] {
        let request = [vec!["EVAL", &script, "1", "job"], args].concat();
        let line = lua.client.error(&request);
        assert!(
            line.starts_with("ERR the first argument must name a function"),
            "{line}"
        );
    }
    lua.nothing_left();
}

/// Both restart with the library in their files.
#[test]
fn the_library_is_kept_with_the_data_and_goes_to_replicas() {
    let mut master = Server::start_bare(&["--appendonly", "yes"]);
    let mut lua = Lua::library(&master);
    lua.int("acquire job alice 100000");
    master.restart();
    let replica = Server::start_bare(&["--replicaof", "127.0.0.1", &master.port().to_string()]);
    let mut lua = lua.on(master.raw());
    assert!(lua.refused("acquire job bob 1000"));
    eventually("the replica has it", || {
        let reply = replica.raw().ask("FCALL_RO rlock1_info 1 job");
        !matches!(reply, Value::ServerError(_)) && text(map(reply)["mode"].clone()) == "exclusive"
    });
    let line = lua.on(replica.raw()).error("release job alice");
    assert!(line.starts_with("READONLY "), "{line}");
}

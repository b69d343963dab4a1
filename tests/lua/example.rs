//! The function library's example runs as it stands, and is what the README shows.

use std::fs;
use std::io::Read;
use std::process::{Child, Command, Stdio};

use super::caller::{bare, lua_dir, Lua};
use crate::support::{eventually, list, spawn, wait_for, Ask, Server};

fn example(server: &Server, seconds: &str) -> Child {
    let mut command = Command::new("python3");
    command
        .arg(lua_dir().join("example.py"))
        .args([&server.port().to_string(), "job", seconds])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    spawn(command).expect("python3 is there")
}

/// Whether it ended well, and what it said.
#[track_caller]
fn ended(mut child: Child) -> (bool, String, String) {
    let status = wait_for("it ends", || child.try_wait().expect("wait"));
    let (mut out, mut err) = (String::new(), String::new());
    child
        .stdout
        .expect("out")
        .read_to_string(&mut out)
        .expect("text");
    child
        .stderr
        .expect("err")
        .read_to_string(&mut err)
        .expect("text");
    (status.success(), out, err)
}

/// It has tried in vain, and listens.
#[track_caller]
fn waits(lua: &mut Lua) {
    eventually("it waits", || {
        let stats = lua.client.text("INFO commandstats");
        stats.contains("cmdstat_fcall:calls=2,")
    });
    let subscribers = lua.client.ask("PUBSUB NUMSUB redisson_lock__channel:{job}");
    assert_eq!(list(subscribers)[1], redis::Value::Int(1));
}

#[track_caller]
fn has_worked(lua: &mut Lua, child: Child, before: i64) {
    let (success, out, err) = ended(child);
    assert!(success, "{err}");
    let token = out.strip_prefix("token ").expect("a token").trim();
    assert!(token.parse::<i64>().expect("a number") > before, "{out}");
    lua.nothing_left();
}

#[test]
fn it_is_woken_by_a_release() {
    let server = bare();
    let mut lua = Lua::library(&server);
    let token = lua.int("acquire job other 100000");
    let child = example(&server, "100");
    waits(&mut lua);
    lua.int("release job other");
    has_worked(&mut lua, child, token);
}

/// Nobody tells of that, and the server does not look for it at once.
#[test]
fn it_tries_again_when_the_lease_is_over() {
    let server = Server::start_bare(&["--hz", "1"]);
    let mut lua = Lua::library(&server);
    let token = lua.int("acquire job other 100000");
    lua.int("renew job other 1500");
    let child = example(&server, "100");
    has_worked(&mut lua, child, token);
}

#[test]
fn it_gives_up_in_time() {
    let server = bare();
    let mut lua = Lua::library(&server);
    lua.int("acquire job other 100000");
    let (success, out, err) = ended(example(&server, "0.2"));
    assert!(!success);
    assert_eq!((out.as_str(), err.trim()), ("", "not acquired in time"));
    assert_eq!(lua.int("release job other"), 0);
    lua.nothing_left();
}

#[test]
fn the_readme_shows_it_as_it_is() {
    let read = |name| fs::read_to_string(lua_dir().join(name)).expect(name);
    let readme = read("README.md");
    let (_, shown) = readme.split_once("```python\n").expect("a piece of Python");
    let (shown, _) = shown.split_once("```").expect("its end");
    assert!(read("example.py").contains(shown));
}

//! The owner `*` and RLOCK.OWNER: a connection's own id.

use redis::Value;

use crate::support::{bulk, error, Ask, RawClient, Server};

#[track_caller]
fn split(id: &str) -> (&str, i64) {
    let (uuid, client) = id.split_once(':').expect("uuid:client id");
    (uuid, client.parse().expect("a client id"))
}

/// Puts a request by way of something that has no connection of its own.
fn indirectly(client: &mut RawClient) -> [Vec<&'static str>; 2] {
    let library = "#!lua name=rlocktest\n\
        redis.register_function('put', function(keys, args) \
        return redis.pcall(unpack(args)) end)";
    let loaded = client.ask(&["FUNCTION", "LOAD", "REPLACE", library]);
    assert_eq!(loaded, bulk("rlocktest"));
    [
        vec!["EVAL", "return redis.pcall(unpack(ARGV))", "0"],
        vec!["FCALL", "put", "0"],
    ]
}

#[test]
fn it_is_the_modules_uuid_and_the_client_id() {
    let server = Server::start();
    let mut client = server.raw();
    let mine = client.text("RLOCK.OWNER");
    let (uuid, number) = split(&mine);
    assert_eq!(number, client.client_id());
    let groups: Vec<usize> = uuid.split('-').map(str::len).collect();
    assert_eq!(groups, [8, 4, 4, 4, 12], "{uuid}");
    assert!(uuid.chars().all(|c| c == '-' || c.is_ascii_hexdigit()));
    assert_eq!(client.text("rlock.owner"), mine);

    let mut other = server.raw();
    let theirs = other.text("RLOCK.OWNER");
    assert_eq!(split(&theirs).0, uuid);
    assert_eq!(split(&theirs).1, other.client_id());
    assert_ne!(theirs, mine);
}

#[test]
fn it_stays_while_the_connection_does() {
    let mut server = Server::start();
    let mut client = server.raw();
    let id = client.text("RLOCK.OWNER");
    client.ok("SELECT 1");
    assert_eq!(client.text("RLOCK.OWNER"), id);
    assert_eq!(client.text("RESET"), "RESET");
    assert_eq!(client.text("RLOCK.OWNER"), id);
    client.ask("HELLO 3");
    assert_eq!(client.text("RLOCK.OWNER"), id);

    server.restart();
    let new = server.raw().text("RLOCK.OWNER");
    assert_ne!(split(&new).0, split(&id).0);
}

#[test]
fn a_star_stands_for_it_in_every_command() {
    let server = Server::start();
    let mut client = server.raw();
    let id = client.text("RLOCK.OWNER");
    client.int("RLOCK.ACQUIRE job * 10000");
    assert_eq!(client.texts("HGETALL job"), [id.as_str(), "1"]);
    assert_eq!(client.int("RLOCK.RENEW job * 20000"), 1);
    assert!(client.int("PTTL job") > 10_000);

    let mut other = server.raw();
    assert!(other.refused("RLOCK.ACQUIRE job * 10000"));
    assert!(other
        .error("RLOCK.RELEASE job *")
        .starts_with("NOTHELD owner '"));
    assert!(other
        .error("RLOCK.RENEW job * 1000")
        .starts_with("NOTHELD owner '"));

    assert_eq!(client.int("RLOCK.RELEASE job *"), 0);
    assert_eq!(client.int("EXISTS job"), 0);
    client.int("RLOCK.ACQUIRE job * 10000");
    assert_eq!(client.int("RLOCK.RELEASE job * ALL"), 0);
    assert!(client
        .error("RLOCK.RELEASE job *")
        .starts_with(&format!("NOTHELD owner '{id}' does not hold 'job'")));
}

#[test]
fn a_star_never_nests() {
    let server = Server::start();
    let mut client = server.raw();
    let id = client.text("RLOCK.OWNER");
    client.int("RLOCK.ACQUIRE job * 10000");
    let (before, changes) = (client.state(b"job"), client.changes());
    for options in ["", "ONCE", "BLOCK 0", "BLOCK 0 ONCE"] {
        assert_eq!(
            client.error(&format!("RLOCK.ACQUIRE job * 60000 {options}")),
            format!(
                "HELD owner '{id}' already holds 'job', and the owner * does not nest: \
                 release it first, or use another owner"
            )
        );
    }
    assert_eq!(client.state(b"job"), before);
    assert_eq!(client.changes(), changes);
    client.int("RLOCK.ACQUIRE other * 10000");
    assert_eq!(client.int("RLOCK.RELEASE job *"), 0);
    client.int("RLOCK.ACQUIRE job * 10000 ONCE");
}

#[test]
fn spelled_out_it_is_a_name_like_any_other() {
    let server = Server::start();
    let mut client = server.raw();
    let id = client.text("RLOCK.OWNER");
    client.int("RLOCK.ACQUIRE job * 10000");
    let mut other = server.raw();
    other.int(&format!("RLOCK.ACQUIRE job {id} 10000"));
    assert_eq!(client.texts("HGETALL job"), [id.as_str(), "2"]);
    assert_eq!(other.int(&format!("RLOCK.RELEASE job {id}")), 1);
    assert_eq!(client.int("RLOCK.RELEASE job *"), 0);
    // Only the single star is special.
    client.int("RLOCK.ACQUIRE job ** 10000");
    assert_eq!(client.texts("HGETALL job"), ["**", "1"]);
}

#[test]
fn a_connection_can_wait_as_itself() {
    let server = Server::start();
    let mut holder = server.raw();
    holder.int("RLOCK.ACQUIRE job alice 40");
    let mut waiter = server.raw();
    let id = waiter.text("RLOCK.OWNER");
    waiter.int("RLOCK.ACQUIRE job * 10000 BLOCK 0");
    assert_eq!(holder.texts("HGETALL job"), [id.as_str(), "1"]);
}

#[test]
fn a_transaction_is_the_connections() {
    let server = Server::start();
    let mut client = server.raw();
    let id = client.text("RLOCK.OWNER");
    client.ok("MULTI");
    for request in [
        "RLOCK.OWNER",
        "RLOCK.ACQUIRE job * 10000",
        "HGETALL job",
        "RLOCK.ACQUIRE job * 10000",
        "RLOCK.RENEW job * 20000",
        "RLOCK.RELEASE job *",
    ] {
        assert_eq!(client.text(request), "QUEUED");
    }
    let replies = client.list("EXEC");
    assert_eq!(replies[0], bulk(&id));
    assert!(
        matches!(replies[1], Value::Int(token) if token > 0),
        "{replies:?}"
    );
    assert_eq!(replies[2], Value::Array(vec![bulk(&id), bulk("1")]));
    assert!(error(replies[3].clone()).starts_with("HELD "));
    assert_eq!(replies[4..], [Value::Int(1), Value::Int(0)]);
}

#[test]
fn scripts_and_functions_have_no_connection() {
    let server = Server::start();
    let mut client = server.raw();
    let id = client.text("RLOCK.OWNER");
    client.int("RLOCK.ACQUIRE job * 60000");
    let ways = indirectly(&mut client);
    let (before, changes) = (client.state(b"job"), client.changes());
    let star = "ERR owner * means a connection, and a script, a function or a module has none of \
                its own: give an owner id";
    let owner = "ERR RLOCK.OWNER gives a connection's owner id, and a script, a function or a \
                 module has no connection of its own";
    let requests: [(&[&str], &str); 7] = [
        (&["RLOCK.OWNER"], owner),
        (&["RLOCK.ACQUIRE", "job", "*", "1000"], star),
        (&["RLOCK.ACQUIRE", "free", "*", "1000", "BLOCK", "0"], star),
        (&["RLOCK.ACQUIRE", "free", "*", "1000", "ONCE"], star),
        (&["RLOCK.RELEASE", "job", "*"], star),
        (&["RLOCK.RELEASE", "job", "*", "ALL"], star),
        (&["RLOCK.RENEW", "job", "*", "1000"], star),
    ];
    for way in &ways {
        for (request, line) in requests {
            let call = [way.as_slice(), request].concat();
            assert_eq!(client.error(&call), line, "{call:?}");
            // Being queued gives a script no connection either.
            client.ok("MULTI");
            assert_eq!(client.text(&call), "QUEUED");
            let replies = client.list("EXEC");
            assert_eq!(error(replies[0].clone()), line, "{call:?} in MULTI");
        }
    }
    assert_eq!(client.state(b"job"), before);
    assert_eq!(client.changes(), changes);
    assert_eq!(client.int("EXISTS free"), 0);
    // What they may do is name an owner, this one too.
    let call = [ways[0].as_slice(), &["RLOCK.RELEASE", "job", &id]].concat();
    assert_eq!(client.int(&call), 0);
}

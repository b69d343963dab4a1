//! Where there is no connection to bind to, WATCHDOG is refused and says why; and
//! how it may be written.

use redis::Value;

use crate::support::{bulk, error, Ask, RawClient, Server};

const REQUESTS: [&str; 8] = [
    "RLOCK.ACQUIRE free a 1000 WATCHDOG",
    "RLOCK.ACQUIRE free a 1000 READ WATCHDOG",
    "RLOCK.ACQUIRE free a 1000 WRITE WATCHDOG BLOCK 0",
    "RLOCK.ACQUIRE k z 1000 WATCHDOG BLOCK 0",
    "RLOCK.ACQUIRE k a 1000 WATCHDOG",
    "RLOCK.MACQUIRE 2 free other a 1000 WATCHDOG",
    "RLOCK.RENEW k a 1000 WATCHDOG",
    "RLOCK.RENEW doc a 1000 READ WATCHDOG",
];

/// Puts a request by way of something that has no connection of its own.
fn ways(client: &mut RawClient) -> Vec<Vec<&'static str>> {
    let library = "#!lua name=rlocktest\n\
        redis.register_function('put', function(keys, args) \
        return redis.pcall(unpack(args)) end)";
    let loaded = client.ask(&["FUNCTION", "LOAD", "REPLACE", library]);
    assert_eq!(loaded, bulk("rlocktest"));
    vec![
        vec!["EVAL", "return redis.pcall(unpack(ARGV))", "0"],
        vec!["FCALL", "put", "0"],
    ]
}

#[test]
fn scripts_and_functions_are_refused_with_an_error_that_says_why() {
    let server = Server::start();
    let mut client = server.raw();
    client.token("RLOCK.ACQUIRE k a 100000");
    client.token("RLOCK.ACQUIRE doc a 100000 READ");
    let (k, doc) = (client.state(b"k"), client.state(b"doc"));
    for way in ways(&mut client) {
        for request in REQUESTS {
            let words: Vec<_> = request.split(' ').collect();
            let call = [way.as_slice(), &words].concat();
            let line = client.error(&call);
            assert!(line.starts_with("ERR "), "{line}");
            for word in ["WATCHDOG", "script", "connection"] {
                assert!(line.contains(word), "{request}: {line}");
            }
            // Being queued gives a script no connection either.
            client.ok("MULTI");
            client.ask(&call);
            let replies = client.list("EXEC");
            assert_eq!(error(replies[0].clone()), line);
        }
    }
    assert_eq!(client.state(b"k"), k);
    assert_eq!(client.state(b"doc"), doc);
    assert_eq!(client.int("EXISTS free other"), 0);
    assert_eq!(client.counter("rlock_watchdog_holds"), 0);
}

#[test]
fn what_a_script_does_without_it_binds_nothing() {
    let server = Server::start();
    let mut control = server.raw();
    let mut client = server.raw();
    let script = "return redis.call(unpack(ARGV))";
    let acquire = ["RLOCK.ACQUIRE", "k", "a", "100000"];
    client.token(&[&["EVAL", script, "0"][..], &acquire].concat());
    assert_eq!(control.watchdog("k"), None);
    // A script may release what a connection watches, for its owner.
    client.token("RLOCK.ACQUIRE w a 100000 WATCHDOG");
    let release = ["RLOCK.RELEASE", "w", "a"];
    let reply = control.ask(&[&["EVAL", script, "0"][..], &release].concat());
    assert_eq!(reply, Value::Int(0));
    client.in_step();
}

#[test]
fn keywords_come_in_any_order_and_case_and_once() {
    let server = Server::start();
    let mut control = server.raw();
    for request in [
        "RLOCK.ACQUIRE k a 100000 watchdog",
        "RLOCK.ACQUIRE k a 100000 WatchDog Block 0 once",
        "RLOCK.ACQUIRE k a 100000 ONCE BLOCK 10 WATCHDOG",
        "RLOCK.ACQUIRE k a 100000 WATCHDOG READ",
        "RLOCK.ACQUIRE k a 100000 write WATCHDOG",
        "RLOCK.MACQUIRE 1 k a 100000 ONCE watchdog BLOCK 0",
    ] {
        let mut client = server.raw();
        let id = client.client_id();
        client.token(request);
        assert_eq!(control.watchdog("k"), Some(id), "{request}");
        client.close();
        control.goes_free("k");
    }
    control.token("RLOCK.ACQUIRE held a 100000");
    let before = control.state(b"held");
    for request in [
        "RLOCK.ACQUIRE held a 1000 WATCHDOG WATCHDOG",
        "RLOCK.ACQUIRE held a 1000 WATCHDOGS",
        "RLOCK.ACQUIRE held a 1000 WATCHDOG 5",
        "RLOCK.ACQUIRE held a WATCHDOG",
        "RLOCK.MACQUIRE 1 held a 1000 WATCHDOG WATCHDOG",
        "RLOCK.RENEW held a 1000 WATCHDOG ONCE",
        "RLOCK.RELEASE held a WATCHDOG",
        "RLOCK.MRENEW 1 held a 1000 WATCHDOG",
        "RLOCK.MRELEASE 1 held a WATCHDOG",
    ] {
        let line = control.error(request);
        assert!(line.starts_with("ERR "), "{request}: {line}");
    }
    assert_eq!(control.state(b"held"), before);
    assert_eq!(control.watchdog("held"), None);
}

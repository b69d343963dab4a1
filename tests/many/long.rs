//! Requests for very many keys are answered in the next turn of the event loop: nothing
//! else about them is different.

use redis::Value;

use crate::support::{eventually, Ask, Server};

const MANY: usize = 300;

fn request(parts: &[&str], keys: &[String], rest: &[&str]) -> Vec<String> {
    let mut args: Vec<String> = parts.iter().map(ToString::to_string).collect();
    args.push(keys.len().to_string());
    args.extend(keys.iter().cloned());
    args.extend(rest.iter().map(ToString::to_string));
    args
}

fn names(of: usize) -> Vec<String> {
    (0..MANY).map(|key| format!("{{m}}{of}:{key}")).collect()
}

#[test]
fn a_pipeline_of_them_is_answered_in_order() {
    let server = Server::start();
    let mut client = server.raw();
    for round in 0..20 {
        let keys = names(round);
        client.send(&request(&["RLOCK.MACQUIRE"], &keys, &["o", "60000"]));
        client.send("PING");
        client.send(&request(&["RLOCK.MACQUIRE"], &keys, &["other", "60000"]));
        client.send(&request(&["RLOCK.MRENEW"], &keys, &["o", "50000"]));
        client.send(&request(&["RLOCK.MRENEW"], &keys, &["other", "50000"]));
        client.send(&request(&["RLOCK.MRELEASE"], &keys, &["o"]));
    }
    for _ in 0..20 {
        assert!(matches!(client.read(), Value::Int(token) if token > 1 << 40));
        assert_eq!(client.read(), Value::SimpleString("PONG".into()));
        assert_eq!(client.read(), Value::Nil);
        assert_eq!(client.read(), Value::Int(1));
        assert!(matches!(client.read(), Value::ServerError(_)));
        assert_eq!(client.read(), Value::Int(MANY as i64));
    }
    server.alive();
    assert_eq!(server.raw().int("DBSIZE"), 0);
}

#[test]
fn in_a_transaction_and_a_script_they_are_answered_at_once() {
    let server = Server::start();
    let mut client = server.raw();
    let keys = names(0);
    client.ask("MULTI");
    client.ask(&request(&["RLOCK.MACQUIRE"], &keys, &["o", "60000"]));
    client.ask(&request(&["RLOCK.MRELEASE"], &keys, &["o"]));
    match client.ask("EXEC") {
        Value::Array(replies) => assert_eq!(replies[1], Value::Int(MANY as i64)),
        other => panic!("{other:?}"),
    }
    let script = "local a = {'RLOCK.MACQUIRE', #KEYS}
        for _, key in ipairs(KEYS) do a[#a + 1] = key end
        a[#a + 1] = 'o' a[#a + 1] = '60000'
        return redis.call(unpack(a))";
    let taken = client.ask(&request(&["EVAL", script], &keys, &[]));
    assert!(matches!(taken, Value::Int(_)), "{taken:?}");
}

#[test]
fn of_a_client_that_has_gone_nothing_is_left_blocked() {
    let server = Server::start();
    for round in 0..50 {
        let mut client = server.raw();
        let keys = names(round);
        for _ in 0..3 {
            client.send(&request(&["RLOCK.MACQUIRE"], &keys, &["*", "60000"]));
            client.send(&request(&["RLOCK.MRELEASE"], &keys, &["*"]));
        }
        if round % 2 == 0 {
            client.reset();
        } else {
            client.close();
        }
    }
    eventually("nobody is blocked", || {
        server.info_field("clients", "blocked_clients").as_deref() == Some("0")
    });
    server.alive();
}

#[test]
fn whoever_is_unblocked_with_an_error_has_none_of_them() {
    let server = Server::start();
    let mut client = server.raw();
    let id = client.client_id().to_string();
    let mut other = server.raw();
    for round in 0..50 {
        let keys = names(round);
        client.send(&request(&["RLOCK.MACQUIRE"], &keys, &["o", "60000"]));
        other.send(&["CLIENT", "UNBLOCK", &id, "ERROR"]);
        let granted = match client.read() {
            Value::Int(_) => true,
            Value::ServerError(_) => false,
            reply => panic!("{reply:?}"),
        };
        other.read();
        eventually("what was lost is given back", || {
            let held = server
                .raw()
                .int(&[&["EXISTS".to_owned()], keys.as_slice()].concat());
            held == if granted { MANY as i64 } else { 0 }
        });
    }
}

//! Messages beside the replies to what the same connection asks: none comes within one,
//! and one may come before the reply to its request.

use redis::Value;

use super::in_one_turn;
use crate::support::{bulk, error, int, Ask, Server, Session, LONG};

#[test]
fn a_grant_in_ones_own_transaction_leaves_its_array_whole() {
    let server = Server::start();
    let mut control = server.raw();
    let mut session = Session::new(&server);
    for round in 0..50 {
        let tag = format!("t{round}");
        control.take("k", "x");
        session.queue("k", "a", &tag);
        let replies = session.client.ask_all(&[
            "MULTI",
            "ECHO before",
            "RLOCK.RELEASE k x",
            "ECHO after",
            "HGETALL k",
            "EXEC",
        ]);
        let pair = Value::Map(vec![(bulk("a"), bulk("1"))]);
        let whole = vec![bulk("before"), Value::Int(0), bulk("after"), pair];
        assert_eq!(replies[5], Value::Array(whole));
        session.granted(&tag);
        session.client.release("k", "a");
    }
    session.is_quiet();
}

#[test]
fn a_grant_by_a_script_of_its_own_connection_leaves_the_reply_whole() {
    let server = Server::start();
    let mut control = server.raw();
    let mut session = Session::new(&server);
    control.take("k", "x");
    session.queue("k", "a", "t");
    let script = "return {1, redis.call('RLOCK.RELEASE', KEYS[1], 'x'), 3}";
    let reply = session.client.list(&["EVAL", script, "1", "k"]);
    assert_eq!(reply, [Value::Int(1), Value::Int(0), Value::Int(3)]);
    session.granted("t");
}

#[test]
fn a_grant_in_the_middle_of_a_pipeline_comes_between_its_replies() {
    let server = Server::start();
    let mut control = server.raw();
    let mut session = Session::new(&server);
    control.take("k", "x");
    let notify = session.notify("t");
    let replies = session.client.ask_all(&[
        "ECHO 1",
        &format!("RLOCK.ACQUIRE k a {LONG} QUEUE 0 {notify}"),
        "ECHO 2",
        "RLOCK.RELEASE k x",
        "ECHO 3",
        "HGET k a",
        "RLOCK.RELEASE k a",
    ]);
    assert_eq!(replies[1], crate::support::queued());
    assert_eq!(replies[2], bulk("2"));
    assert_eq!(replies[4..], [bulk("3"), bulk("1"), Value::Int(0)]);
    session.granted("t");
    session.is_quiet();
}

#[test]
fn a_grant_is_notified_before_the_loss_of_what_was_granted() {
    let server = Server::start();
    let mut control = server.raw();
    let mut session = Session::new(&server);
    let mut behind = Session::new(&server);
    control.take("k", "x");
    session.queue("k", "a", "t");
    behind.queue("k", "b", "t");
    control.succeed(&["RLOCK.RELEASE k x", "RLOCK.FORCE k", "DEL k"]);
    for session in [&mut session, &mut behind] {
        let granted = session.next();
        assert!(granted.starts_with("granted t "), "{granted}");
        let lost = session.next();
        assert!(
            ["lost t forced", "lost t deleted"].contains(&lost.as_str()),
            "{lost}"
        );
        session.is_quiet();
    }
    control.is_free("k");
}

#[test]
fn a_loss_may_be_notified_before_the_reply_to_the_request() {
    // A request for so many keys is answered in the next turn of the loop, and by then one
    // of them is forced.
    const KEYS: usize = 128;
    let server = Server::start();
    let keys: Vec<String> = (0..KEYS).map(|n| format!("k{n}")).collect();
    let take = format!("RLOCK.MACQUIRE {KEYS} {} a {LONG}", keys.join(" "));
    let release = format!("RLOCK.MRELEASE {KEYS} {} a", keys.join(" "));
    let mut other = server.raw();
    // One that sees in which order things come.
    let mut client = server.raw();
    client.map("HELLO 3");
    client.ask("SUBSCRIBE ch");
    let (mut forced, mut before) = (0, 0);
    for round in 0..20 {
        let request = format!("{take} NOTIFY ch t{round}");
        in_one_turn(
            &server,
            &mut [(&mut client, &request), (&mut other, "RLOCK.FORCE k5")],
        );
        // The server may have read the other one first.
        if int(other.read()) == 1 {
            forced += 1;
            let came = client.read_many(2);
            let is_push = |value: &&Value| matches!(value, Value::Push { .. });
            before += usize::from(is_push(&&came[0]));
            let told: Vec<&Value> = came.iter().filter(is_push).collect();
            let lost = bulk(format!("lost t{round} forced"));
            let message = vec![bulk("ch"), lost];
            assert!(
                matches!(told[..], [Value::Push { data, .. }] if *data == message),
                "{came:?}"
            );
            let token = came.iter().find(|value| !is_push(value)).expect("a reply");
            let token = int(token.clone());
            assert_eq!(other.known_token("k6", "a", "exclusive"), Some(token));
            other.is_free("k5");
        } else {
            int(client.read());
        }
        client.int(&release);
    }
    assert!(forced > 0, "none was forced in that turn");
    println!("{before} of {forced} came before the reply");
    let subscribed_may_block = !(server.version().is_valkey() && server.version().at_least(8, 1));
    assert!(before > 0 || !subscribed_may_block, "{forced}");
}

#[test]
fn within_a_transaction_queue_tries_once() {
    let server = Server::start();
    let mut control = server.raw();
    let mut session = Session::new(&server);
    control.take("k", "x");
    let (held, free) = (session.notify("held"), session.notify("free"));
    let replies = session.client.ask_all(&[
        "MULTI".to_owned(),
        format!("RLOCK.ACQUIRE k a {LONG} QUEUE 0 {held}"),
        format!("RLOCK.ACQUIRE free a {LONG} QUEUE 0 {free}"),
        format!("RLOCK.MACQUIRE 2 k l a {LONG} QUEUE 0 {held}"),
        "EXEC".to_owned(),
    ]);
    let Value::Array(within) = &replies[4] else {
        panic!("{replies:?}");
    };
    assert_eq!((&within[0], &within[2]), (&Value::Nil, &Value::Nil));
    assert_eq!(control.waiters("k"), 0);
    assert_eq!(
        control.known_token("free", "a", "exclusive"),
        Some(int(within[1].clone()))
    );
    // What it got there it is told of as ever.
    control.int("RLOCK.FORCE free");
    assert_eq!(session.next(), "lost free forced");
}

#[test]
fn within_scripts_and_functions_queue_tries_once_and_notify_alone_is_refused() {
    let server = Server::start();
    let mut control = server.raw();
    let mut session = Session::new(&server);
    control.take("k", "x");
    let library = "#!lua name=rlocktest\n\
        redis.register_function('put', function(keys, args) \
        return redis.call(unpack(args)) end)";
    control.ask(&["FUNCTION", "LOAD", library]);
    let ways: [&[&str]; 2] = [
        &["EVAL", "return redis.call(unpack(ARGV))", "0"],
        &["FCALL", "put", "0"],
    ];
    let channel = session.channel.clone();
    for way in ways {
        let wait = ["QUEUE", "0", "NOTIFY", &channel, "t"];
        let held = [way, &["RLOCK.ACQUIRE", "k", "a", "1000"], &wait].concat();
        assert!(session.client.refused(&held));
        let free = [way, &["RLOCK.ACQUIRE", "free", "a", "1000"], &wait].concat();
        session.client.token(&free);
        session.client.release("free", "a");
        let notify = [way, &["RLOCK.ACQUIRE", "free", "a", "1000"], &wait[2..]].concat();
        let line = error(session.client.ask(&notify));
        assert!(
            line.contains("NOTIFY notifies a connection of its hold"),
            "{line}"
        );
        control.is_free("free");
    }
    assert_eq!(control.waiters("k"), 0);
    session.is_quiet();
}

//! What a request with QUEUE or NOTIFY is refused for: nothing waits then, and nothing is
//! held.

use redis::PushKind;

use crate::support::{bulk, error, queued, user, wait_for, Ask, RawClient, Server, Session, BOUND};

/// A server with `k` held by x.
fn held() -> (Server, RawClient) {
    let server = Server::start();
    let mut control = server.raw();
    control.take("k", "x");
    (server, control)
}

const NO_SESSION: &str = "ERR QUEUE and NOTIFY need RESP3 and a subscription on this connection: \
                          HELLO 3, SUBSCRIBE channel; without them use BLOCK";

#[test]
fn a_connection_that_speaks_resp2_or_is_not_subscribed() {
    let (server, mut control) = held();
    let mut listener = server.raw();
    listener.ask("SUBSCRIBE ch");
    let requests = [
        "RLOCK.ACQUIRE k a 1000 QUEUE 0 NOTIFY ch t",
        "RLOCK.ACQUIRE free a 1000 NOTIFY ch t",
        "RLOCK.MACQUIRE 2 k free a 1000 QUEUE 0 NOTIFY ch t",
    ];
    let mut resp2 = server.raw();
    let mut resp3 = server.raw();
    resp3.map("HELLO 3");
    for request in requests {
        assert_eq!(resp2.error(request), NO_SESSION, "{request}");
        assert_eq!(resp3.error(request), NO_SESSION, "{request}");
    }
    assert_eq!(control.waiters("k"), 0);
    control.is_free("free");
}

#[test]
fn a_channel_without_subscribers_or_with_those_of_a_pattern_alone() {
    let (server, mut control) = held();
    let mut session = Session::new(&server);
    let request = "RLOCK.ACQUIRE k a 1000 QUEUE 0 NOTIFY elsewhere t";
    let refused = "ERR nobody is subscribed to the channel 'elsewhere': SUBSCRIBE to it on this \
                   connection, by its name, before you name it in NOTIFY";
    assert_eq!(session.client.error(request), refused);
    let mut all = server.raw();
    all.ask("PSUBSCRIBE *");
    assert_eq!(session.client.error(request), refused);
    let mut sharded = server.raw();
    sharded.ask("SSUBSCRIBE elsewhere");
    assert_eq!(session.client.error(request), refused);
    assert_eq!(control.waiters("k"), 0);
    // Whoever it is that subscribes: rlock cannot see that it is this connection.
    let mut other = server.raw();
    other.ask("SUBSCRIBE elsewhere");
    assert_eq!(session.client.ask(request), queued());
}

#[test]
fn words_that_do_not_go_together() {
    let (server, mut control) = held();
    let mut session = Session::new(&server);
    let channel = session.channel.clone();
    for (words, told) in [
        ("QUEUE 0", "ERR QUEUE needs NOTIFY channel tag"),
        ("QUEUE", "ERR syntax error: QUEUE needs a number of ms"),
        ("QUEUE soon", "ERR QUEUE must be a whole number of ms"),
        (
            "QUEUE -1 NOTIFY CH t",
            "ERR QUEUE must be a whole number of ms",
        ),
        ("QUEUE 0 BLOCK 0 NOTIFY CH t", "ERR syntax error"),
        ("BLOCK 0 QUEUE 0 NOTIFY CH t", "ERR syntax error"),
        ("QUEUE 0 QUEUE 0 NOTIFY CH t", "ERR syntax error"),
        ("QUEUE 0 NOTIFY CH t NOTIFY CH t", "ERR syntax error"),
        (
            "NOTIFY",
            "ERR syntax error: NOTIFY needs a channel and a tag",
        ),
        (
            "NOTIFY CH",
            "ERR syntax error: NOTIFY needs a channel and a tag",
        ),
    ] {
        let words = words.replace("CH", &channel);
        for request in [
            format!("RLOCK.ACQUIRE k a 1000 {words}"),
            format!("RLOCK.MACQUIRE 2 k free a 1000 {words}"),
        ] {
            let line = session.client.error(&request);
            assert!(line.starts_with(told), "{request}: {line}");
        }
    }
    assert_eq!(control.waiters("k"), 0);
    session.is_quiet();
}

#[test]
fn a_tag_or_a_channel_that_is_too_long_or_empty_or_a_tag_that_is_not_one_word() {
    let (server, mut control) = held();
    let mut session = Session::new(&server);
    let channel = session.channel.clone();
    let ask = |session: &mut Session, channel: &[u8], tag: &[u8]| {
        let head = ["RLOCK.ACQUIRE", "k", "a", "1000", "QUEUE", "1", "NOTIFY"];
        let mut request: Vec<Vec<u8>> = head.map(|word| word.as_bytes().to_vec()).into();
        request.extend([channel.to_vec(), tag.to_vec()]);
        session.client.ask(&request)
    };
    let long = [b't'; 65];
    let bad: [&[u8]; 8] = [
        b"",
        &long,
        b"a b",
        b" ",
        b"a\n",
        b"\0",
        b"\x7f",
        b"\xc3\xa4",
    ];
    for tag in bad {
        let line = error(ask(&mut session, channel.as_bytes(), tag));
        let told = "ERR the tag must be 1 to 64 printable ASCII characters without a space, got ";
        assert!(line.starts_with(told), "{line}");
    }
    for (channel, length) in [(Vec::new(), 0), (vec![b'c'; 1025], 1025)] {
        let line = error(ask(&mut session, &channel, b"t"));
        let told = format!("ERR the channel must be 1 to 1024 bytes long, got {length}");
        assert_eq!(line, told);
    }
    // The longest that there may be; a channel may be any bytes.
    for tag in [&long[..64], b"!~{}'\"\\"] {
        assert_eq!(ask(&mut session, channel.as_bytes(), tag), queued());
        let told = format!("timeout {}", std::str::from_utf8(tag).expect("text"));
        assert_eq!(session.next(), told);
    }
    let odd = b"a b\r\n\0\xff".repeat(140);
    let odd = &odd[..950];
    session.client.send(&[b"SUBSCRIBE", odd]);
    assert_eq!(ask(&mut session, odd, b"t"), queued());
    let (mut kind, mut data) = (PushKind::Subscribe, Vec::new());
    while kind != PushKind::Message {
        (kind, data) = session.client.push_within(BOUND).expect("told");
    }
    assert_eq!(data, [bulk(odd), bulk("timeout t")]);
    assert_eq!(control.waiters("k"), 0);
}

#[test]
fn a_tag_that_another_wait_or_hold_of_the_connection_has() {
    let (server, mut control) = held();
    let mut session = Session::new(&server);
    let mut other = Session::new(&server);
    let in_use = "ERR the tag t is that of another wait or hold of this connection: give each \
                  request one of its own";
    let in_use = in_use.replace(" t ", " 't' ");
    session.queue("k", "a", "t");
    for request in [
        "RLOCK.ACQUIRE k b 1000 QUEUE 0",
        "RLOCK.ACQUIRE k a 1000 QUEUE 0",
        "RLOCK.ACQUIRE free b 1000",
        "RLOCK.ACQUIRE free b 1000 ONCE",
        "RLOCK.MACQUIRE 2 free more b 1000 QUEUE 0",
    ] {
        assert_eq!(error(session.ask(request, "t")), in_use, "{request}");
    }
    control.is_free("free");
    assert_eq!(control.waiters("k"), 1);
    // A connection of its own has tags of its own.
    other.queue("k", "b", "t");
    control.release("k", "x");
    session.granted("t");
    // That of a hold, until it is over.
    assert_eq!(error(session.ask("RLOCK.ACQUIRE free b 1000", "t")), in_use);
    session.client.release("k", "a");
    session.hold("free", "b", "", "t");
    other.granted("t");
}

#[test]
fn a_channel_that_the_user_may_not_use() {
    let (server, mut control) = held();
    let mut listener = server.raw();
    listener.ask("SUBSCRIBE secret");
    let client = user(&server, "+@all ~* resetchannels &{session}:*");
    let mut session = Session::on(client);
    for request in [
        "RLOCK.ACQUIRE k a 1000 QUEUE 0 NOTIFY secret t",
        "RLOCK.ACQUIRE free a 1000 NOTIFY secret t",
    ] {
        let line = session.client.error(request);
        let told = "NOPERM this user has no permissions to access the channel 'secret'";
        assert_eq!(line, told);
    }
    assert_eq!(control.waiters("k"), 0);
    control.is_free("free");
    session.queue("k", "a", "t");
    assert_eq!(control.waiters("k"), 1);
}

/// It is looked at with each beat of the server, not with each request.
#[test]
fn a_connection_that_has_unsubscribed_since() {
    let server = Server::start();
    let mut session = Session::new(&server);
    session.hold("first", "a", "", "first");
    session.client.send("UNSUBSCRIBE");
    let notify = session.notify("t");
    let mut tag = 0;
    let mut ask = || {
        tag += 1;
        let request = format!("RLOCK.ACQUIRE free:{tag} a 1000 {notify}{tag}");
        session.client.ask(&request)
    };
    let refused = wait_for("it is refused", || match ask() {
        redis::Value::Int(_) => None,
        refused => Some(refused),
    });
    assert_eq!(error(refused), NO_SESSION);
}

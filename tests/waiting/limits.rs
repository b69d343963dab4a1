//! How many may wait: `rlock.max-waiters`, `-per-key` and `-per-client`.

use redis::Value;

use crate::support::{both_ways, code, error, queued, Ask, RawClient, Server, Session, Way};

const MANY: &str = "RLOCK.MACQUIRE 2 j k c 100000 BLOCK 0";

/// A server whose locks `j` and `k` are held, with this setting.
fn with_held(setting: &str) -> (Server, RawClient) {
    let server = Server::start();
    let mut control = server.raw();
    control.ask(&format!("CONFIG SET rlock.{setting}"));
    control.ask_all(&["RLOCK.ACQUIRE j a 100000", "RLOCK.ACQUIRE k a 100000"]);
    (server, control)
}

/// It is refused, for this reason, and nothing is left of it.
#[track_caller]
fn refused(by: Way, server: &Server, request: &str, why: &str) {
    let mut control = server.raw();
    let before = control.counter("rlock_max_waiters_refused");
    let now = ["RLOCK.WAITERS j", "RLOCK.WAITERS k"];
    let waiting = control.ask_all(&now);
    let line = error(by.request(server, request).end());
    assert!(
        line.starts_with("MAXWAITERS ") && line.contains(why),
        "{line}"
    );
    // The times in it go on.
    let count = |replies: &[Value]| replies.iter().map(how_many).collect::<Vec<_>>();
    assert_eq!(count(&control.ask_all(&now)), count(&waiting));
    let after = control.counter("rlock_max_waiters_refused");
    assert_eq!(after, before + 1);
}

fn how_many(waiters: &Value) -> usize {
    let Value::Array(waiters) = waiters else {
        panic!("no list of waiters: {waiters:?}");
    };
    waiters.len()
}

both_ways!(no_more_wait_on_the_server_than_may);
fn no_more_wait_on_the_server_than_may(by: Way) {
    let (server, mut control) = with_held("max-waiters 2");
    let mut first = by.wait(&server, "k", "b");
    let _second = by.wait(&server, "j", "b2");
    let why = "2 requests wait on this server already (rlock.max-waiters)";
    refused(by, &server, "RLOCK.ACQUIRE k c 100000 BLOCK 0", why);
    refused(by, &server, MANY, why);
    // Who need not wait is not asked.
    assert_eq!(control.ask("RLOCK.ACQUIRE k c 1000"), Value::Nil);
    control.token("RLOCK.ACQUIRE free c 1000 BLOCK 0");
    // There is room again.
    control.ask("RLOCK.RELEASE k a");
    first.token();
    let _third = by.wait(&server, "k", "c");
    control.has_waiters("k", 1);
    control.ok("CONFIG SET rlock.max-waiters 0");
    let _fourth = by.wait(&server, "k", "d");
    control.has_waiters("k", 2);
}

both_ways!(no_more_wait_for_a_lock_than_may);
fn no_more_wait_for_a_lock_than_may(by: Way) {
    let (server, mut control) = with_held("max-waiters-per-key 1");
    let mut first = by.wait(&server, "k", "b");
    let why = "1 requests wait for 'k' already (rlock.max-waiters-per-key)";
    refused(by, &server, "RLOCK.ACQUIRE k c 100000 BLOCK 0", why);
    refused(by, &server, MANY, why);
    let mut other = by.wait(&server, "j", "b");
    control.ask_all(&["RLOCK.RELEASE k a", "RLOCK.RELEASE j a"]);
    first.token();
    other.token();
}

#[test]
fn no_more_wait_on_a_connection_than_may() {
    let (server, mut control) = with_held("max-waiters-per-client 2");
    let mut session = Session::new(&server);
    let queue = |session: &mut Session, owner: &str| {
        let notify = session.notify(owner);
        let request = format!("RLOCK.ACQUIRE k {owner} 100000 QUEUE 0 {notify}");
        session.client.ask(&request)
    };
    for owner in ["b", "c"] {
        assert_eq!(queue(&mut session, owner), queued());
    }
    assert_eq!(code(&queue(&mut session, "d")), "MAXWAITERS");
    let block = session.client.ask("RLOCK.ACQUIRE k d 100000 BLOCK 0");
    assert_eq!(code(&block), "MAXWAITERS");
    // Others may, and one that has cancelled may again.
    let _other = Way::Block.wait(&server, "k", "d");
    control.has_waiters("k", 3);
    assert_eq!(session.client.int("RLOCK.CANCEL k b"), 1);
    assert_eq!(queue(&mut session, "e"), queued());
}

/// A place that is there, or is kept, is no new one.
#[test]
fn a_request_that_is_retried_has_its_place() {
    let (server, mut control) = with_held("max-waiters-per-key 2");
    let _ahead = Way::Block.wait(&server, "k", "b");
    let once = "RLOCK.ACQUIRE k c 100000 BLOCK 0 ONCE";
    let first = Way::Block.request(&server, once);
    let again = Way::Block.request(&server, once);
    control.has_waiters("k", 2);
    again.client.close();
    control.has_waiters("k", 1);
    let _between = Way::Block.wait(&server, "k", "d");
    control.has_waiters("k", 2);
    let mut again = Way::Block.request(&server, once);
    control.has_waiters("k", 3);
    control.ask_all(&["RLOCK.RELEASE k a", "RLOCK.RELEASE k b"]);
    again.token();
    drop(first);
}

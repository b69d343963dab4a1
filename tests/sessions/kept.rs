//! A request with ONCE whose connection closes while it waits, and that is sent again by
//! another connection, has its place again.

use crate::support::{both_ways, list, map, text, Ask, RawClient, Server, Waiter, Way, LONG};

both_ways!(
    it_has_its_place_again,
    it_holds_nobody_up_meanwhile,
    who_is_unblocked_has_given_its_place_up,
);

fn requests() -> [String; 3] {
    [
        format!("RLOCK.ACQUIRE k a {LONG} BLOCK 0 ONCE"),
        format!("RLOCK.ACQUIRE k a {LONG} BLOCK 0 ONCE WRITE"),
        format!("RLOCK.MACQUIRE 2 j k a {LONG} BLOCK 0 ONCE"),
    ]
}

/// The owners that wait for `k`, in order.
fn line(control: &mut RawClient) -> Vec<String> {
    let waiters = list(control.ask("RLOCK.WAITERS k")).into_iter().map(map);
    waiters
        .map(|waiter| text(waiter["owner"].clone()))
        .collect()
}

fn it_has_its_place_again(way: Way) {
    for request in requests() {
        let server = Server::start();
        let mut control = server.raw();
        let mode = request
            .strip_prefix("RLOCK.ACQUIRE")
            .filter(|args| args.ends_with("WRITE"));
        let mode = mode.map_or("", |_| "WRITE");
        control.token(&format!("RLOCK.ACQUIRE k x {LONG} {mode}"));
        let first = way.request(&server, &request);
        let mut behind = way.with(&server, &format!("k b {LONG} BLOCK 0 {mode}"));
        first.client.close();
        control.has_waiters("k", 1);
        let mut again = way.request(&server, &request);
        assert_eq!(line(&mut control), ["a", "b"], "{request}");
        control.int(&format!("RLOCK.RELEASE k x {mode}"));
        again.token();
        behind.still_waits();
        again.client.int(&format!("RLOCK.RELEASE k a {mode}"));
        behind.token();
    }
}

fn it_holds_nobody_up_meanwhile(way: Way) {
    let server = Server::start();
    let mut control = server.raw();
    let [request, ..] = requests();
    control.take("k", "x");
    let first = way.request(&server, &request);
    let mut behind = Waiter::new(&server, "k", "b");
    let mut last = Waiter::new(&server, "k", "c");
    first.client.close();
    control.has_waiters("k", 2);
    control.release("k", "x");
    behind.token();
    let mut again = way.request(&server, &request);
    assert_eq!(line(&mut control), ["a", "c"]);
    control.release("k", "b");
    again.token();
    control.release("k", "a");
    last.token();
}

fn who_is_unblocked_has_given_its_place_up(way: Way) {
    let server = Server::start();
    let mut control = server.raw();
    let [request, ..] = requests();
    control.take("k", "x");
    let mut first = way.request(&server, &request);
    let _behind = Waiter::new(&server, "k", "b");
    assert_eq!(control.int(&first.cancel), 1);
    assert_eq!(first.end(), redis::Value::Nil);
    first.client.close();
    let _again = way.request(&server, &request);
    assert_eq!(line(&mut control), ["b", "a"]);
}

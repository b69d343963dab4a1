//! What was heard of a key before a grant must not be held against the grant.

use crate::support::{both_ways, token, Ask, Server, Waiter, Way};

both_ways!(a_grant_made_while_events_are_read_keeps_its_token);
fn a_grant_made_while_events_are_read_keeps_its_token(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    for requests in [
        &["MULTI", "DEL k", "FLUSHALL", "EXEC"][..],
        &["MULTI", "DEL k", "DEL other", "SET k v", "DEL k", "EXEC"],
    ] {
        control.ask("FLUSHALL");
        control.token("RLOCK.ACQUIRE other a 100000");
        control.token("RLOCK.ACQUIRE k a 100000");
        let mut waiter = by.wait(&server, "k", "b");
        control.ask_all(requests);
        let granted = waiter.token();
        let nested = control.token("RLOCK.ACQUIRE k b 1");
        assert_eq!(nested, granted, "{requests:?}");
    }
}

both_ways!(a_grant_made_while_events_are_read_is_revoked_when_its_client_has_gone);
fn a_grant_made_while_events_are_read_is_revoked_when_its_client_has_gone(by: Way) {
    for (first, lost) in [
        (&["MULTI", "DEL k", "FLUSHALL", "EXEC"][..], 1),
        (&["RLOCK.RELEASE k a", "UNBLOCK 0", "DEL k"], 2),
    ] {
        let server = Server::start();
        let mut control = server.raw();
        control.token("RLOCK.ACQUIRE k a 100000");
        let mut waiters: Vec<Waiter> = ["b", "c", "d"]
            .map(|owner| by.wait(&server, "k", owner))
            .into();
        let id = |n: usize| waiters[n].id;
        let mut requests: Vec<String> = first
            .iter()
            .map(|line| match *line {
                "UNBLOCK 0" if by == Way::Queue => waiters[0].cancel.clone(),
                "UNBLOCK 0" => format!("CLIENT UNBLOCK {} ERROR", id(0)),
                line => line.to_owned(),
            })
            .collect();
        requests.push(format!("CLIENT KILL ID {}", id(lost - 1)));
        control.ask_all(&requests);
        waiters[lost].token();
        let owner = ["b", "c", "d"][lost];
        assert_eq!(control.hash("k"), format!("{owner}=1"));
        assert_eq!(control.waiters("k") as usize, 2 - lost);
    }
}

#[test]
fn a_hold_taken_in_the_transaction_that_pauses_the_server_is_not_taken_for_the_one_before() {
    let server = Server::start();
    let mut before = server.raw();
    before.token("RLOCK.ACQUIRE k o 100000 WATCHDOG");
    let mut client = server.raw();
    let acquire = "RLOCK.ACQUIRE k p 100000 WATCHDOG";
    client.ask_all(&["MULTI", "CLIENT PAUSE 200 WRITE", "DEL k", acquire]);
    let mut replies = client.list("EXEC");
    let granted = token(replies.remove(2));
    // It waits until the pause is over.
    assert_eq!(client.token("RLOCK.ACQUIRE k p 1"), granted);
    client.ask("PING");
    assert_eq!(server.raw().hash("k"), "p=2");
}

//! Rights that are taken away from who holds a lock by WATCHDOG: it is not renewed any more, so
//! that its lease ends, and that is told.

use crate::support::{now_ms, Ask, Bound, RawClient, Server, Session, Waiter};

const RULES: &str = "reset on >secret ~k &* +@connection +@pubsub +info +rlock.acquire \
                     +rlock.release +rlock.renew";

#[track_caller]
fn user(server: &Server) -> RawClient {
    server.raw().ok(&format!("ACL SETUSER bob {RULES}"));
    let mut client = server.raw();
    client.ok("AUTH bob secret");
    client
}

const LEASE: i64 = 900;

#[test]
fn who_may_not_renew_any_more_loses_the_lock_with_its_lease() {
    let server = Server::start();
    let mut control = server.raw();
    for change in ["resetkeys", "-rlock.renew", "-@all +ping"] {
        for mode in ["", "READ", "WRITE", "LIMIT 2 PERMITS 2"] {
            let mut bob = user(&server);
            bob.token(&format!("RLOCK.ACQUIRE k bob {LEASE} {mode} WATCHDOG"));
            let mode = if mode == "READ" { "WRITE" } else { mode };
            let mut next = Waiter::with(&server, &format!("k next 100000 {mode} BLOCK 0"));
            control.ok(&format!("ACL SETUSER bob {change}"));
            let changed = now_ms();
            next.token();
            let lasted = now_ms() - changed;
            assert!(lasted <= LEASE + 500, "{change} {mode}: {lasted} ms");
            assert!(bob.is_closed());
            control.int("RLOCK.FORCE k");
        }
    }
}

#[test]
fn a_session_is_notified_that_it_is_lost() {
    let server = Server::start();
    let mut control = server.raw();
    let mut session = Session::on(user(&server));
    let notify = session.notify("t");
    session
        .client
        .token(&format!("RLOCK.ACQUIRE k bob {LEASE} WATCHDOG {notify}"));
    control.ok("ACL SETUSER bob -rlock.renew");
    assert_eq!(session.about("t"), "lost t expired");
    control.is_free("k");
    session.client.in_step();
}

/// Whose rights come back renews it by hand, or takes it anew; others' holds go on.
#[test]
fn others_are_renewed_and_so_is_who_renews_with_his_rights_back() {
    let server = Server::start();
    let mut control = server.raw();
    let other = Bound::with(&server, &format!("other a {LEASE}"));
    let mut bob = user(&server);
    bob.token("RLOCK.ACQUIRE k bob 3000 WATCHDOG");
    control.ok("ACL SETUSER bob -rlock.renew");
    let ends = control.ends("k");
    crate::support::pass(now_ms() + 1500);
    assert_eq!(control.ends("k"), ends);
    control.ok("ACL SETUSER bob +rlock.renew");
    assert_eq!(bob.int(&format!("RLOCK.RENEW k bob {LEASE}")), 1);
    crate::support::pass(now_ms() + 3 * LEASE);
    assert_eq!(control.hash("k"), "bob=1");
    assert_eq!(control.watchdog("other"), Some(other.id));
}

//! Connections that their servers close, and the watchdog holds that end with them.

use super::*;

/// 1 holds `k` by a watchdog and renews it; its server closes its connection. The reply
/// to the renewal is read at 928, and right after it the end. 2 is granted `k` at 922.
fn closed_by_its_server() -> Story {
    Story::new()
        .conn(1, 928, End::Server)
        .op(1, &acquire("a", "BLOCK 20 WATCHDOG"), (886, 912), ok(T))
        .op(1, "RLOCK.RENEW k a 5000 WATCHDOG", (913, 928), ok(1))
        .op(2, &acquire("b", "BLOCK 2000"), (920, 922), ok(T + 1))
}

#[test]
fn a_kill_ends_a_hold_from_its_beginning_though_a_reply_is_read_later() {
    let killed = |ids| closed_by_its_server().fault("client-kill", &[], (898, 922), ids);
    assert!(killed("585,1,22").found().is_empty());
    // Another connection was killed, on this server or by the same id on another.
    assert_eq!(killed("585,409,22").found(), ["exclusion"]);
    assert_eq!(killed("1").elsewhere().found(), ["exclusion"]);
    // The same where nobody closes it.
    let open = killed("585,409,22").conn(1, 100_000, End::Open);
    assert_eq!(open.found(), ["exclusion"]);
}

#[test]
fn a_close_that_nothing_explains_excuses_nothing() {
    assert_eq!(closed_by_its_server().found(), ["exclusion"]);
    let later = closed_by_its_server().fault("client-kill", &[], (929, 930), "1");
    assert_eq!(later.found(), ["exclusion"]);
    let before = closed_by_its_server().fault("client-kill", &[], (0, 1), "1");
    assert_eq!(before.opened(1, 5).found(), ["exclusion"]);
}

#[test]
fn whatever_may_close_a_connection_ends_its_holds_from_its_beginning() {
    for kind in [
        "restart",
        "failover",
        "reload",
        "stop",
        "pause",
        "min-replicas",
    ] {
        let story = || closed_by_its_server().fault(kind, &[], (915, 921), "");
        assert!(story().found().is_empty(), "{kind}");
        assert_eq!(story().elsewhere().found(), ["exclusion"], "{kind}");
    }
    for kind in ["stop-client", "rewrite", "detach", "memory", "unblock"] {
        let story = closed_by_its_server().fault(kind, &[], (915, 921), "1");
        assert_eq!(story.found(), ["exclusion"], "{kind}");
    }
    let stall = |who: &str| {
        closed_by_its_server().with(Record::Stall(Stall {
            who: who.to_owned(),
            from: 915 * MS,
            to: 921 * MS,
        }))
    };
    assert!(stall("server 1").found().is_empty());
    assert_eq!(stall("server 2").found(), ["exclusion"]);
    assert_eq!(stall("client 1").found(), ["exclusion"]);
}

#[test]
fn the_loss_of_one_lock_ends_the_holds_of_others_on_its_connection() {
    let story = |kind, keys: &[&str], words: &str| {
        closed_by_its_server()
            .op(
                1,
                &format!("RLOCK.ACQUIRE l a 5000{words}"),
                (1, 2),
                ok(T - 1),
            )
            .fault(kind, keys, (915, 916), "")
    };
    for kind in ["del", "force", "rename", "pexpire", "move-slot"] {
        assert!(
            story(kind, &["l"], " WATCHDOG").found().is_empty(),
            "{kind}"
        );
        assert_eq!(story(kind, &["m"], " WATCHDOG").found(), ["exclusion"]);
        assert_eq!(story(kind, &["l"], "").found(), ["exclusion"], "{kind}");
    }
}

#[test]
fn a_connection_that_is_killed_was_open_until_then() {
    // Nothing was heard on it since its hold began.
    let story = |at| {
        Story::new()
            .conn(1, 5001, End::Server)
            .heard_last(1, 1)
            .op(1, &acquire("a", "WATCHDOG"), (0, 1), ok(T))
            .fault("client-kill", &[], (5000, 5001), "1")
            .op(2, &acquire("b", ""), (at - 1, at), ok(T + 1))
    };
    assert_eq!(story(3000).found(), ["exclusion"]);
    assert!(story(5001).found().is_empty());
}

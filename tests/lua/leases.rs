//! The function library: leases are absolute, exact to the ms, and end by the server's
//! own expiry.

use super::caller::{bare, Lua};
use crate::support::{eventually, int, lease_from, lease_key, pass, Ask, Request, Server};

const MOST_MS: i64 = (1 << 53) - 1;

#[test]
fn a_lease_ends_so_many_ms_from_now() {
    for (_server, mut lua) in Lua::both() {
        for ms in [60_000, 3_600_000, 4_000_000_000_000] {
            for mode in ["", "WRITE", "READ"] {
                let take = format!("acquire doc a {ms} {mode}");
                let (_, expected) = lease_from(ms, || lua.int(&take));
                let ends = lua.client.deadline("doc");
                assert!(expected.contains(&ends), "{take}: {ends}, {expected:?}");
                if mode == "READ" {
                    assert_eq!(lua.client.leases("doc", "a"), [ends]);
                }
                let renew = format!("renew doc a {} {mode}", ms / 2);
                let (one, expected) = lease_from(ms / 2, || lua.int(&renew));
                assert_eq!(one, 1);
                let ends = lua.client.deadline("doc");
                assert!(expected.contains(&ends), "{renew}: {ends}, {expected:?}");
                if mode == "READ" {
                    assert_eq!(lua.client.leases("doc", "a"), [ends]);
                }
                lua.flush();
            }
        }
    }
}

/// The end lies beyond what a double counts exactly, so it may be a ms off.
#[test]
fn the_longest_lease_is_taken_as_it_is() {
    for (_server, mut lua) in Lua::both() {
        let take = format!("acquire job a {MOST_MS}");
        let (_, expected) = lease_from(MOST_MS, || lua.int(&take));
        let ends = lua.client.deadline("job");
        assert!(
            (expected.start() - 1..=expected.end() + 1).contains(&ends),
            "{ends}"
        );
        let renew = format!("renew job a {MOST_MS}");
        assert_eq!(lua.int(&renew), 1);
        assert_eq!(lua.int("release job a"), 0);
    }
}

#[test]
fn acquiring_again_lengthens_the_lease_and_never_shortens_it() {
    for (_server, mut lua) in Lua::both() {
        for mode in ["", "READ", "WRITE"] {
            lua.int(&format!("acquire doc a 200000 {mode}"));
            let ends = lua.client.deadline("doc");
            lua.int(&format!("acquire doc a 100000 {mode}"));
            assert_eq!(lua.client.deadline("doc"), ends, "{mode}");
            let longer = format!("acquire doc a 300000 {mode}");
            let (_, expected) = lease_from(300_000, || lua.int(&longer));
            let ends = lua.client.deadline("doc");
            assert!(expected.contains(&ends), "{mode}: {ends}, {expected:?}");
            if mode == "READ" {
                assert_eq!(lua.client.leases("doc", "a"), [ends; 3]);
            }
            // A release leaves it alone.
            lua.int(&format!("release doc a {mode}"));
            assert_eq!(lua.client.deadline("doc"), ends, "{mode}");
            lua.flush();
        }
    }
}

#[test]
fn each_reader_has_a_lease_and_the_hash_the_longest() {
    for (_server, mut lua) in Lua::both() {
        for (owner, ms) in [("a", 100_000), ("b", 300_000), ("c", 200_000)] {
            let take = format!("acquire doc {owner} {ms} READ");
            let (_, expected) = lease_from(ms, || lua.int(&take));
            let ends = lua.client.leases("doc", owner);
            assert!(expected.contains(&ends[0]), "{owner}: {ends:?}");
        }
        let end_of = |lua: &mut Lua, owner| lua.client.leases("doc", owner)[0];
        let [a, b, c] = ["a", "b", "c"].map(|owner| end_of(&mut lua, owner));
        assert_eq!(lua.client.deadline("doc"), b);
        lua.int("release doc b READ");
        assert_eq!(lua.client.deadline("doc"), c);
        lua.int("renew doc c 1000 READ");
        assert_eq!(lua.client.deadline("doc"), a);
        lua.int("renew doc c 400000 READ");
        let c = end_of(&mut lua, "c");
        assert_eq!(lua.client.deadline("doc"), c);
        assert_eq!(end_of(&mut lua, "a"), a);
    }
}

#[test]
fn a_writers_lease_is_that_of_all_its_holds() {
    for (_server, mut lua) in Lua::both() {
        lua.int("acquire doc a 200000 WRITE");
        let ends = lua.client.deadline("doc");
        lua.int("acquire doc a 100000 READ");
        assert_eq!(lua.client.leases("doc", "a"), [ends]);
        lua.int("acquire doc a 300000 READ");
        let longer = lua.client.deadline("doc");
        assert!(longer > ends);
        assert_eq!(lua.client.leases("doc", "a"), [longer; 2]);
        lua.int("renew doc a 100000 WRITE");
        let shorter = lua.client.deadline("doc");
        assert!(shorter < ends);
        assert_eq!(lua.client.leases("doc", "a"), [shorter; 2]);
    }
}

#[test]
fn a_lock_whose_lease_is_over_is_free() {
    for (_server, mut lua) in Lua::both() {
        for mode in ["", "READ", "WRITE"] {
            let replies = take_for_a_moment(&mut lua, mode);
            pass(replies);
            eventually("it is free", || lua.info("doc").mode == "free");
            let line = lua.error(&format!("release doc a {mode}"));
            let expected = "NOTHELD owner 'a' does not hold 'doc': its lease ended, it was \
                            released, or never acquired";
            assert_eq!(line, expected);
            assert!(!lua.refused("acquire doc b 100000 ONCE"));
            lua.flush();
        }
    }
}

/// Takes `doc` for 30 ms: when it ends.
fn take_for_a_moment(lua: &mut Lua, mode: &str) -> i64 {
    let take = format!("acquire doc a 30 {mode}");
    let requests = [lua.request(&take), "PEXPIRETIME doc".args()];
    int(lua.client.ask_all(&requests).remove(1))
}

#[test]
fn what_was_done_to_a_lease_by_hand_is_taken_as_it_is() {
    for (_server, mut lua) in Lua::both() {
        for mode in ["", "READ", "WRITE"] {
            lua.int(&format!("acquire doc a 100000 {mode}"));
            assert_eq!(lua.client.int("PEXPIRE doc 900000"), 1);
            let ends = lua.client.deadline("doc");
            lua.client
                .ask(&format!("PERSIST {}", lease_key("doc", "a", 1)));
            lua.int(&format!("acquire doc a 100000 {mode}"));
            // A longer one stays, and so does that of a reader who has no end.
            assert_eq!(lua.client.deadline("doc"), ends, "{mode}");
            let reads = if mode == "READ" { 2 } else { 0 };
            assert_eq!(lua.client.leases("doc", "a"), vec![-1; reads]);
            lua.int(&format!("release doc a {mode}"));
            if mode == "READ" {
                assert_eq!(lua.info("doc").holders[0].remaining_ms, None);
            }
            assert_eq!(lua.int(&format!("renew doc a 100000 {mode}")), 1);
            assert!(lua.client.deadline("doc") < ends, "{mode}");
            lua.int(&format!("release doc a {mode}"));
            lua.nothing_left();
        }
    }
}

#[test]
fn a_replica_has_the_very_ms_of_its_master() {
    let master = bare();
    let port = master.port().to_string();
    let replica = Server::start_bare(&["--replicaof", "127.0.0.1", &port]);
    master.counts_its_replica();
    let mut copy = replica.raw();
    for form in [Lua::library, Lua::script] {
        let mut lua = form(&master);
        lua.int("acquire job a 100000");
        lua.int("acquire job a 200000");
        for owner in ["a", "b", "c"] {
            lua.int(&format!("acquire doc {owner} 150000 READ"));
        }
        lua.int("release doc b READ");
        lua.int("renew doc c 300000 READ");
        for owner in ["a", "b", "c"] {
            lua.int(&format!("acquire gpu {owner} 150000 LIMIT 3"));
        }
        lua.int("limit gpu 2");
        lua.int("renew gpu a 300000 PERMITS");
        lua.int("release gpu b PERMITS");
        let expected = lua.client.everything();
        eventually("the replica has the same", || copy.everything() == expected);
        lua.int("force job");
        lua.int("force doc");
        lua.int("force gpu");
    }
}

/// While a reader has no end the hash lives as long as the longest lease that there was.
#[test]
fn a_hash_and_its_readers_may_differ() {
    for (_server, mut lua) in Lua::both() {
        lua.int("acquire doc a 50000 READ");
        let ends = lua.client.deadline("doc");
        lua.client
            .int(&format!("PERSIST {}", lease_key("doc", "a", 1)));
        lua.int("acquire doc b 10000 READ");
        assert_eq!(lua.client.deadline("doc"), ends);
        assert_eq!(lua.int("renew doc b 900000 READ"), 1);
        let longer = lua.client.deadline("doc");
        assert_eq!(longer, lua.client.deadline(&lease_key("doc", "b", 1)));
        assert_eq!(lua.int("renew doc b 10000 READ"), 1);
        assert_eq!(lua.client.deadline("doc"), longer);
    }
}

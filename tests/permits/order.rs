//! First come, first served, however many permits each wants.

use crate::support::{both_ways, Ask, Leave, Server, Way, LONG};

both_ways!(a_request_for_several_is_not_overtaken_by_those_for_one);
fn a_request_for_several_is_not_overtaken_by_those_for_one(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    for owner in ["a", "b", "c", "d"] {
        client.take_permits("k", owner, "LIMIT 5");
    }
    let mut several = by.permits(&server, "k", "five", "LIMIT 5 PERMITS 5");
    let mut ones: Vec<_> = ["x", "y"]
        .iter()
        .map(|owner| by.permits(&server, "k", owner, "LIMIT 5"))
        .collect();
    // One stands idle for it.
    assert!(client.refused("RLOCK.ACQUIRE k z 1000 LIMIT 5"));
    for (owner, left) in [("a", 2), ("b", 3), ("c", 4)] {
        client.give_back("k", owner, 1);
        assert_eq!(client.pool("k").available, left);
        assert!(client.refused("RLOCK.ACQUIRE k z 1000 LIMIT 5"));
        assert_eq!(client.waiters("k"), 3);
    }
    client.give_back("k", "d", 1);
    several.token();
    assert_eq!(client.permits("k"), "five=5 mode=permits 5 5 5");
    assert_eq!(client.give_back("k", "five", 1), 4);
    ones[0].token();
    ones[1].still_waits();
    assert_eq!(client.give_back("k", "five", 1), 3);
    ones[1].token();
    assert_eq!(client.permits("k"), "five=3 mode=permits 5 5 5 x=1 y=1");
}

both_ways!(those_behind_one_that_leaves_come_in_at_once);
fn those_behind_one_that_leaves_come_in_at_once(by: Way) {
    for leave in Leave::early(by) {
        println!("{leave:?}");
        let server = Server::start();
        let mut client = server.raw();
        client.take_permits("k", "a", "LIMIT 3");
        let words = format!("k big {LONG} LIMIT 3 PERMITS 3 {}", leave.block());
        let several = by.with(&server, &words);
        let mut ones: Vec<_> = ["x", "y", "z"]
            .iter()
            .map(|owner| by.permits(&server, "k", owner, "LIMIT 3"))
            .collect();
        leave.leave(&mut client, several);
        ones[0].token();
        ones[1].token();
        ones[2].still_waits();
        assert_eq!(client.permits("k"), "a=1 mode=permits 3 3 3 x=1 y=1");
    }
}

both_ways!(what_comes_back_at_once_lets_in_all_that_fit_from_the_head);
fn what_comes_back_at_once_lets_in_all_that_fit_from_the_head(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    client.take_permits("k", "a", "LIMIT 6 PERMITS 6");
    let shares = [("p", 2), ("q", 1), ("r", 2), ("s", 2), ("t", 1)];
    let mut waiters: Vec<_> = shares
        .iter()
        .map(|(owner, n)| by.permits(&server, "k", owner, &format!("LIMIT 6 PERMITS {n}")))
        .collect();
    let replies = client.succeed(&["RLOCK.RELEASE k a PERMITS ALL", "HGET k mode"]);
    assert_eq!(replies[1], crate::support::bulk("permits 6 6 5"));
    let tokens: Vec<i64> = waiters[..3]
        .iter_mut()
        .map(|waiter| waiter.token())
        .collect();
    assert!(tokens.is_sorted(), "{tokens:?}");
    // There is one for `t`, but `s` came before.
    waiters[3].still_waits();
    waiters[4].still_waits();
    assert_eq!(client.permits("k"), "mode=permits 6 6 5 p=2 q=1 r=2");
    client.give_back("k", "q", 1);
    waiters[3].token();
    waiters[4].still_waits();
    client.give_back("k", "p", 1);
    waiters[4].token();
}

/// Many that come and go: no more are ever out than there are, and all come to their end.
#[test]
fn no_more_are_out_than_the_limit_whatever_comes_and_goes() {
    const CLIENTS: usize = 6;
    const ROUNDS: usize = 60;
    let server = Server::start();
    std::thread::scope(|scope| {
        for number in 0..CLIENTS {
            let server = &server;
            scope.spawn(move || {
                let mut client = server.raw();
                let mut random = crate::support::Random::new(number as u64 + 1);
                for _ in 0..ROUNDS {
                    let count = random.below(3) + 1;
                    let share = format!("LIMIT 4 PERMITS {count}");
                    client.token(&format!("RLOCK.ACQUIRE k o{number} {LONG} {share} BLOCK 0"));
                    let pool = client.text("HGET k mode");
                    let out: i64 = pool.rsplit(' ').next().expect("out").parse().expect("it");
                    assert!((1..=4).contains(&out), "{pool}");
                    let left = client.give_back("k", &format!("o{number}"), count as i64);
                    assert_eq!(left, 0);
                }
            });
        }
    });
    server.raw().nothing_left("k");
}

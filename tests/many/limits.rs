//! 1,024 keys at once; and that nothing is left of many requests for many keys.

use crate::support::{both_ways, eventually, Ask, RawClient, Server, Waiter, Way, LONG};

const MOST: usize = 1024;

fn keys() -> Vec<String> {
    (0..MOST).map(|n| format!("k{n}")).collect()
}

#[test]
fn a_request_may_name_1024_keys() {
    let server = Server::start();
    let mut client = server.raw();
    let all = keys().join(" ");
    let take = format!("RLOCK.MACQUIRE {MOST} {all} alice {LONG}");
    client.token(&take);
    assert_eq!(client.int("DBSIZE"), MOST as i64);
    let deadline = client.deadline("k0");
    assert_eq!(client.deadline("k1023"), deadline);
    let other = format!("RLOCK.MACQUIRE {MOST} {all} bob {LONG}");
    assert!(client.refused(&other));
    assert_eq!(
        client.int(&format!("RLOCK.MRENEW {MOST} {all} alice 200000")),
        1
    );
    let renewed = client.deadline("k512");
    assert!(renewed > deadline);
    for key in ["k0", "k1023"] {
        assert_eq!(client.deadline(key), renewed);
    }
    let release = format!("RLOCK.MRELEASE {MOST} {all} alice");
    assert_eq!(client.int(&release), MOST as i64);
    assert_eq!(client.int(&release), 0);
    assert_eq!(client.int("DBSIZE"), 0);
}

both_ways!(it_may_wait_for_1024_keys);
fn it_may_wait_for_1024_keys(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    let all = keys().join(" ");
    client.take("k700", "bob");
    let mut first = by.many(&server, &all, "first");
    let mut second = by.many(&server, &all, "second");
    for key in ["k0", "k699", "k1023"] {
        client.is_reserved(key);
        assert_eq!(client.waiters(key), 2);
    }
    client.int("RLOCK.RELEASE k700 bob");
    first.token();
    assert_eq!(client.int("DBSIZE"), MOST as i64);
    assert_eq!(client.hash("k700"), "first=1");
    // One key after the other comes free; the last one counts.
    let release: Vec<String> = keys()
        .iter()
        .map(|key| format!("RLOCK.RELEASE {key} first"))
        .collect();
    let release: Vec<&str> = release.iter().map(String::as_str).collect();
    client.succeed(&release[1..]);
    assert_eq!(client.int("DBSIZE"), 1);
    client.is_reserved("k1023");
    client.int(release[0]);
    second.token();
    let released = client.int(&format!("RLOCK.MRELEASE {MOST} {all} second"));
    assert_eq!(released, MOST as i64);
    for key in ["k0", "k700", "k1023"] {
        client.is_free(key);
    }
}

both_ways!(a_request_for_1024_keys_that_leaves_lets_all_of_them_go);
fn a_request_for_1024_keys_that_leaves_lets_all_of_them_go(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    let all = keys().join(" ");
    client.take("k0", "bob");
    let gone = by.many(&server, &all, "gone");
    let mut behind: Vec<Waiter> = (1..MOST)
        .step_by(100)
        .map(|n| by.wait(&server, &format!("k{n}"), "b"))
        .collect();
    assert_eq!(client.waiters("k1"), 2);
    gone.client.close();
    for waiter in &mut behind {
        waiter.token();
    }
    assert_eq!(client.int("DBSIZE"), 1 + behind.len() as i64);
    assert_eq!(client.mode("k1023"), "free");
    assert_eq!(client.waiters("k0"), 0);
}

both_ways!(memory_of_many_waiters_for_many_keys_comes_back);
fn memory_of_many_waiters_for_many_keys_comes_back(by: Way) {
    let server = Server::start();
    let mut client = server.raw();
    let used = || -> i64 {
        let memory = server.info_field("memory", "used_memory").expect("memory");
        memory.parse().expect("a number")
    };
    let all: Vec<String> = keys().into_iter().take(200).collect();
    let round = |client: &mut RawClient| {
        client.take("k0", "h");
        let mut staying = by.many(&server, &all.join(" "), "stays");
        let leaving: Vec<Waiter> = (0..50)
            .map(|n| by.many(&server, &all.join(" "), &format!("m{n}")))
            .collect();
        for waiter in leaving {
            waiter.client.close();
        }
        client.has_waiters("k1", 1);
        client.int("RLOCK.RELEASE k0 h");
        staying.token();
        let release = format!("RLOCK.MRELEASE 200 {} stays", all.join(" "));
        assert_eq!(client.int(&release), 200);
        assert_eq!(client.int("DBSIZE"), 0);
    };
    round(&mut client);
    round(&mut client);
    let most = used() + 256 * 1024;
    for _ in 0..4 {
        round(&mut client);
    }
    // Clients are freed some time later.
    eventually("the memory comes back", || used() < most);
}

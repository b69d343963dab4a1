//! Counters of RFencedLock's that somebody has changed: set far ahead, lowered, lost.

use super::fencing::{counter, AHEAD};
use crate::support::{error, now_us, user, Ask, Server, Way};

/// The greatest token, and what the commands take.
const MOST: i64 = (1 << 53) - 1;

/// One who may write a counter of his own, and no more.
#[test]
fn a_counter_that_somebody_sets_high_lifts_the_tokens_of_its_own_lock_alone() {
    for fencing in ["clock", "counter"] {
        let server = Server::start_with(&["--rlock.fencing", fencing]);
        let mut client = server.raw();
        let rules = "~x ~redisson_lock_token:{x} +set +rlock.acquire";
        let mut mallory = user(&server, rules);
        mallory.ok(&format!("SET {} {}", counter("x"), MOST - 1));
        assert_eq!(mallory.int("RLOCK.ACQUIRE x m 1000"), MOST);
        let before = now_us();
        for name in ["job", "doc"] {
            let token = client.int(&format!("RLOCK.ACQUIRE {name} a 60000"));
            assert!((before..=now_us()).contains(&token), "{token}");
            let renewed = client.int(&format!("RLOCK.RENEW {name} a 60000 FENCE {token}"));
            assert_eq!(renewed, token);
            let released = client.int(&format!("RLOCK.RELEASE {name} a IFTOKEN {token}"));
            assert_eq!(released, 0);
            assert!(client.int(&format!("RLOCK.ACQUIRE {name} b 60000")) > token);
        }
        // Its own has none that is greater: nobody is given one that is not.
        assert_eq!(client.int("RLOCK.FORCE x"), 1);
        for request in [
            "RLOCK.ACQUIRE x a 1000",
            "RLOCK.ACQUIRE x a 1000 READ",
            "RLOCK.ACQUIRE x a 1000 LIMIT 2",
            "RLOCK.MACQUIRE 2 free x a 1000",
        ] {
            let line = client.error(request);
            let says =
                "redisson_lock_token:... of 'x', its fencing counter, has reached 9007199254740991";
            assert!(
                line.starts_with("WRONGTYPE") && line.contains(says),
                "{line}"
            );
        }
        assert_eq!(client.int("EXISTS free x"), 0);
        // As the error says.
        client.int(&format!("DEL {}", counter("x")));
        let token = client.int("RLOCK.ACQUIRE x a 1000");
        assert!((before..=now_us()).contains(&token), "{token}");
    }
}

/// The counter is deleted, lowered, lost in a flush, or its lock renamed: while this server runs, the
/// tokens of the lock rise all the same.
#[test]
fn tokens_of_a_lock_rise_also_when_its_counter_is_lost() {
    let server = Server::start();
    let mut client = server.raw();
    for (name, loss) in [
        ("a", format!("DEL {}", counter("a"))),
        ("b", format!("SET {} 5", counter("b"))),
        ("c", "FLUSHALL".to_owned()),
        ("d", "SWAPDB 0 1".to_owned()),
    ] {
        client.ok(&format!("SET {} {AHEAD}", counter(name)));
        assert_eq!(
            client.int(&format!("RLOCK.ACQUIRE {name} x 60000")),
            AHEAD + 1
        );
        client.int(&format!("RLOCK.RELEASE {name} x"));
        client.ask(&loss);
        for more in 2..5 {
            let token = client.int(&format!("RLOCK.ACQUIRE {name} x 60000"));
            assert_eq!(token, AHEAD + more, "{loss}");
            client.int(&format!("RLOCK.RELEASE {name} x"));
        }
    }
}

/// Whoever waits when a counter has reached its end is told, and the next is looked at.
#[test]
fn a_waiter_whose_lock_has_no_token_any_more_gets_the_error() {
    let server = Server::start();
    let mut client = server.raw();
    for by in Way::ALL {
        client.ok("FLUSHALL");
        client.take("job", "alice");
        let mut waiters = ["w0", "w1"].map(|owner| by.wait(&server, "job", owner));
        client.has_waiters("job", 2);
        // Redisson's own INCR has come to the end, or gone beyond it.
        client.ok(&format!("SET {} {MOST}", counter("job")));
        client.int(&format!("INCR {}", counter("job")));
        client.release("job", "alice");
        for waiter in &mut waiters {
            let line = error(waiter.end());
            assert!(line.contains("has reached 9007199254740991"), "{line}");
        }
        client.is_free("job");
        client.int(&format!("DEL {}", counter("job")));
        client.take("job", "bob");
    }
}

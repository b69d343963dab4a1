//! Requests that stand behind a blocked one in its own connection.

use std::time::{Duration, Instant};

use crate::support::{int, Ask, Server, Waiter};

/// A release that waits behind its own acquisition runs while the server is about
/// to sleep. Whoever it grants must not wait for the server to wake by itself,
/// which with `--hz 1` takes up to a second each time.
#[test]
fn a_release_behind_its_acquisition_passes_the_lock_on_at_once() {
    let server = Server::start_with(&["--hz", "1"]);
    let mut control = server.raw();
    control.ask("RLOCK.ACQUIRE k a 100000");
    let mut waiters: Vec<Waiter> = (0..12)
        .map(|n| {
            let mut waiter = Waiter::new(&server, "k", &format!("w{n}"));
            waiter
                .client
                .send(&["RLOCK.RELEASE", "k", &format!("w{n}")]);
            waiter
        })
        .collect();
    let start = Instant::now();
    control.ask("RLOCK.RELEASE k a");
    for waiter in &mut waiters {
        waiter.token();
        assert_eq!(int(waiter.client.read()), 0);
    }
    assert!(start.elapsed() < Duration::from_secs(6));
    control.in_step();
}

//! A node that reads requests in several threads.

use crate::support::{cluster_with, Ask};

/// Redis 8.2 looks in each of these threads for the slot of a request, and so for its keys.
#[test]
fn requests_for_counted_keys_may_come_in_several_threads() {
    const CLIENTS: usize = 16;
    const TIMES: usize = 1_500;
    let node = cluster_with(&["--io-threads", "4"]);
    std::thread::scope(|scope| {
        for number in 0..CLIENTS {
            let mut client = node.raw();
            scope.spawn(move || {
                let (one, two) = (format!("{{{number}}}a"), format!("{{{number}}}b"));
                for _ in 0..TIMES {
                    client.int(&format!("RLOCK.MACQUIRE 2 {one} {two} owner 60000"));
                    let released = format!("RLOCK.MRELEASE 2 {one} {two} owner");
                    assert_eq!(client.int(&released), 2);
                }
            });
        }
    });
    node.alive();
}

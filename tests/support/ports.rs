//! Ports for servers of tests. The tests of the Rust client and of the command line have this too.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};

/// Below the ports that the kernel hands to clients, also with the 10,000 that
/// a cluster adds for its bus. So a server that is started again finds its own free.
const PORTS: std::ops::Range<u16> = 10_000..20_000;
/// How many each program of tests has for itself: the clients' tests do it alike.
const BLOCK: u16 = 400;

/// A port that nobody listens on now, and that no other program of tests is
/// given while this one runs.
pub fn free_port() -> u16 {
    static MINE: std::sync::OnceLock<TcpListener> = std::sync::OnceLock::new();
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = MINE.get_or_init(block).local_addr().unwrap().port();
    for _ in 0..BLOCK {
        let port = first + 1 + NEXT.fetch_add(1, Ordering::Relaxed) % (BLOCK - 1);
        let free = |port| TcpListener::bind(("127.0.0.1", port)).is_ok();
        if free(port) && free(port + 10_000) {
            return port;
        }
    }
    panic!("no free port behind {first}");
}

/// Who listens on the first port of a block has it.
fn block() -> TcpListener {
    let blocks = u32::from((PORTS.end - PORTS.start) / BLOCK);
    let first = std::process::id();
    let at = |n: u32| PORTS.start + (first.wrapping_add(n) % blocks) as u16 * BLOCK;
    let mut all = (0..blocks).map(|n| TcpListener::bind(("127.0.0.1", at(n))));
    all.find_map(Result::ok)
        .unwrap_or_else(|| panic!("other tests have all ports of {PORTS:?}"))
}

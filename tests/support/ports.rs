//! Ports for servers of tests. The tests of the Rust client and of the command line have this too.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};

/// Below the ports that the kernel hands to clients, also with the 10,000 that
/// a cluster adds for its bus. So a server that is started again finds its own free.
const PORTS: std::ops::Range<u16> = 10_000..20_000;

/// A port that nobody listens on now. No two calls of one run give the same
/// until all were given; runs at the same time begin at different ones.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = (std::process::id().wrapping_mul(7919) % PORTS.len() as u32) as u16;
    for _ in PORTS {
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = PORTS.start + (first.wrapping_add(step)) % PORTS.len() as u16;
        let free = |port| TcpListener::bind(("127.0.0.1", port)).is_ok();
        if free(port) && free(port + 10_000) {
            return port;
        }
    }
    panic!("no free port in {PORTS:?}");
}

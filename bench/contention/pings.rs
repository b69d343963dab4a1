//! One connection that does nothing but PING, through the same loop as a contest.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::times;
use crate::load::{command, Connection, Outcome, Poller, Server};

/// The connection, and how long its round trips took.
pub struct Pinger {
    connection: Connection,
    poller: Poller,
    ping: Vec<u8>,
    pub times: Histogram<u64>,
}

impl Pinger {
    pub fn new(server: &Server) -> Outcome<Self> {
        let connection = server.connect_small()?;
        let mut poller = Poller::new()?;
        poller.watch(&connection, 0)?;
        Ok(Pinger {
            connection,
            poller,
            ping: command(&["PING"]),
            times: times()?,
        })
    }

    /// Round trips per second.
    pub fn run(&mut self, time: Duration) -> Outcome<f64> {
        let mut ready = Vec::new();
        let start = Instant::now();
        let mut count = 0;
        while start.elapsed() < time {
            let sent = Instant::now();
            self.connection.send(&self.ping)?;
            while self.connection.received()?.is_none() {
                self.poller.wait(Duration::from_secs(10), &mut ready)?;
                self.connection.receive()?;
            }
            self.times
                .saturating_record(sent.elapsed().as_nanos() as u64);
            count += 1;
        }
        Ok(f64::from(count) / start.elapsed().as_secs_f64())
    }
}

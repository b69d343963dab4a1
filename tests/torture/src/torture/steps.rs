//! The wall clock of a server is set wrong, and right again: each is a step.

use std::io;
use std::thread::sleep;
use std::time::Duration;

use crate::world::World;

impl World {
    /// Two steps: there, and back to the right time.
    pub fn step_clock(&mut self, at: usize, off: i64, time: u64) -> io::Result<()> {
        let writable = self.writable();
        let at = writable[at % writable.len()];
        for (by, to) in [(off, off), (-off, 0)] {
            let kind = if by > 0 {
                "clock-forward"
            } else {
                "clock-back"
            };
            let mut fault = self.fault(kind);
            fault.server = self.servers[at].port;
            fault.ms = by.unsigned_abs();
            match &self.servers[at].clock {
                Some(clock) => clock.set_off(to)?,
                None => return Ok(()),
            }
            self.done(fault)?;
            if to != 0 {
                sleep(Duration::from_millis(time));
            }
        }
        Ok(())
    }
}

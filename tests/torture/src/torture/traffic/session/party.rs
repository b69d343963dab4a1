//! A session as its process drives it.

use std::io;

use rlock_torture::clock::now_us;
use rlock_torture::history::{End, Recorder};

use super::job::{Job, State};
use super::{Session, Who, AT_ONCE};
use crate::traffic::conn::Conn;
use crate::traffic::{Party, Shared};

/// Who would hold for long gives back by then before a rest, us.
const SOON: u64 = 40_000;

impl Party for Session {
    fn conns(&self) -> Vec<&Conn> {
        self.lines.iter().map(|line| &line.conn).collect()
    }

    fn due(&self) -> u64 {
        self.next_at
    }

    fn rests(&self) -> bool {
        self.lines.is_empty()
    }

    fn act(&mut self, s: &mut Shared, to: &mut Recorder) -> io::Result<()> {
        if now_us() < self.next_at {
            return Ok(());
        }
        self.next_at = now_us() + self.rng.u64(0..8_000);
        let keeps = |job: &Job| job.keeps > 0 && job.state == State::Holds;
        let keeps = self.jobs.iter().any(keeps);
        self.beats.upset(&mut self.rng, keeps);
        self.say_alive(s, to)?;
        if !self.beats.works() {
            return Ok(());
        }
        self.attend_all(s, to)?;
        self.keep_lines(s, to)?;
        if !self.upset(s, to)? {
            let steps = if self.who == Who::Some { 1 } else { AT_ONCE };
            for _ in 0..steps {
                self.step(false, s, to)?;
            }
        }
        Ok(())
    }

    fn read(&mut self, at: usize, s: &mut Shared, to: &mut Recorder) -> io::Result<()> {
        let mut answers = Vec::new();
        let line = &mut self.lines[at];
        let open = line.conn.read(to, &mut answers)?;
        let messages = std::mem::take(&mut line.conn.messages);
        line.heard.push((messages, answers));
        if !open {
            return self.drop_line(at, End::Server, false, s, to);
        }
        match self.beats.works() && self.attend(at, s) {
            true => self.drop_line(at, End::Client, false, s, to),
            false => Ok(()),
        }
    }

    fn end_all(
        &mut self,
        end: End,
        hard: bool,
        s: &mut Shared,
        to: &mut Recorder,
    ) -> io::Result<()> {
        while !self.lines.is_empty() {
            self.drop_line(0, end, hard, s, to)?;
        }
        self.jobs.iter_mut().for_each(|job| job.state = State::Over);
        self.forget(s);
        Ok(())
    }

    fn wind_up(&mut self, s: &mut Shared, to: &mut Recorder) -> io::Result<()> {
        if now_us() < self.next_at {
            return Ok(());
        }
        self.next_at = now_us() + 2_000;
        self.beats.wake();
        self.attend_all(s, to)?;
        self.say_alive(s, to)?;
        let soon = now_us() + SOON;
        self.jobs
            .iter_mut()
            .for_each(|job| job.due = job.due.min(soon));
        // Very many leave by its close; their leases are short.
        if self.jobs.is_empty() || self.who != Who::Some {
            return self.end_all(End::Client, false, s, to);
        }
        self.keep_lines(s, to)?;
        self.step(true, s, to)
    }
}

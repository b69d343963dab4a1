//! A session: many owners who wait, and hold, by few connections that never block. What
//! becomes of them they are told on the connection's own channel.

mod ask;
mod beats;
mod job;
mod line;
mod party;

use std::collections::VecDeque;
use std::io;

use fastrand::Rng;
use rlock_torture::clock::now_us;
use rlock_torture::history::{End, Out, Recorder};

use super::conn::{Answer, Args};
use super::draw;
use super::lane::{Held, LONG_MS};
use super::Shared;
use beats::Beats;
use job::{Job, State};
use line::Line;

/// So many connections, over which work can be taken from one to the other.
const LINES: usize = 2;
/// So many owners at a time.
const JOBS: usize = 12;
/// So many in a crowd, by one connection, and for as many locks.
const CROWD: usize = 2_000;
/// So many of them do something in one go.
const AT_ONCE: usize = 16;
/// Whom nothing is told for so long gives up, us.
const PATIENCE: u64 = 3_500_000;

/// Who are in a session.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// Some owners, each of whom does this and that.
    Some,
    /// A crowd of owners who wait.
    Crowd,
    /// One owner that waits for very many locks.
    One,
}

pub struct Session {
    who: Who,
    rng: Rng,
    number: u32,
    db: u32,
    /// All its locks have this tag, for in a cluster its channels belong to one node.
    tag: &'static str,
    lines: Vec<Line>,
    beats: Beats,
    jobs: VecDeque<Job>,
    serial: u32,
    next_at: u64,
}

impl Session {
    pub fn new(who: Who, number: u32, db: u32, mut rng: Rng) -> Self {
        let next_at = now_us() + rng.u64(0..50_000);
        Self {
            who,
            beats: Beats::new(&mut rng),
            rng,
            number,
            db,
            tag: "",
            lines: Vec::new(),
            jobs: VecDeque::new(),
            serial: 0,
            next_at,
        }
    }

    /// One that listens, if there is any: the one with this number, or any.
    fn line(&mut self, want: Option<u32>) -> Option<usize> {
        let mut all: Vec<usize> = Vec::new();
        for (at, line) in self.lines.iter().enumerate() {
            if line.listens() && want.is_none_or(|id| id == line.conn.id) {
                all.push(at);
            }
        }
        self.rng.choice(all)
    }

    fn ask(&mut self, at: usize, args: Args, s: &mut Shared, to: &mut Recorder) -> io::Result<()> {
        if self.lines[at].conn.send(&[args], false, false).is_err() {
            self.drop_line(at, End::Server, false, s, to)?;
        }
        Ok(())
    }

    fn strays(&self, s: &Shared) -> Option<usize> {
        let port = s.port_of(self.tag);
        self.lines.iter().position(|line| line.conn.port != port)
    }

    /// Opens what is missing, and has it listen.
    fn keep_lines(&mut self, s: &mut Shared, to: &mut Recorder) -> io::Result<()> {
        // One that is no master any more may be cut off, and is not to be asked.
        while let Some(at) = self.strays(s) {
            self.drop_line(at, End::Client, false, s, to)?;
        }
        if self.lines.is_empty() {
            self.tag = self.rng.choice(s.tags).expect("a tag");
        }
        let lines = if self.who == Who::Some { LINES } else { 1 };
        if self.lines.len() < lines {
            match Line::open(s.next_conn(), s.port_of(self.tag), self.db, self.tag) {
                Ok(line) => self.lines.push(line),
                Err(_) => self.next_at = now_us() + 50_000,
            }
        }
        for at in (0..self.lines.len()).rev() {
            if let Some(args) = self.lines[at].subscribe() {
                self.ask(at, args, s, to)?;
            }
        }
        Ok(())
    }

    /// Says by each connection that it is alive, where it is time for that.
    fn say_alive(&mut self, s: &mut Shared, to: &mut Recorder) -> io::Result<()> {
        for at in (0..self.lines.len()).rev() {
            if !self.lines[at].is_to_beat() {
                continue;
            }
            if let Some((patience, next)) = self.beats.says(&mut self.rng) {
                self.lines[at].beats_at = next;
                let args = draw::args(&format!("RLOCK.HEARTBEAT {patience}"));
                self.ask(at, args, s, to)?;
            }
        }
        Ok(())
    }

    /// Looks at what has come on a connection; whether that is of no use any more.
    fn attend(&mut self, at: usize, s: &mut Shared) -> bool {
        let id = self.lines[at].conn.id;
        let mut moved = false;
        for (messages, answers) in std::mem::take(&mut self.lines[at].heard) {
            // What was told first: a message may overtake the reply to its request.
            for text in messages {
                moved |= text == "sunsubscribe";
                self.hear(id, &text);
            }
            for answer in answers {
                moved |= self.lines[at].answered(&answer);
                self.learn(answer, s);
            }
        }
        self.forget(s);
        moved
    }

    /// Looks at what has come on all of them while it stood still.
    fn attend_all(&mut self, s: &mut Shared, to: &mut Recorder) -> io::Result<()> {
        for at in (0..self.lines.len()).rev() {
            if self.attend(at, s) {
                self.drop_line(at, End::Client, false, s, to)?;
            }
        }
        Ok(())
    }

    /// Ends a connection, and what depends on it.
    fn drop_line(
        &mut self,
        at: usize,
        end: End,
        hard: bool,
        s: &mut Shared,
        to: &mut Recorder,
    ) -> io::Result<()> {
        self.attend(at, s);
        let line = self.lines.remove(at);
        let id = line.conn.id;
        for answer in line.conn.close(end, hard, to)? {
            if answer.out == Out::Lost {
                let asked = draw::asked(&answer.args, None);
                s.orphans(asked.into_iter().filter(|held| held.lease > LONG_MS));
            }
            self.learn(answer, s);
        }
        for job in self.jobs.iter_mut().filter(|job| job.line == id) {
            job.cut(&mut self.rng);
        }
        self.forget(s);
        if end == End::Server {
            self.next_at = now_us() + 20_000 + self.rng.u64(0..30_000);
        }
        Ok(())
    }

    /// Takes away the jobs that are over. What may be held for long goes to others.
    fn forget(&mut self, s: &mut Shared) {
        if !self.jobs.iter().any(Job::is_over) {
            return;
        }
        let (over, left) = std::mem::take(&mut self.jobs)
            .into_iter()
            .partition::<VecDeque<Job>, _>(Job::is_over);
        self.jobs = left;
        for job in over {
            s.orphans(job.left_behind().into_iter());
        }
    }

    fn learn(&mut self, answer: Answer, s: &mut Shared) {
        let Answer { args, out } = answer;
        if let (Out::Error(error), "MOVED") = (&out, out_code(&out)) {
            let target = error.rsplit(':').next().and_then(|at| at.parse().ok());
            if let Some(target) = target {
                s.route(self.tag, target);
            }
        }
        let owner = match args[0].starts_with("RLOCK.M") {
            true => draw::many(&args).1.clone(),
            false => args.get(2).cloned().unwrap_or_default(),
        };
        // One owner can be there several times, for a lock each.
        let many = args[0].starts_with("RLOCK.M");
        let is_its = |job: &Job| job.owner == owner && (many || job.keys.contains(&args[1]));
        if let Some(job) = self.jobs.iter_mut().find(|job| is_its(job)) {
            job.answered(&args, &out, &mut self.rng);
        }
    }

    fn hear(&mut self, id: u32, text: &str) {
        let words: Vec<&str> = text.splitn(3, ' ').collect();
        let [word, tag, ..] = words[..] else {
            return;
        };
        let jobs = self.jobs.iter_mut();
        let mut fits = jobs.filter(|job| job.line == id && job.tag == tag);
        if let Some(job) = fits.next() {
            job.told(
                word,
                words.get(2).copied().unwrap_or_default(),
                &mut self.rng,
            );
        }
    }

    /// Now and then a connection goes, or stops to listen, or forgets all of itself.
    fn upset(&mut self, s: &mut Shared, to: &mut Recorder) -> io::Result<bool> {
        let Some(at) = self.line(None) else {
            return Ok(true);
        };
        match self.rng.u32(0..5000) {
            0..3 => {
                let hard = self.rng.bool();
                self.drop_line(at, End::Client, hard, s, to)?;
            }
            3..5 => {
                let args = self.lines[at].unsubscribe();
                let id = self.lines[at].conn.id;
                self.jobs.iter_mut().for_each(|job| job.unheard(id));
                self.ask(at, args, s, to)?;
            }
            5..7 => {
                let again = self.lines[at].reset();
                let id = self.lines[at].conn.id;
                self.jobs.iter_mut().for_each(|job| job.unheard(id));
                for args in again {
                    self.lines[at].conn.send(&[args], false, false)?;
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// One more who is to ask for a lock, if there is room.
    fn one_more(&mut self, rest: bool, s: &Shared) -> Option<Job> {
        let most = if self.who == Who::Some { JOBS } else { CROWD };
        if rest || self.jobs.len() >= most {
            return None;
        }
        self.serial += 1;
        let (process, number) = (s.process, self.number);
        let fresh = format!("s{process}-{number}-{}", self.serial);
        let key = |at: usize| format!("{}w{at}", self.tag);
        Some(match self.who {
            Who::Some => ask::begin(&mut self.rng, self.tag, fresh),
            Who::Crowd => {
                let at = self.rng.usize(0..CROWD);
                ask::of_crowd(&mut self.rng, key(at), fresh)
            }
            Who::One => {
                // Each lock once at a time, so that it does not nest.
                let key = key(self.rng.usize(0..CROWD));
                if self.jobs.iter().any(|job| job.keys[0] == key) {
                    return None;
                }
                ask::of_crowd(&mut self.rng, key, format!("one-{process}"))
            }
        })
    }

    /// The next thing for one of those who are there, or one more.
    fn step(&mut self, rest: bool, s: &mut Shared, to: &mut Recorder) -> io::Result<()> {
        let now = now_us();
        let ready = |job: &Job| job.due <= now && (!job.busy() || job.state == State::Waits);
        let due = self.jobs.iter().position(ready);
        let at = match due {
            Some(at) => at,
            None => match self.one_more(rest, s) {
                Some(job) => {
                    self.jobs.push_back(job);
                    self.jobs.len() - 1
                }
                None => return Ok(()),
            },
        };
        // Served in turn.
        let Some(mut job) = self.jobs.remove(at) else {
            return Ok(());
        };
        let home = self.line(Some(job.line)).or_else(|| self.line(None));
        let other = self.line(None);
        let (Some(home), Some(other)) = (home, other) else {
            self.jobs.push_back(job);
            return Ok(());
        };
        let wish = ask::next(&mut self.rng, &mut job, rest, &mut self.serial);
        job.due = now + ask::pause(&mut self.rng, &job);
        if let Some((mut args, elsewhere)) = wish {
            let at = if elsewhere { other } else { home };
            job.sent(&mut args, &self.lines[at]);
            self.jobs.push_back(job);
            self.ask(at, args, s, to)?;
        } else {
            self.jobs.push_back(job);
        }
        self.forget(s);
        Ok(())
    }
}

fn out_code(out: &Out) -> &str {
    match out {
        Out::Error(text) => text.split(' ').next().unwrap_or_default(),
        _ => "",
    }
}

/// What is left of a hold when nobody has it in mind any more.
fn held(key: &str, job: &Job) -> Held {
    Held {
        key: key.to_owned(),
        owner: job.owner.clone(),
        mode: job.mode.clone(),
        lease: job.lease,
        watched: job.watched,
    }
}

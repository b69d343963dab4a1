//! A program that uses its client: it asks for locks, holds them, looks whether it still does,
//! and gives them back.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use fastrand::Rng;
use rlock_torture::saw::Ask;
use serde_json::{json, Value};

use crate::asked::Asked;
use crate::driver::Driver;
use crate::locks;
use crate::sticky;
use crate::way;

/// A lease that is longer than it may take until a client knows of a loss, ms.
const LONG: u64 = 5_000;

pub struct Player {
    pub driver: Arc<Driver>,
    pub number: usize,
    /// It holds for long, what few ask for.
    pub quiet: bool,
    /// Of the driver's process that it talks to.
    pub life: u32,
    pub rng: Rng,
    pub stop: Arc<AtomicBool>,
}

impl Player {
    pub fn play(mut self) {
        let mut count = 0_u64;
        while !self.stop.load(SeqCst) {
            count += 1;
            let hold = format!("{}.{}.{count}", self.driver.number, self.number);
            if !self.quiet && self.rng.u32(0..3) == 0 && self.driver.can("sticky") {
                self.uses(&sticky::name(&hold));
                continue;
            }
            match self.acquire(&hold) {
                Some(words) => {
                    self.driver.has(&hold, true);
                    self.hold(&hold, &words);
                }
                // Not to ask for nothing all the time.
                None => self.pause(10),
            }
        }
    }

    /// A few uses of a sticky lock, the most of them short.
    fn uses(&mut self, name: &str) {
        let key = *self.rng.choice(&locks::STICKY).unwrap_or(&"x0");
        for number in 0..self.rng.u32(1..6) {
            let hold = format!("{name}.{number}");
            let mut words = sticky::words(key, self.driver.patience);
            (words["sticky"], words["token"]) = (true.into(), self.rng.bool().into());
            let done = self.driver.ask("acquire", &hold, words).finish();
            self.life = done.life;
            if done.out.get("ok").is_none() {
                return self.pause(10);
            }
            self.driver.has(&hold, true);
            match self.rng.u32(0..10) {
                0 => self.look(&hold, 2000),
                1..4 => self.pause(8),
                _ => (),
            }
            if self.rng.u32(0..4) == 0 {
                self.says("state", &hold, json!({}));
            }
            self.driver.has(&hold, false);
            self.says("release", &hold, json!({}));
            if self.rng.u32(0..8) == 0 {
                self.pause(300); // it is idle, and perhaps goes back
            }
        }
    }

    /// What it asked for, if it was granted.
    fn acquire(&mut self, hold: &str) -> Option<Value> {
        let words = self.draw();
        let mut asked = self.driver.ask("acquire", hold, words.clone());
        let done = match self.rng.u32(0..8) {
            0 => match asked.wait(Duration::from_millis(self.rng.u64(0..400))) {
                Some(done) => done,
                None => {
                    let which = json!({"acquire": asked.id});
                    let cancel = self.driver.ask_in(asked.life(), "cancel", hold, which);
                    cancel.map(Asked::finish);
                    asked.finish()
                }
            },
            _ => asked.finish(),
        };
        // Not always that which was there before: it may have been killed meanwhile.
        self.life = done.life;
        done.out.get("ok").map(|_| words)
    }

    /// Not longer than its driver has patience for, if that is short.
    fn lease(&mut self) -> u64 {
        match self.driver.patience {
            Some(most) => self.rng.u64(most * 6 / 10..most),
            None => self.rng.u64(1000..4000),
        }
    }

    fn draw(&mut self) -> Value {
        let lease = self.lease();
        let rng = &mut self.rng;
        let mut words = match self.quiet {
            true => json!({"key": rng.choice(locks::QUIET)}),
            false => locks::draw(rng),
        };
        if rng.u32(0..8) > 0 {
            words["wait"] = (rng.u64(1..55) * rng.u64(1..55)).into();
        }
        words["lease"] = lease.into();
        if self.quiet && self.driver.patience.is_none() && rng.u32(0..3) == 0 {
            words["lease"] = (3 * LONG).into();
            words["key"] = (*rng
                .choice(&locks::QUIET[..locks::THROWN_OUT])
                .unwrap_or(&"q0"))
            .into();
        }
        if rng.u32(0..5) < 2 {
            words["watchdog"] = false.into();
        } else if rng.u32(0..6) == 0 {
            words["max"] = rng.u64(200..1500).into();
        }
        if rng.u32(0..6) == 0 {
            words["job"] = format!("{}", rng.u32(0..2)).into();
        }
        words
    }

    fn hold(&mut self, hold: &str, words: &Value) {
        let again;
        let hold = match self.rng.u32(0..4) {
            0 if !self.quiet && way::can(words) && self.driver.can("give_way") => {
                match self.gives_way(hold, words) {
                    Some(name) => again = name,
                    None => return,
                }
                &again
            }
            _ => hold,
        };
        let plain = words["watchdog"] == false;
        let long = words["lease"].as_u64() > Some(LONG);
        match self.rng.u32(0..40) {
            0..34 if self.quiet && long => self.look_for(hold, 2 * LONG),
            0..34 if self.quiet => self.look(hold, 3000),
            0..28 => self.pause(8),
            28..34 => self.look(hold, 400),
            34 | 35 => {
                if self.says("again", hold, json!({})) {
                    self.look(hold, 60);
                    self.says("release", hold, json!({}));
                    self.look(hold, 60);
                }
            }
            36 | 37 if plain => {
                let lease = self.lease();
                self.says("renew", hold, json!({"lease": lease}));
                self.look(hold, 300);
            }
            // Until it has lost it, which is when its lease ends.
            _ if plain || !words["max"].is_null() => self.look(hold, 9000),
            _ => self.look(hold, 100),
        }
        if self.rng.bool() {
            self.says("state", hold, json!({}));
        }
        self.driver.has(hold, false);
        self.says("release", hold, json!({}));
        if self.rng.u32(0..6) == 0 {
            // A second release does nothing.
            self.says("release", hold, json!({}));
        }
    }

    /// If somebody waits for it, or soon does. Its name then; none: it is over.
    fn gives_way(&mut self, hold: &str, words: &Value) -> Option<String> {
        let mut name = hold.to_owned();
        for _ in 0..self.rng.u32(1..4) {
            let within = self.rng.u64(0..200);
            self.says("wanted", &name, json!({"within": within}));
            let next = way::next(&name);
            let mut words = words.clone();
            (words["wait"], words["least"]) = (self.rng.u64(100..2500).into(), 0.into());
            words["next"] = next.as_str().into();
            self.driver.has(&name, false);
            let said = self.asks("give_way", &name, words)?;
            let gave = said.out["ok"]["gave"].as_bool()?;
            if gave {
                name = next;
            }
            self.driver.has(&name, true);
        }
        Some(name)
    }

    /// Looks again and again whether it has it still, at most for so many ms.
    fn look(&mut self, hold: &str, most: u64) {
        let time = self.rng.u64(0..=most);
        self.look_for(hold, time);
    }

    fn look_for(&mut self, hold: &str, time: u64) {
        let step = 10 + time / 12;
        for _ in 0..time / step {
            self.pause(step * 2);
            let state = self.asks("state", hold, json!({}));
            let has = state.is_some_and(|state| state.out["ok"]["lost"].is_null());
            if !has || self.stop.load(SeqCst) {
                return;
            }
        }
    }

    fn pause(&mut self, most: u64) {
        sleep(Duration::from_millis(self.rng.u64(0..=most)));
    }

    /// None: the process that knew the hold is dead.
    fn asks(&self, what: &str, hold: &str, words: Value) -> Option<Ask> {
        let asked = self.driver.ask_in(self.life, what, hold, words);
        asked.map(Asked::finish)
    }

    fn says(&self, what: &str, hold: &str, words: Value) -> bool {
        let said = self.asks(what, hold, words);
        said.is_some_and(|ask| ask.out.get("ok").is_some())
    }
}

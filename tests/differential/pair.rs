//! Two servers on which the same steps are taken.

use std::collections::BTreeMap;
use std::time::Instant;

use redis::Value;

use super::memory::judged_by_memory;
use super::side::{Language, Said, Side};
use super::state::State;
use super::step::{keys_of, line, shown, Bytes, Step, Words};
use crate::support::{eventually, now_ms, poll, BOUND};

pub struct Pair {
    sides: [Side; 2],
    state: State,
    /// Time has passed, and nobody has looked since.
    unlooked: bool,
    /// Steps after which dead readers were left on one server.
    pub left_overs: usize,
    /// What lock commands were answered, and messages, how often.
    pub met: BTreeMap<String, usize>,
}

/// In what the servers differ after one of the steps.
#[derive(Debug)]
pub struct Difference {
    pub at: usize,
    pub what: String,
}

/// The surroundings of a sequence of steps.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    pub resp3: bool,
    /// Off: run-out keys stay until somebody touches them.
    pub server_expires: bool,
}

impl Pair {
    pub fn start(languages: [Language; 2]) -> Self {
        Self {
            sides: languages.map(Side::start),
            state: State::default(),
            unlooked: false,
            left_overs: 0,
            met: BTreeMap::new(),
        }
    }

    pub fn alive(&self) {
        self.sides.iter().for_each(Side::alive);
    }

    /// Takes the steps on two empty servers, until they differ.
    pub fn run(&mut self, setting: Setting, steps: &[Step]) -> Result<(), Difference> {
        let before = std::mem::take(&mut self.state);
        self.left_overs += before.left_overs;
        for side in &mut self.sides {
            side.begin(setting.resp3, setting.server_expires);
        }
        for (at, step) in steps.iter().enumerate() {
            self.state.step = at;
            self.take(step).map_err(|what| Difference { at, what })?;
        }
        self.pass(true).map_err(|what| Difference {
            at: steps.len().saturating_sub(1),
            what: format!("after the last step: {what}"),
        })
    }

    fn take(&mut self, step: &Step) -> Result<(), String> {
        if let Step::Pass { look } = step {
            return self.pass(*look);
        }
        self.pass(true)?;
        if let Step::Foreign { changes, .. } = step {
            if self.unlooked {
                self.look()?;
            }
            // What is left of dead readers on one server would grow into more.
            if changes.iter().any(|lock| self.state.has_left_overs(lock)) {
                return Ok(());
            }
        }
        self.unlooked = false;
        self.remove_orphans();
        // Whoever finds a reader dead tells of it.
        self.state.excuses.changed(self.state.left_over.iter());
        if let Step::Lock(words) = step {
            self.state.excuses.noticed(keys_of(words), self.state.step);
        }
        let [one, other] = self.ask(step);
        if let Step::Foreign { changes, .. } = step {
            let by_memory = judged_by_memory([&one.keys, &other.keys], &self.state.keys[0]);
            if !by_memory.is_empty() {
                return self.set_right(changes, by_memory);
            }
        }
        self.judge(step, one, other)?;
        match step {
            Step::Foreign { .. } => self.settle(),
            _ => Ok(()),
        }
    }

    /// What both servers say to a step, and to RLOCK.INFO of its lock behind it.
    fn ask(&mut self, step: &Step) -> [Said; 2] {
        let mut counts = [0; 2];
        let begin = Instant::now();
        for (at, side) in self.sides.iter_mut().enumerate() {
            let is_asked = match step {
                Step::Lock(_) | Step::Foreign { .. } => true,
                Step::Refused(_) => side.language == Language::Library,
                Step::Aside(_) => at == 1,
                Step::Pass { .. } => false,
            };
            let words = Some(step.words()).filter(|_| is_asked);
            let words = words.map(|words| match step {
                Step::Lock(_) | Step::Refused(_) => side.in_its_words(words),
                _ => words.to_vec(),
            });
            let view = step.lock().map(|lock| side.in_its_words(&view(lock)));
            let commands: Vec<Words> = words.into_iter().chain(view).collect();
            counts[at] = commands.len();
            side.send(&commands);
        }
        let said = [0, 1].map(|at| self.sides[at].hear(counts[at]));
        self.state.lasted(begin);
        said
    }

    /// The module acts on what it heard once the command is over.
    fn settle(&mut self) -> Result<(), String> {
        match self.state.soon {
            Some(_) => Ok(()),
            None => self.look(),
        }
    }

    /// Removes the keys that the servers need not judge alike.
    fn set_right(&mut self, changes: &[Bytes], by_memory: Vec<Bytes>) -> Result<(), String> {
        let words = [vec![b"DEL".to_vec()], by_memory.clone()].concat();
        for side in &mut self.sides {
            side.send(std::slice::from_ref(&words));
        }
        let [one, other] = [0, 1].map(|at| self.sides[at].hear(1));
        let changes = [changes.to_vec(), by_memory].concat();
        changes.iter().for_each(|key| self.state.known.change(key));
        self.state.excuses.changed(changes.iter());
        self.state.orphaned([&one.keys, &other.keys], 0);
        self.same_messages(&one, &other)?;
        self.state.same_keys([one.keys, other.keys])?;
        self.settle()
    }

    /// Lease keys that one server has removed, for their reader is gone, must not
    /// stand in the way of another's on the other server.
    fn remove_orphans(&mut self) {
        let orphans = &self.state.orphans;
        let mut words = vec![b"DEL".to_vec()];
        words.extend(self.state.left_over.intersection(orphans).cloned());
        if words.len() > 1 {
            for side in &mut self.sides {
                side.ask(&words);
            }
        }
    }

    fn judge(&mut self, step: &Step, mut one: Said, mut other: Said) -> Result<(), String> {
        let lock = step.lock();
        let views = [&mut one, &mut other].map(|said| lock.and_then(|_| said.replies.pop()));
        for (_, text) in &one.messages {
            self.meet(format!("message {}", shown(text)));
        }
        match step {
            Step::Lock(words) => {
                self.meet(kind_of(&words[0], &one.replies[0]));
                self.state
                    .same_reply(words, [&one.replies[0], &other.replies[0]])?;
            }
            Step::Foreign { words, changes } => {
                changes.iter().for_each(|key| self.state.known.change(key));
                self.state.orphaned([&one.keys, &other.keys], 0);
                self.state.excuses.changed(changes.iter());
                let replies = [&one.replies[0], &other.replies[0]];
                self.state.same_foreign(words, replies)?;
            }
            Step::Refused(words) => {
                for reply in one.replies.iter().chain(&other.replies) {
                    if !is_refusal(reply, words) {
                        return Err(format!("{} was not refused: {reply:?}", line(words)));
                    }
                }
            }
            Step::Aside(_) | Step::Pass { .. } => {}
        }
        self.same_messages(&one, &other)?;
        self.state.soon_in([&one.keys, &other.keys]);
        let same = self.state.same_keys([one.keys, other.keys]);
        if self.state.soon.is_some() {
            // A lease may have ended between the two: judged when all are over.
            return Ok(());
        }
        same?;
        match (lock, views) {
            (Some(lock), [Some(a), Some(b)]) => self.state.same_view(&view(lock), [&a, &b]),
            _ => Ok(()),
        }
    }

    fn meet(&mut self, what: String) {
        *self.met.entry(what).or_insert(0) += 1;
    }

    /// Lets the leases end that end soon. With `look` both servers are looked at.
    fn pass(&mut self, look: bool) -> Result<(), String> {
        let Some(end) = self.state.soon.take() else {
            return Ok(());
        };
        self.state.time_passes(end);
        let permits_end = self.state.permits_end(end);
        let look = look || permits_end || !self.state.orphans.is_empty();
        eventually("the leases are over", || now_ms() > end);
        self.unlooked = !look;
        if !look {
            return Ok(());
        }
        // The module acts when the lease is over, but not in that very moment.
        let mut found = Err(String::new());
        let agreed = poll(BOUND, || {
            found = self.look().and_then(|()| self.has_ended_permits());
            found.is_ok().then_some(())
        });
        agreed.map_or(found, Ok)
    }

    /// Whether the module has ended the leases of permits that are over.
    fn has_ended_permits(&self) -> Result<(), String> {
        let modules = [0, 1].into_iter();
        let mut modules = modules.filter(|at| self.sides[*at].language == Language::Module);
        match modules.find_map(|at| self.state.dead_permits(at)) {
            Some(lock) => Err(format!("permits have run out, not ended: {}", shown(lock))),
            None => Ok(()),
        }
    }

    fn look(&mut self) -> Result<(), String> {
        for side in &mut self.sides {
            side.send(&[]);
        }
        let [one, other] = [0, 1].map(|at| self.sides[at].hear(0));
        self.same_messages(&one, &other)?;
        self.state.same_keys([one.keys, other.keys])
    }

    fn same_messages(&mut self, one: &Said, other: &Said) -> Result<(), String> {
        let messages = [one.messages.as_slice(), &other.messages];
        self.state.excuses.same(messages, self.state.step)
    }
}

/// How a lock is looked at.
fn view(lock: &Bytes) -> Words {
    vec![b"RLOCK.INFO".to_vec(), lock.clone()]
}

/// Whether the reply says which word of the request it refuses.
fn is_refusal(reply: &Value, words: &[Bytes]) -> bool {
    let Value::ServerError(error) = reply else {
        return false;
    };
    let text = error.details().unwrap_or_default();
    let says = |word: &Bytes| {
        let word = String::from_utf8_lossy(word).to_uppercase();
        match word.as_str() {
            "BLOCK" | "WATCHDOG" | "IFTOKEN" => text.starts_with(&format!("{word} ")),
            "*" => text.starts_with("owner * "),
            _ => false,
        }
    };
    error.code() == "ERR" && words.iter().any(says)
}

/// A reply, as the summary counts it.
fn kind_of(name: &[u8], reply: &Value) -> String {
    let kind = match reply {
        Value::ServerError(error) => error.code().to_owned(),
        Value::Int(n @ 0..=9) => n.to_string(),
        Value::Int(_) => "number".to_owned(),
        Value::Nil => "null".to_owned(),
        _ => "more".to_owned(),
    };
    format!("{} {kind}", String::from_utf8_lossy(name).to_uppercase())
}

//! Waits at a server without the module: in one line for each lock and kind of request, of
//! which only the first tries. And the channels by which it hears when to.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::OnceLock;
use std::time::Duration;

use crate::clock::Time;
use crate::library::{is_near, prefixed};
use crate::request::{Mode, Request};

/// A line is kept for so long when nobody is in it, with its channels: a busy lock would have them
/// again and again.
const KEPT: Duration = Duration::from_secs(5);

/// Which line: its locks, and how they are asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Kind {
    keys: Vec<String>,
    mode: char,
}

impl Kind {
    pub fn of(request: &Request) -> Self {
        let keys = request.keys.clone();
        let mode = match request.mode {
            Mode::Plain => 'x',
            Mode::Read => 'r',
            Mode::Write => 'w',
            Mode::Permits { .. } => 'p',
        };
        Self { keys, mode }
    }

    pub fn is_of_permits(&self) -> bool {
        self.mode == 'p'
    }

    /// Several locks have no queue.
    pub fn has_places(&self) -> bool {
        self.keys.len() == 1
    }

    /// On which it is said that the lock, or one of them, may be free. Of permits nothing is said
    /// but to who has a place.
    fn channels(&self) -> Vec<(&String, String)> {
        let prefix = match self.mode {
            'p' => return Vec::new(),
            'x' => "redisson_lock__channel",
            _ => "redisson_rwlock",
        };
        let keys = self.keys.iter();
        keys.map(|key| (key, prefixed(prefix, key))).collect()
    }
}

#[derive(Default)]
struct Line {
    /// Names its place.
    name: String,
    waits: VecDeque<u64>,
    /// It has a place in the lock's queue.
    has_place: bool,
    /// Others have places there, as the last reply has said: without one nobody gets the lock.
    in_crowd: bool,
    channels: HashSet<String>,
    /// When it goes.
    until: Option<Time>,
}

/// Those of one connection.
pub(super) struct Lines {
    /// In a cluster a channel can be heard at the node of its own slot.
    in_cluster: bool,
    lines: HashMap<Kind, Line>,
    heard: HashMap<String, HashSet<Kind>>,
}

/// When somebody has left a line.
#[derive(Default)]
pub(super) struct Left {
    /// Who is the first now, if that was it.
    pub next: Option<u64>,
    /// Nobody is there any more who could need its place.
    pub place: bool,
}

/// What is to be said to the server.
#[derive(Default)]
pub(super) struct Changes {
    pub subscribe: Vec<String>,
    pub unsubscribe: Vec<String>,
}

impl Lines {
    pub fn new(in_cluster: bool) -> Self {
        Self {
            in_cluster,
            lines: HashMap::new(),
            heard: HashMap::new(),
        }
    }

    /// The name of the place of a line: each has its own.
    pub fn place(&self, kind: &Kind) -> Option<&String> {
        self.lines.get(kind).map(|line| &line.name)
    }

    /// Whether it is the first there. A new line has the place that its first wait had before, at
    /// another connection.
    pub fn enter(&mut self, kind: &Kind, id: u64, stands_as: &OnceLock<String>) -> bool {
        if !self.lines.contains_key(kind) {
            let fresh = || uuid::Uuid::new_v4().to_string();
            let line = Line {
                name: stands_as.get_or_init(fresh).clone(),
                ..Line::default()
            };
            self.lines.insert(kind.clone(), line);
        }
        self.lines.get_mut(kind).is_some_and(|line| {
            stands_as.get_or_init(|| line.name.clone());
            line.until = None;
            if !line.waits.contains(&id) {
                line.waits.push_back(id);
            }
            line.waits.front() == Some(&id)
        })
    }

    pub fn leave(&mut self, kind: &Kind, id: u64, now: Time) -> Left {
        let Some(line) = self.lines.get_mut(kind) else {
            return Left::default();
        };
        let was_first = line.waits.front() == Some(&id);
        line.waits.retain(|&other| other != id);
        let next = line.waits.front().copied();
        let mut left = Left {
            next: next.filter(|_| was_first),
            place: false,
        };
        if next.is_none() {
            left.place = std::mem::take(&mut line.has_place);
            if line.channels.is_empty() {
                self.lines.remove(kind);
            } else {
                let kept = if kind.has_places() {
                    KEPT
                } else {
                    Duration::ZERO
                };
                line.until = Some(now + kept);
            }
        }
        left
    }

    /// What the server says of the queue: how many places are before the own one; without one -1
    /// less the number of others. Whether it has a place.
    pub fn placed(&mut self, kind: &Kind, ahead: i64) -> bool {
        if let Some(line) = self.lines.get_mut(kind) {
            line.has_place = ahead >= 0;
            // The head does not know whether others are behind it.
            if ahead != 0 {
                line.in_crowd = ahead != -1;
            }
        }
        ahead >= 0
    }

    pub fn is_in_crowd(&self, kind: &Kind) -> bool {
        self.lines.get(kind).is_some_and(|line| line.in_crowd)
    }

    /// The place is gone, with the lock or with the node.
    pub fn without_place(&mut self, kind: &Kind) {
        if let Some(line) = self.lines.get_mut(kind) {
            line.has_place = false;
        }
    }

    pub fn all_in(&self, kind: &Kind) -> Vec<u64> {
        let waits = self.lines.get(kind).map(|line| &line.waits);
        waits.into_iter().flatten().copied().collect()
    }

    pub fn many_in(&self, kind: &Kind) -> usize {
        self.lines.get(kind).map_or(0, |line| line.waits.len())
    }

    /// The first of each line that hears this channel.
    pub fn firsts(&self, channel: &str) -> Vec<u64> {
        let kinds = self.heard.get(channel).into_iter().flatten();
        let lines = kinds.filter_map(|kind| self.lines.get(kind));
        lines
            .filter_map(|line| line.waits.front().copied())
            .collect()
    }

    pub fn kinds(&self, channel: &str) -> Vec<Kind> {
        let kinds = self.heard.get(channel).into_iter().flatten();
        kinds.cloned().collect()
    }

    /// Who has a place hears of that alone, so that a release wakes one process.
    pub fn hear(&mut self, kind: &Kind) -> Changes {
        let Some(line) = self.lines.get_mut(kind) else {
            return Changes::default();
        };
        let mut channels = Vec::new();
        if let [key] = &kind.keys[..] {
            let lock = prefixed("redisson_lock__channel", key);
            channels.push((key, format!("{lock}:{}", line.name)));
        }
        if !line.has_place {
            channels.extend(kind.channels());
        }
        let here = channels
            .into_iter()
            .filter(|(key, _)| !self.in_cluster || is_near(key));
        let wanted: HashSet<String> = here.map(|(_, channel)| channel).collect();
        let before = std::mem::replace(&mut line.channels, wanted.clone());
        let mut changes = Changes::default();
        for channel in wanted.difference(&before) {
            let hear = self.heard.entry(channel.clone()).or_default();
            if hear.is_empty() {
                changes.subscribe.push(channel.clone());
            }
            hear.insert(kind.clone());
        }
        for channel in before.difference(&wanted) {
            self.hear_no_more(kind, channel, &mut changes);
        }
        changes
    }

    fn hear_no_more(&mut self, kind: &Kind, channel: &str, changes: &mut Changes) {
        if let Some(hear) = self.heard.get_mut(channel) {
            hear.remove(kind);
            if hear.is_empty() {
                self.heard.remove(channel);
                changes.unsubscribe.push(channel.into());
            }
        }
    }

    pub fn wake(&self) -> Option<Time> {
        self.lines.values().filter_map(|line| line.until).min()
    }

    /// Lines in which nobody has been for a while go.
    pub fn tidy(&mut self, now: Time) -> Changes {
        let mut changes = Changes::default();
        let over = |line: &Line| line.until.is_some_and(|until| until <= now);
        let kinds = self.lines.iter().filter(|(_, line)| over(line));
        let kinds: Vec<Kind> = kinds.map(|(kind, _)| kind.clone()).collect();
        for kind in kinds {
            let line = self.lines.remove(&kind).unwrap_or_default();
            for channel in line.channels {
                self.hear_no_more(&kind, &channel, &mut changes);
            }
        }
        changes
    }
}

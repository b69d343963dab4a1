//! What is known of both servers since they were emptied, and whether they agree.

use std::collections::BTreeSet;
use std::time::Instant;

use redis::Value;

use super::messages::Excuses;
use super::replies::{self, Holds, Two};
use super::snapshot::{lease_prefix, tagged, Dead, May, Snapshot, COUNTER};
use super::step::{keys_of, line, shown, Bytes, Words};
use super::tokens::{Known, Since, Tokens};
use crate::support::now_ms;

/// A lease that ends within so many ms is waited for before the next step. All
/// others are far longer, so that none ends by itself.
const SOON_MS: i64 = 20_000;

/// What the rounding of two clocks to ms adds to a difference.
const ROUNDING_MS: i64 = 2;

#[derive(Default)]
pub struct State {
    pub step: usize,
    tokens: [Tokens; 2],
    pub known: Known,
    /// The longest that both were ever asked for: so much apart the times may be
    /// that they reckon from.
    slack: i64,
    /// When the last lease ends that ends soon.
    pub soon: Option<i64>,
    pub keys: [Snapshot; 2],
    /// Keys that differ, or soon may, by what is left of dead readers.
    pub left_over: BTreeSet<Bytes>,
    /// After how many steps some did.
    pub left_overs: usize,
    /// Read/write locks in which readers died: until they are free the hash may live
    /// longer than its readers on one server.
    stretched: BTreeSet<Bytes>,
    /// Lease keys whose reader went by no doing of rlock's.
    pub orphans: BTreeSet<Bytes>,
    pub excuses: Excuses,
}

impl State {
    /// Both servers have been asked for something, from this moment on.
    pub fn lasted(&mut self, begin: Instant) {
        let ms = i64::try_from(begin.elapsed().as_millis()).expect("not that long");
        self.slack = self.slack.max(ms + ROUNDING_MS);
    }

    pub fn has_left_overs(&self, lock: &Bytes) -> bool {
        let prefix = lease_prefix(lock);
        let mut names = self.left_over.iter();
        names.any(|name| name == lock || name.starts_with(&prefix))
    }

    /// Readers may have gone by no doing of rlock's: by somebody's command, or by
    /// leases that end until then.
    pub fn orphaned(&mut self, keys: [&Snapshot; 2], until: i64) {
        let orphans = keys.iter().flat_map(|keys| keys.orphans(until));
        self.orphans.extend(orphans);
    }

    pub fn soon_in(&mut self, keys: [&Snapshot; 2]) {
        let before = now_ms() + SOON_MS;
        let ends = keys.iter().filter_map(|keys| keys.last_end_before(before));
        self.soon = ends.max();
    }

    /// Whether leases of permits end until then.
    pub fn permits_end(&self, end: i64) -> bool {
        let mut keys = self.keys.iter();
        keys.any(|keys| keys.dead_permits(end + 1).next().is_some())
    }

    /// A lock in which permits have run out, and which nobody has changed by hand.
    pub fn dead_permits(&self, side: usize) -> Option<&Bytes> {
        let mut dead = self.keys[side].dead_permits(now_ms());
        dead.find(|lock| !self.known.may_differ(&tagged(lock)))
    }

    /// The leases that end until then end.
    pub fn time_passes(&mut self, end: i64) {
        let keys = std::mem::take(&mut self.keys);
        let ending = keys.iter().flat_map(|keys| keys.locks_ending(end));
        self.excuses.ending(ending);
        let outlive = keys.iter().flat_map(|keys| keys.outliving_readers(end));
        self.stretched.extend(outlive.cloned());
        self.orphaned([&keys[0], &keys[1]], end);
        self.keys = keys;
    }

    pub fn same_keys(&mut self, keys: [Snapshot; 2]) -> Result<(), String> {
        let [one, other] = &keys;
        if let Some(lock) = keys.iter().find_map(Snapshot::short_pool) {
            return Err(format!(
                "more permits are held than are out: {}",
                shown(lock)
            ));
        }
        let now = now_ms();
        let dead = keys.iter().flat_map(|keys| keys.with_dead(now));
        let dead: BTreeSet<Bytes> = dead.cloned().collect();
        self.stretched.extend(dead.iter().cloned());
        let is_there = |lock: &Bytes| keys.iter().any(|keys| keys.0.contains_key(lock));
        self.stretched.retain(is_there);
        let may = May {
            slack: self.slack,
            stretched: &self.stretched,
            same_token: &|name: &Bytes, texts: [&Bytes; 2]| self.same_count(name, texts),
        };
        let mut found = one.differences(other, &may);
        let left_over = found.keys().cloned().chain(dead).collect();
        let differed = !found.is_empty();
        if differed {
            let dead = Dead {
                now,
                orphans: &self.orphans,
                recount: &|lock| self.known.may_differ(&tagged(lock)),
            };
            let cleaned = [one, other].map(|keys| keys.without_dead(&dead));
            found = cleaned[0].differences(&cleaned[1], &may);
        }
        self.left_overs += usize::from(differed && found.is_empty());
        self.left_over = left_over;
        self.keys = keys;
        match found.is_empty() {
            true => Ok(()),
            false => Err(found.into_values().collect::<Vec<_>>().join("\n")),
        }
    }

    /// Whether a counter of tokens says the same on both.
    fn same_count(&self, name: &Bytes, texts: [&Bytes; 2]) -> bool {
        let lock = &name[COUNTER.len()..];
        let told = |at: usize| {
            let text = std::str::from_utf8(texts[at]).unwrap_or_default();
            let number = text.parse().ok();
            number.map_or(Vec::new(), |number| self.tokens[at].look_near(lock, number))
        };
        let [one, other] = [told(0), told(1)];
        // One may have taken a hold for the one it knew, the other not.
        texts[0] == texts[1]
            || self.known.may_differ(lock)
            || one.iter().any(|meaning| other.contains(meaning))
    }

    /// Whether two servers gave the same replies to somebody's command.
    pub fn same_foreign(&self, words: &Words, replies: Two<'_>) -> Result<(), String> {
        let [one, other] = replies;
        let same = match (one, other) {
            (Value::Int(a), Value::Int(b)) if words[0] == b"INCR" => {
                let texts = [a, b].map(|number| number.to_string().into_bytes());
                self.same_count(&words[1], [&texts[0], &texts[1]])
            }
            _ => one == other,
        };
        match same {
            true => Ok(()),
            false => Err(format!("{}: {one:?}\n  but {other:?}", line(words))),
        }
    }

    pub fn same_reply(&mut self, words: &Words, replies: Two<'_>) -> Result<(), String> {
        let differ = |what: String| format!("{}: {what}", line(words));
        if replies::same_errors(replies, words).map_err(differ)? {
            return Ok(());
        }
        if words[0].eq_ignore_ascii_case(b"RLOCK.INFO") {
            return self.same_view(words, replies);
        }
        if let ([_, key, owner, ..], true, [Value::Int(a), Value::Int(b)]) =
            (words.as_slice(), fences(words), replies)
        {
            return self.same_fence((key, owner), [*a, *b]).map_err(differ);
        }
        match (acquired(words), replies) {
            (Some((keys, owner)), [Value::Int(a), Value::Int(b)]) => {
                self.same_tokens(keys, owner, [*a, *b]).map_err(differ)
            }
            (_, [a, b]) if a == b => Ok(()),
            (_, [a, b]) => Err(differ(format!("{a:?}\n  but {b:?}"))),
        }
    }

    /// Whether a counter that was raised to the token of a hold says the same on both.
    fn same_fence(&mut self, of: (&Bytes, &Bytes), got: [i64; 2]) -> Result<(), String> {
        let (key, owner) = of;
        if !self.known.has(key, owner) {
            self.known.change(key);
            return Ok(());
        }
        let texts = got.map(|number| number.to_string().into_bytes());
        let name = [COUNTER, &tagged(key)].concat();
        if self.same_count(&name, [&texts[0], &texts[1]]) {
            return Ok(());
        }
        // Beside a counter that somebody has set the one's token may be greater, the other's not.
        let left = |side: usize| self.keys[side].number(&name) == Some(got[side]);
        let is_its = |side: usize| left(side) || self.tokens[side].look(key, got[side]).is_some();
        if !is_its(0) || !is_its(1) || left(0) == left(1) {
            return Err(format!("counter {} but {}", got[0], got[1]));
        }
        self.known.change(key);
        Ok(())
    }

    fn same_tokens(&mut self, keys: &[Bytes], owner: &Bytes, got: [i64; 2]) -> Result<(), String> {
        let one = self.take_token(0, keys, got[0])?;
        let other = self.take_token(1, keys, got[1])?;
        if one != other && keys.iter().all(|key| self.known.has(key, owner)) {
            return Err(format!(
                "token {} of step {}\n  but {} of step {}",
                got[0], one.0, got[1], other.0
            ));
        }
        // Of several keys some may have been the owner's, with tokens of their own.
        if let ([key], true) = (keys, one == other && one.0 == self.step) {
            self.known.learn(key, owner);
        }
        Ok(())
    }

    /// What a token tells that a server gave for holds of these keys. A new one is
    /// above their counters, as they were.
    fn take_token(&mut self, side: usize, keys: &[Bytes], token: i64) -> Result<Since, String> {
        let since = self.tokens[side].take(token, keys, self.step)?;
        let counters = keys.iter().map(|key| [COUNTER, &tagged(key)].concat());
        let counted = counters.filter_map(|name| self.keys[side].number(&name));
        match counted.max() {
            Some(most) if since.0 == self.step && token <= most => {
                Err(format!("token {token} is not above its counter, {most}"))
            }
            _ => Ok(since),
        }
    }

    /// Whether RLOCK.INFO tells the same.
    pub fn same_view(&self, words: &Words, views: Two<'_>) -> Result<(), String> {
        let differ = |what: String| format!("{}: {what}", line(words));
        if replies::same_errors(views, words).map_err(differ)? {
            return Ok(());
        }
        let [_, key, ..] = words.as_slice() else {
            return Err(differ("no error".to_owned()));
        };
        let [one, other] = &self.tokens;
        let holds = Holds {
            slack: self.slack,
            known: &|owner| self.known.has(key, owner),
            changed: self.known.may_differ(&tagged(key)),
            same_token: &|[a, b]| one.look(key, a) == other.look(key, b),
        };
        replies::info(views, &holds).map_err(differ)
    }
}

/// Whether it raises a counter.
fn fences(words: &Words) -> bool {
    words[0].eq_ignore_ascii_case(b"RLOCK.RENEW") && says(words, b"FENCE")
}

/// Whether this is among its keywords.
fn says(words: &[Bytes], keyword: &[u8]) -> bool {
    let mut keywords = words.iter().skip(4);
    keywords.any(|word| word.eq_ignore_ascii_case(keyword))
}

/// The keys and the owner of a command that acquires, or gives a hold a new token.
fn acquired(words: &Words) -> Option<(&[Bytes], &Bytes)> {
    let keys = keys_of(words);
    match words[0].to_ascii_uppercase().as_slice() {
        b"RLOCK.ACQUIRE" => Some((keys, words.get(2)?)),
        b"RLOCK.RENEW" if says(words, b"TOKEN") => Some((keys, words.get(2)?)),
        b"RLOCK.MACQUIRE" => Some((keys, words.get(2 + keys.len())?)),
        _ => None,
    }
}

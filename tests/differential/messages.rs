//! In what the messages of two servers differ.
//!
//! One thing may: the module tells waiters of a lock whose lease ended, for it watches
//! the clock; the library does nothing until it is called. So after time has passed a
//! server may publish on the channels of the locks on which something ended, and the
//! other need not. The same goes for locks that somebody changed behind rlock's back,
//! and for those where somebody finds a reader dead.

use std::collections::BTreeMap;

use super::side::Message;
use super::snapshot::tagged;
use super::step::{shown, Bytes};

/// For so many steps after a call on a lock a server may tell of what it found there.
const STEPS: usize = 2;

/// One to all, one to the head of a fair lock's queue.
const MESSAGES: usize = 2;

/// The channels on which a server may publish by itself.
#[derive(Default)]
pub struct Excuses(BTreeMap<Bytes, Excuse>);

struct Excuse {
    /// How often each server may.
    left: [usize; 2],
    until: Until,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    /// It may come at any time: a server's timer is late when the machine is busy.
    Told,
    /// It is found out by the next call on that lock.
    Noticed,
    /// This step, somewhat beyond that call.
    Step(usize),
}

impl Excuses {
    /// Leases end on these locks.
    pub fn ending<'a>(&mut self, locks: impl Iterator<Item = &'a Bytes>) {
        self.add(locks, Until::Told);
    }

    /// Somebody changed these locks, or a reader died there.
    pub fn changed<'a>(&mut self, locks: impl Iterator<Item = &'a Bytes>) {
        self.add(locks, Until::Noticed);
    }

    fn add<'a>(&mut self, locks: impl Iterator<Item = &'a Bytes>, until: Until) {
        for channel in locks.flat_map(channels) {
            let excuse = self.0.entry(channel).or_insert(Excuse {
                left: [0; 2],
                until,
            });
            if until == Until::Told || excuse.until != Until::Told || excuse.left == [0; 2] {
                excuse.until = until;
            }
            excuse.left = [MESSAGES; 2];
        }
    }

    /// Both servers look at these locks in this step.
    pub fn noticed(&mut self, locks: &[Bytes], step: usize) {
        for channel in locks.iter().flat_map(channels) {
            if let Some(excuse) = self.0.get_mut(&channel) {
                if excuse.until == Until::Noticed {
                    excuse.until = Until::Step(step + STEPS);
                }
            }
        }
    }

    /// The excuse for a message on this channel.
    fn of(&mut self, channel: &Bytes) -> Option<&mut Excuse> {
        if self.0.contains_key(channel) {
            return self.0.get_mut(channel);
        }
        let is_of = |lock: &Bytes| channel.starts_with(&[lock, b":".as_slice()].concat());
        let mut all = self.0.iter_mut();
        all.find(|(lock, _)| is_of(lock)).map(|(_, excuse)| excuse)
    }

    /// Whether both published the same in this step, what is excused aside.
    pub fn same(&mut self, messages: [&[Message]; 2], step: usize) -> Result<(), String> {
        let [one, other] = messages.map(counted);
        for message in one.keys().chain(other.keys()) {
            let counts = [&one, &other].map(|all| all.get(message).copied().unwrap_or(0));
            let more = usize::from(counts[0] < counts[1]);
            let by = counts[0].abs_diff(counts[1]);
            let excuse = self.of(&message.0);
            let excuse = excuse.filter(|excuse| match excuse.until {
                Until::Told | Until::Noticed => true,
                Until::Step(last) => last >= step,
            });
            match excuse.filter(|excuse| excuse.left[more] >= by) {
                Some(excuse) => excuse.left[more] -= by,
                None if by == 0 => {}
                None => {
                    let [channel, text] = [&message.0, &message.1].map(|part| shown(part));
                    let [a, b] = counts;
                    return Err(format!("message {text} on {channel}: {a} times, but {b}"));
                }
            }
        }
        Ok(())
    }
}

/// The channels on which a lock's waiters are told, but for that of the head of a fair
/// lock's queue, which is called after the first of them.
fn channels(lock: &Bytes) -> [Bytes; 2] {
    ["redisson_lock__channel:", "redisson_rwlock:"]
        .map(|kind| [kind.as_bytes(), &tagged(lock)].concat())
}

/// Messages as a bag: those of different channels have no order among them.
fn counted(messages: &[Message]) -> BTreeMap<Message, usize> {
    let mut counts = BTreeMap::new();
    for message in messages {
        *counts.entry(message.clone()).or_insert(0) += 1;
    }
    counts
}

//! Who came first is served first: no request is granted while an earlier one waits
//! for the same lock, unless both only read.
//!
//! Looked at only where nothing allows another order: the owner asks for this lock
//! alone and for the first time (no nesting, no upgrade, no part in a deadlock), and
//! the lock is never asked for together with others.

use std::collections::HashMap;

use crate::answers::unblocked;
use crate::finding::{Finding, Findings};
use crate::past::{Asked, Lock, Past};
use crate::request::Verb;

pub fn check(past: &Past, found: &mut Findings) {
    let heard = Heard::new(past);
    let mut locks_of: HashMap<&str, usize> = HashMap::new();
    for owners in past.locks.values() {
        for owner in owners.keys() {
            *locks_of.entry(owner).or_default() += 1;
        }
    }
    for (lock, owners) in &past.locks {
        let all = owners.values().flatten();
        if all
            .clone()
            .any(|at| past.ops[*at].request.verb == Verb::Macquire)
        {
            continue;
        }
        let single = owners
            .iter()
            .filter(|(owner, _)| locks_of[owner.as_str()] == 1);
        let mut firsts: Vec<usize> = single.map(|(_, ops)| ops[0]).collect();
        firsts.retain(|at| past.ops[*at].request.verb == Verb::Acquire);
        firsts.sort_unstable();
        of_lock(past, &heard, lock, &firsts, found);
    }
}

fn of_lock(past: &Past, heard: &Heard, lock: &Lock, firsts: &[usize], found: &mut Findings) {
    let mut waiting: Vec<(u64, usize)> = Vec::new();
    for at in firsts {
        let later = &past.ops[*at];
        waiting.retain(|(_, one)| {
            past.ops[*one]
                .op
                .reply
                .is_some_and(|end| end > later.op.call)
        });
        if let Some(token) = later.token() {
            for (queued, one) in &waiting {
                let earlier = &past.ops[*one];
                let both_read = earlier.mode().goes_with(later.mode());
                if *queued >= later.op.call || both_read || earlier.server != later.server {
                    continue;
                }
                found.checked("order");
                if overtaken(past, earlier, later, token) {
                    found.add(Finding {
                        check: "order",
                        text: format!(
                            "{} waited for {} when {} asked for it, which was granted first",
                            earlier.owner, lock.1, later.owner
                        ),
                        key: Some(lock.clone()),
                        ops: vec![*one, *at],
                        from: earlier.op.call,
                        to: later.op.reply.unwrap_or(later.done),
                    });
                }
            }
        }
        if later.waits().is_some() && !later.op.behind {
            if let Some(queued) = heard.by(past, later) {
                waiting.push((queued, *at));
            }
        }
    }
}

/// Whether the later one surely had the lock before the earlier one's wait was over.
fn overtaken(past: &Past, earlier: &Asked, later: &Asked, token: i64) -> bool {
    if let Some(first) = earlier.token() {
        return token < first;
    }
    let timed_out = earlier.op.out == rlock_torture::history::Out::Null;
    let until = match earlier.waits() {
        Some(block) if timed_out && block > 0 => earlier.op.call + block,
        _ => return false,
    };
    // One that was sent away before may have read that later.
    let by_itself = |end| end >= until && !unblocked(past, earlier, end);
    earlier.op.reply.is_some_and(by_itself) && later.op.reply.is_some_and(|reply| reply < until)
}

/// When a server surely had read a request: once it has answered something that was
/// sent after it.
struct Heard {
    /// By server: times of calls, and the first reply to any call from then on.
    by_server: HashMap<u16, Vec<(u64, u64)>>,
}

impl Heard {
    fn new(past: &Past) -> Self {
        let mut by_server: HashMap<u16, Vec<(u64, u64)>> = HashMap::new();
        for ping in &past.pings {
            by_server
                .entry(ping.server)
                .or_default()
                .push((ping.call, ping.reply));
        }
        // One that came behind another of its connection may be read with that, before what
        // others had sent meanwhile: it tells nothing.
        let mut busy: HashMap<u32, u64> = HashMap::new();
        for asked in &past.ops {
            let until = busy.entry(asked.op.conn).or_default();
            let reply = asked.queued.or(asked.op.reply);
            if let Some(reply) = reply.filter(|_| *until < asked.op.call) {
                by_server
                    .entry(asked.server)
                    .or_default()
                    .push((asked.op.call, reply));
            }
            *until = reply.unwrap_or(asked.done).max(*until);
        }
        for all in by_server.values_mut() {
            all.sort_unstable();
            let mut first = u64::MAX;
            for (_, reply) in all.iter_mut().rev() {
                first = first.min(*reply);
                *reply = first;
            }
        }
        Self { by_server }
    }

    fn by(&self, past: &Past, asked: &Asked) -> Option<u64> {
        if asked.queued.is_some() || past.round.threads {
            return asked.queued;
        }
        let all = self.by_server.get(&asked.server)?;
        let next = all.partition_point(|(call, _)| *call <= asked.op.sent);
        let (_, reply) = all.get(next)?;
        // A server that is paused answers others, but puts off what might write.
        let mut faults = past.faults.iter();
        let put_off = faults.any(|fault| {
            let pauses = ["pause", "failover"].contains(&fault.kind.as_str());
            pauses && fault.begin <= *reply && fault.end >= asked.op.call
        });
        (!put_off).then_some(*reply)
    }
}

//! Fencing tokens: a hold that begins has a greater one than all that were given
//! before for its lock by this server, and than those by the clock that it gave for any other; a
//! nested one has that of the hold under way.

use std::collections::{BTreeMap, HashMap};

use rlock_torture::history::Out;

use crate::clocks::{came_from_ahead, tokens_fall};
use crate::finding::{Finding, Findings};
use crate::holds::{certain, Ends};
use crate::past::{Asked, Lock, Past};
use crate::request::{Mode, Verb};

pub fn check(past: &Past, found: &mut Findings) {
    rise(past, found);
    for ((db, key), owners) in &past.locks {
        let ends = Ends::new(past, *db, key);
        for ops in owners.values().filter(|ops| ops.len() > 1) {
            nested(past, &(*db, key.clone()), &ends, ops, found);
        }
    }
}

fn rise(past: &Past, found: &mut Findings) {
    let mut by_server: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
    let mut by_lock: BTreeMap<(u16, Lock), Vec<usize>> = BTreeMap::new();
    for at in firsts(past) {
        let asked = &past.ops[at];
        for key in &asked.request.keys {
            let lock = (asked.db, key.clone());
            by_lock.entry((asked.server, lock)).or_default().push(at);
        }
        if !may_be_lifted(past, asked) {
            by_server.entry(asked.server).or_default().push(at);
        }
    }
    // The others are among those by server.
    by_lock.retain(|_, all| all.iter().any(|at| may_be_lifted(past, &past.ops[*at])));
    for all in by_server.values().chain(by_lock.values()) {
        rise_in(past, all, found);
    }
}

/// Whether the lock's counter may be ahead of the clock: the server was started anew with one
/// that is behind, or the counter came from another. It lifts the tokens of its own lock.
fn may_be_lifted(past: &Past, asked: &Asked) -> bool {
    tokens_fall(past, 0, asked) || came_from_ahead(past, asked)
}

/// All of these, in the order of their calls.
fn rise_in(past: &Past, all: &[usize], found: &mut Findings) {
    let mut given: HashMap<i64, usize> = HashMap::new();
    // Those that were answered, by when; the greatest token of them.
    let mut answered: Vec<usize> = all.to_vec();
    answered.sort_by_key(|at| past.ops[*at].op.reply);
    let mut next = answered.into_iter().peekable();
    let mut greatest: Option<(i64, usize)> = None;
    for at in all {
        let (asked, token) = (&past.ops[*at], past.ops[*at].token().unwrap_or(0));
        while let Some(one) = next.next_if(|one| past.ops[*one].op.reply < Some(asked.op.call)) {
            greatest = greatest.max(past.ops[one].token().map(|token| (token, one)));
        }
        found.checked("tokens");
        let before = greatest.filter(|(other, _)| *other >= token);
        let twin = given.insert(token, *at).map(|one| (token, one));
        let fell = |one: usize| tokens_fall(past, past.ops[one].op.call, asked);
        if let Some((other, one)) = before.or(twin).filter(|(_, one)| !fell(*one)) {
            let first = asked.request.keys.first();
            found.add(Finding {
                check: "tokens",
                text: format!("token {token} was given after token {other}"),
                key: first.map(|key| (asked.db, key.clone())),
                ops: vec![one, *at],
                from: asked.op.call,
                to: asked.done,
            });
        }
    }
}

/// Requests that surely began a hold, for their owner had none on any of the locks, by
/// the time of their call.
fn firsts(past: &Past) -> Vec<usize> {
    // How many locks of a request its owner did not hold.
    let mut fresh: BTreeMap<usize, usize> = BTreeMap::new();
    for (lock, owners) in &past.locks {
        let brought = past.holds_brought(lock);
        for ops in owners.values() {
            fresh_in(past, ops, brought, &mut fresh);
        }
    }
    let whole = fresh.into_iter();
    whole
        .filter(|(at, count)| *count == past.ops[*at].request.keys.len())
        .map(|(at, _)| at)
        .collect()
}

/// Adds the requests of one owner for one lock that surely began a hold, before
/// `brought`.
fn fresh_in(past: &Past, ops: &[usize], brought: u64, fresh: &mut BTreeMap<usize, usize>) {
    let mut clean = true;
    let mut busy_until = 0;
    for at in ops {
        let asked = &past.ops[*at];
        if asked.done >= brought {
            break;
        }
        let ordered = asked.op.call >= busy_until;
        busy_until = busy_until.max(asked.done);
        let request = &asked.request;
        if request.acquires() && (asked.token().is_some() || asked.lost()) {
            // Each that is given more permits gets a new one.
            let more = asked.mode() == Mode::Permits && !request.once;
            if (more || (clean && ordered)) && asked.token().is_some() {
                *fresh.entry(*at).or_default() += 1;
            }
            clean = false;
        } else if request.verb == Verb::Release && asked.mode() == Mode::Plain {
            let over = asked.op.out == Out::Int(0) || asked.error("NOTHELD");
            let kept = !past.lossy(asked.op.call, asked.done);
            clean |= over && ordered && kept && request.if_token.is_none();
        }
    }
}

fn nested(past: &Past, lock: &Lock, ends: &Ends, ops: &[usize], found: &mut Findings) {
    let single = |at: usize| {
        let asked = &past.ops[at];
        asked.request.verb == Verb::Acquire && asked.mode() == Mode::Plain
    };
    let holds = certain(past, ends, ops);
    for at in ops.iter().filter(|at| single(**at)) {
        let asked = &past.ops[*at];
        let (Some(token), Some(reply)) = (asked.token(), asked.op.reply) else {
            continue;
        };
        let mut all = holds.iter();
        let outer = all.find(|hold| {
            hold.op != *at && single(hold.op) && hold.start <= asked.op.call && hold.end >= reply
        });
        let Some(outer) = outer.map(|hold| &past.ops[hold.op]) else {
            continue;
        };
        // After a restart or a change of roles the server does not know it any more.
        if past.bonds_cut(outer.op.call, reply) || outer.server != asked.server {
            continue;
        }
        found.checked("tokens");
        if outer.token() != Some(token) {
            found.add(Finding {
                check: "tokens",
                text: format!("a nested hold of {} got another token", asked.owner),
                key: Some(lock.clone()),
                ops: holds
                    .iter()
                    .map(|hold| hold.op)
                    .filter(|op| *op != *at)
                    .take(1)
                    .chain([*at])
                    .collect(),
                from: asked.op.call,
                to: reply,
            });
        }
    }
}

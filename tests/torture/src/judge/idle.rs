//! No lock lies idle while somebody waits for it, and nobody is refused a lock that
//! is free: a lease does not outlive its deadline, a watchdog hold its connection, and
//! a release hands on.
//!
//! For each lock all times are found in which anybody may have held it, by the most
//! that can be believed; what is left is certainly free.

use std::collections::{BTreeSet, HashMap};

use rlock_torture::history::Out;

use crate::clocks::lease_gone;
use crate::finding::{Finding, Findings};
use crate::past::{switches, Asked, Lock, Past, NEVER};
use crate::request::{Mode, Verb};

/// For how long a free lock may keep somebody waiting, us.
const IDLE: u64 = 600_000;
/// A grant reaches its client in less than that.
const UNDER_WAY: u64 = 100_000;
/// And surely in less than that, where many processes share a processor.
const UNDER_WAY_AT_MOST: u64 = 500_000;
/// What was found after a restart may be expired late by so much.
const FOUND_LATE: u64 = 3_000_000;

pub fn check(past: &Past, found: &mut Findings) {
    let mut faults = past.faults.iter();
    let swapped = faults.find(|fault| fault.kind == "swapdb");
    let last = swapped.map_or(NEVER, |fault| fault.begin);
    for locks in together(past) {
        if locks.iter().any(|lock| altered(past, lock)) {
            continue;
        }
        let mut windows: Vec<(u64, u64)> = Vec::new();
        let mut firsts: Vec<usize> = Vec::new();
        for owners in locks.iter().map(|lock| &past.locks[*lock]) {
            for ops in owners.values() {
                windows.extend(possible(past, ops, UNDER_WAY));
                firsts.push(ops[0]);
            }
        }
        let free = gaps(windows, last);
        firsts.sort_unstable();
        firsts.dedup();
        waiters(past, &free, &firsts, found);
        refused(past, &free, &firsts, found);
    }
    seen_held(past, last, found);
}

/// Locks that somebody asked for together: each of them may be kept idle for one who
/// waits for another, but not if all are free.
fn together(past: &Past) -> Vec<Vec<&Lock>> {
    let mut groups: HashMap<Lock, usize> = HashMap::new();
    let mut members: Vec<Vec<&Lock>> = Vec::new();
    for lock in past.locks.keys() {
        groups.insert(lock.clone(), members.len());
        members.push(vec![lock]);
    }
    let many = past
        .ops
        .iter()
        .filter(|asked| asked.request.verb == Verb::Macquire);
    for asked in many {
        let keys = asked.request.keys.iter();
        let known = keys.filter_map(|key| groups.get(&(asked.db, key.clone())).copied());
        let mut all: Vec<usize> = known.collect();
        let Some(first) = all.pop() else {
            continue;
        };
        all.retain(|other| *other != first);
        for other in &all {
            let moved = std::mem::take(&mut members[*other]);
            members[first].extend(moved);
        }
        if !all.is_empty() {
            for lock in &members[first] {
                groups.insert((*lock).clone(), first);
            }
        }
    }
    members.retain(|group| !group.is_empty());
    members
}

/// Somebody laid hands on its lease or its name.
fn altered(past: &Past, lock: &Lock) -> bool {
    let hands = ["pexpire", "persist", "rename"];
    let mut faults = past.faults.iter();
    faults.any(|fault| hands.contains(&fault.kind.as_str()) && fault.keys.contains(&lock.1))
}

/// What is known of an owner that may hold a lock.
struct Session {
    start: u64,
    server: u16,
    modes: Vec<Mode>,
    /// Of its leases, if nothing renews them.
    deadline: u64,
    lease: u64,
    /// By when the connections of its watchdog holds are gone.
    watched: Option<u64>,
    plain: bool,
    done: u64,
    /// The only connection that has to do with it, if what it asks is done in order.
    conn: Option<u32>,
    /// All that was given; 0 where nobody knows.
    tokens: BTreeSet<i64>,
}

impl Session {
    fn new(start: u64, asked: &Asked) -> Self {
        Self {
            start,
            server: asked.server,
            modes: Vec::new(),
            deadline: 0,
            lease: 0,
            watched: None,
            plain: false,
            done: 0,
            conn: Some(asked.op.conn),
            tokens: BTreeSet::new(),
        }
    }

    fn end(&self, past: &Past) -> u64 {
        let mut end = self.deadline;
        if let Some(gone) = self.watched {
            end = end.max(gone);
            if self.plain {
                end = end.max(lease_gone(
                    past,
                    self.server,
                    (self.start, gone),
                    self.lease,
                ));
            }
        }
        if past.bonds_cut(self.start, end) {
            end = lease_gone(past, self.server, (self.start, end), self.lease);
            end = end.saturating_add(FOUND_LATE);
        }
        end
    }
}

/// When one owner may have held a lock. `under_way`: a grant reaches its client in less.
fn possible(past: &Past, ops: &[usize], under_way: u64) -> Vec<(u64, u64)> {
    let mut windows = Vec::new();
    let mut session: Option<Session> = None;
    for at in ops {
        let asked = &past.ops[*at];
        let request = &asked.request;
        let conn = asked.op.conn;
        let ordered = session
            .as_ref()
            .is_none_or(|session| asked.op.call >= session.done || session.conn == Some(conn));
        let takes = request.acquires() && (asked.token().is_some() || asked.lost());
        let renews = request.renews() && (asked.op.out == Out::Int(1) || asked.lost());
        if takes || renews {
            let start = match (asked.waits(), asked.op.reply) {
                (Some(_), Some(reply)) => asked.op.call.max(reply.saturating_sub(under_way)),
                _ => asked.op.call,
            };
            let session = session.get_or_insert_with(|| Session::new(start, asked));
            session.modes.push(asked.mode());
            session.tokens.extend(match (renews, asked.token()) {
                (true, _) => None,
                (_, token) => Some(token.unwrap_or(0)),
            });
            session.lease = session.lease.max(request.lease_us);
            let lease = request.lease_us;
            let deadline = lease_gone(past, asked.server, (asked.op.call, asked.done), lease);
            match request.watchdog {
                true => session.watched = session.watched.max(Some(past.death(conn).1)),
                false => session.plain = true,
            }
            if !request.watchdog || asked.lost() {
                session.deadline = session.deadline.max(deadline);
            }
        }
        if let Some(one) = session.as_mut() {
            one.done = one.done.max(asked.done);
            one.conn = one.conn.filter(|one| *one == conn && !request.queues);
            if request.verb == Verb::Release && ordered && ends(past, asked, one) {
                one.modes.retain(|mode| *mode != asked.mode());
                let lossy = past.faults.iter().any(|fault| {
                    (fault.kind == "demote" || switches(&fault.kind))
                        && fault.end >= one.start
                        && fault.begin <= asked.done + FOUND_LATE
                });
                if one.modes.is_empty() && !lossy {
                    windows.push((one.start, asked.done));
                    session = None;
                }
            }
        }
    }
    windows.extend(session.map(|session| (session.start, session.end(past))));
    windows
}

/// Whether its owner had surely nothing in that mode after this release.
fn ends(past: &Past, asked: &Asked, session: &Session) -> bool {
    let request = &asked.request;
    if let Some(token) = request.if_token {
        // Another token, or one that the server has forgotten, ends nothing.
        let known = session.tokens.len() == 1 && session.tokens.contains(&token);
        let known = known && !past.bonds_cut(session.start, asked.done);
        return known && asked.op.out == Out::Int(0);
    }
    let fewer = request.mode == Mode::Permits && request.permits > 1;
    asked.op.out == Out::Int(0) || (asked.error("NOTHELD") && !fewer)
}

/// What no window covers, up to `last`.
fn gaps(mut windows: Vec<(u64, u64)>, last: u64) -> Vec<(u64, u64)> {
    windows.sort_unstable();
    let mut free = Vec::new();
    let mut from = 0;
    for (start, end) in windows {
        if start > from {
            free.push((from, start.min(last)));
        }
        from = from.max(end);
    }
    free.push((from, last));
    free.retain(|(from, to)| from < to);
    free
}

fn waiters(past: &Past, free: &[(u64, u64)], firsts: &[usize], found: &mut Findings) {
    for at in firsts {
        let asked = &past.ops[*at];
        let (Some(_), Some(reply), false) = (asked.waits(), asked.op.reply, asked.op.behind) else {
            continue;
        };
        if !matches!(asked.op.out, Out::Int(_) | Out::Null) {
            continue;
        }
        found.checked("idle");
        let first = free.partition_point(|(_, to)| *to < asked.op.sent);
        for (from, to) in free[first..].iter().take_while(|(from, _)| *from < reply) {
            let (from, to) = (asked.op.sent.max(*from), reply.min(*to));
            if to > from + IDLE && past.calm(from, to) {
                let ms = (to - from) / 1000;
                found.add(Finding {
                    check: "idle",
                    text: format!(
                        "{} waited for {} for {ms} ms while it was free",
                        asked.owner,
                        asked.request.keys.join(" and ")
                    ),
                    key: Some((asked.db, asked.request.keys[0].clone())),
                    ops: vec![*at],
                    from,
                    to,
                });
            }
        }
    }
}

/// The gap in which all this time lies, and `IDLE` before it.
fn within(free: &[(u64, u64)], from: u64, to: u64) -> bool {
    let at = free.partition_point(|(_, end)| *end < to);
    free.get(at).is_some_and(|(start, _)| start + IDLE < from)
}

fn refused(past: &Past, free: &[(u64, u64)], firsts: &[usize], found: &mut Findings) {
    for at in firsts {
        let asked = &past.ops[*at];
        let Some(reply) = asked.op.reply.filter(|_| asked.request.acquires()) else {
            continue;
        };
        if asked.waits().is_some() {
            continue;
        }
        let from = asked.op.call;
        if !within(free, from, reply) || !past.calm(from.saturating_sub(IDLE), reply) {
            // One that is granted makes the lock held.
            let granted = asked.token().is_some();
            found.count("refused", usize::from(granted));
            continue;
        }
        found.checked("refused");
        if asked.op.out == Out::Null || asked.error("WRONGLIMIT") {
            found.add(Finding {
                check: "refused",
                text: format!(
                    "{} was refused {} while all it stands with was free",
                    asked.owner,
                    asked.request.keys.join(" and ")
                ),
                key: Some((asked.db, asked.request.keys[0].clone())),
                ops: vec![*at],
                from,
                to: reply,
            });
        }
    }
}

/// RLOCK.INFO and RLOCK.LIST that tell of a holder where there can be none.
fn seen_held(past: &Past, last: u64, found: &mut Findings) {
    for (at, asked) in past.ops.iter().enumerate() {
        match &asked.op.out {
            Out::View(view) => {
                for holder in &view.holders {
                    seen(past, at, (&asked.request.keys[0], holder), last, found);
                }
            }
            Out::List(_, holders) => {
                for (key, holder) in holders {
                    seen(past, at, (key, holder), last, found);
                }
            }
            _ => (),
        }
    }
}

fn seen(past: &Past, at: usize, who: (&String, &String), last: u64, found: &mut Findings) {
    let (asked, (key, holder)) = (&past.ops[at], who);
    let lock = (asked.db, key.clone());
    let owners = past.locks.get(&lock).filter(|_| !altered(past, &lock));
    let (Some(owners), Some(reply)) = (owners, asked.op.reply) else {
        return;
    };
    let windows = match owners.get(holder) {
        Some(ops) => possible(past, ops, UNDER_WAY_AT_MOST),
        None => Vec::new(),
    };
    let from = asked.op.call;
    found.checked("refused");
    let free = gaps(windows, last);
    if within(&free, from, reply) && past.calm(from.saturating_sub(IDLE), reply) {
        found.add(Finding {
            check: "refused",
            text: format!("{holder} was told to hold {key}, which it did not"),
            key: Some(lock),
            ops: vec![at],
            from,
            to: reply,
        });
    }
}

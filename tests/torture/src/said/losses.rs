//! The program is notified of each loss, once and in time, and of nothing else.

use crate::finding::Findings;
use crate::hold::{Hold, NEVER};
use crate::past::Past;

/// A client knows of a closed connection by then, on a busy machine, us.
const KNOWN: u64 = 5_000_000;
/// A client says that a hold is lost before it closes its connection, by so long at most.
const BEFORE: u64 = 3_000_000;
/// It may have given its server up for what was before.
const AFTER: u64 = 10_000_000;
/// How late a timer may be, and what may be on its way when the wire stands still, us.
const SLACK: u64 = 500_000;
/// After a connection was closed, or was given up, renewals go on by then.
const CONNECTED: u64 = 4_000_000;

pub fn check(past: &Past, found: &mut Findings) {
    for (at, hold) in past.holds.iter().enumerate() {
        if past.is_raw(hold.driver) {
            continue;
        }
        deadline(hold, at, found);
        if past.round.plain {
            unrenewed(past, hold, at, found);
        }
        notified(past, hold, at, found);
        event(past, hold, at, found);
        false_loss(past, hold, at, found);
    }
}

/// A plain lease that is over is no hold any more, by the client's own clock.
fn deadline(hold: &Hold, at: usize, found: &mut Findings) {
    if hold.watchdog || hold.lease_to == NEVER {
        return;
    }
    found.checked("deadline");
    if hold.said() > hold.lease_to {
        let ms = (hold.said() - hold.lease_to) as f64 / 1000.0;
        let text = format!("{} was said to be held {ms} ms after its lease", hold.name);
        found.add("deadline", text, &[at], hold.said());
    }
}

/// Without the module a client renews what has a watchdog. Where no word of the server's came
/// for longer than the lease, it knows of no renewal.
fn unrenewed(past: &Past, hold: &Hold, at: usize, found: &mut Findings) {
    if !hold.watchdog {
        return;
    }
    for (begin, end) in past.silences(hold.driver) {
        let over = begin.max(hold.start) + hold.lease;
        let known = over + SLACK + past.stalled(begin, end);
        if over < end {
            found.checked("deadline");
        }
        let mut said = hold.has.iter();
        if let Some((from, to)) = said.find(|(from, to)| *from > known && *to < end) {
            let ms = (from - over) as f64 / 1000.0;
            let text = format!(
                "{} was said to be held {ms} ms after the lease that was renewed last",
                hold.name
            );
            found.add("deadline", text, &[at], *to);
            return;
        }
    }
}

/// With watchdog a closed connection is a loss, and so is being thrown out with or without.
/// Without the module only the next renewal finds that, at the latest when the lease is over, and
/// a plain hold is not renewed.
fn notified(past: &Past, hold: &Hold, at: usize, found: &mut Findings) {
    let plain = past.round.plain;
    if plain && !hold.watchdog {
        return;
    }
    let closed = past
        .closed(hold, hold.start)
        .filter(|_| hold.watchdog && !plain);
    let thrown = past.thrown_out(hold);
    let thrown = if thrown >= hold.start { thrown } else { NEVER };
    let lost = closed.unwrap_or(NEVER).min(thrown);
    if lost > hold.released {
        return;
    }
    found.checked("notified");
    let said = hold.said();
    if said <= lost {
        return;
    }
    let renewal = if plain { hold.lease } else { 0 };
    let known = lost + renewal + KNOWN + past.hindered(hold.driver, lost, said);
    if said > known {
        let ms = (said - lost) as f64 / 1000.0;
        let why = if lost == thrown {
            "it was thrown out"
        } else {
            "its connection was closed"
        };
        let text = format!("{} was said to be held {ms} ms after {why}", hold.name);
        found.add("notified", text, &[at], said);
    }
}

/// Who learns of a loss by asking was notified of it without asking, once.
fn event(past: &Past, hold: &Hold, at: usize, found: &mut Findings) {
    if hold.events.len() > 1 {
        let text = format!("{} was notified of its loss twice", hold.name);
        found.add("event", text, &[at], hold.events[1].at);
    }
    let Some(state) = hold.states.first().filter(|_| !hold.sticky) else {
        return;
    };
    // It may have been killed before it could say so.
    if past.killed(hold.driver, hold.life) {
        return;
    }
    found.checked("event");
    if hold.events.is_empty() {
        let text = format!("{} was lost, and its program was not notified", hold.name);
        found.add("event", text, &[at], *state);
    }
}

/// What is said to be lost was lost, or could be.
fn false_loss(past: &Past, hold: &Hold, at: usize, found: &mut Findings) {
    let events = hold.events.iter().map(|event| event.at);
    let all = events
        .chain(hold.states.iter().copied())
        .chain(hold.others.iter().copied());
    let Some(first) = all.min() else {
        return;
    };
    found.checked("false-loss");
    if past.thrown_out(hold) <= first {
        return;
    }
    let could_be = match hold.watchdog {
        false => hold.lease_from <= first,
        true if past.round.plain => could_not_renew(past, hold, first),
        true => {
            let over = hold.max.is_some_and(|max| hold.call + max <= first);
            let closed = past.closed(hold, hold.since);
            let closed = closed.is_some_and(|closed| closed <= first + BEFORE);
            let before = hold.since.max(first.saturating_sub(AFTER));
            over || closed || past.hindered(hold.driver, before, first) > 0
        }
    };
    if !could_be {
        let reason = hold
            .events
            .first()
            .map_or("?", |event| event.reason.as_str());
        let text = format!("{} was said to be lost ({reason}), and was not", hold.name);
        found.add("false-loss", text, &[at], first);
    }
}

/// Its lease was over though its client renewed it each third of it: something was in the way
/// for most of what was left then. Or its time was over, as was asked for.
fn could_not_renew(past: &Past, hold: &Hold, first: u64) -> bool {
    let before = first.saturating_sub(hold.lease + SLACK);
    let closes = past.closes(hold.driver, before.saturating_sub(CONNECTED), first);
    let hindered = past.hindered(hold.driver, before, first) + closes * CONNECTED;
    let over = hold.max.is_some_and(|max| hold.call + max <= first);
    // A renewal that finds nothing before its time says so. Nobody but us takes a hold away.
    let deleted = hold.events.iter().any(|event| event.reason == "deleted");
    over || (!deleted && hindered + SLACK >= hold.lease / 2 && hold.lease_from <= first)
}

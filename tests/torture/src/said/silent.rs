//! A program that stands still for longer than its patience loses what it watches, as far as
//! somebody waits for that, and one that is heard of in time loses nothing by it.

use rlock_torture::saw::{Ask, Fault};

use crate::finding::Findings;
use crate::hold::{Hold, Mode, NEVER};
use crate::past::Past;

/// Who waits behind one who is silent is served in less than that, on a busy machine, us.
const SERVED: u64 = 1_000_000;
/// A request has reached its server in less than that where nothing is in its way, us.
const UNDER_WAY: u64 = 200_000;

pub fn check(past: &Past, found: &mut Findings) {
    for (at, hold) in past.holds.iter().enumerate() {
        for event in hold.events.iter().filter(|event| event.reason == "silent") {
            found.checked("silent");
            if since(past, hold) > event.at {
                let text = format!("{} was told that it is silent, and was not", hold.name);
                found.add("silent", text, &[at], event.at);
            }
        }
        if hold.watchdog && !past.is_raw(hold.driver) {
            let faults = past.faults.iter();
            let its = |fault: &&Fault| fault.driver == Some(hold.driver);
            for stop in faults.filter(its).filter(|one| one.kind == "stop-driver") {
                served(past, (at, hold), stop, found);
            }
        }
    }
}

/// From when on it may be lost because nothing was heard of its program: that says every third of
/// its patience that it lives, so that something was in the way for half of it.
pub fn since(past: &Past, hold: &Hold) -> u64 {
    let Some(half) = past.patience(hold.driver).map(|patience| patience / 2) else {
        return NEVER;
    };
    let spans = || past.unheard(hold.driver);
    let begins = spans().filter(|(_, end)| *end >= hold.since);
    let long = begins.filter(|(begin, _)| {
        let to = begin + 2 * half;
        let parts = spans().map(|(one, end)| end.min(to).saturating_sub(one.max(*begin)));
        parts.sum::<u64>() >= half
    });
    long.map(|(begin, _)| begin + half).min().unwrap_or(NEVER)
}

/// Its program was stopped for longer than its patience, and than each lease that it asks for:
/// whoever waited meanwhile had the lock, or another one had.
fn served(past: &Past, (at, hold): (usize, &Hold), stop: &Fault, found: &mut Findings) {
    let Some(patience) = past.patience(hold.driver) else {
        return;
    };
    let asks = past.asks.iter().filter(|ask| ask.driver == hold.driver);
    let leases = asks.filter_map(|ask| ask.words["lease"].as_u64());
    let longest = leases.max().map_or(patience, |ms| patience.max(ms * 1000));
    let silent = (stop.begin + longest).max(hold.start + hold.lease);
    let told = hold.events.iter().any(|event| event.at < stop.begin);
    let alone = hold.keys.len() == 1 && matches!(hold.mode, Mode::Plain | Mode::Write);
    if hold.start > stop.begin || hold.released < stop.end || told || !alone {
        return;
    }
    let asks = past.asks.iter().filter(|ask| ask.driver != hold.driver);
    let asked: Vec<&Ask> = asks
        .filter(|ask| asks_for(ask, &hold.keys[0], (silent, stop.end)))
        .collect();
    for waiter in asked.iter().filter(|ask| waits(past, ask)) {
        let by = silent.max(waiter.call + UNDER_WAY) + SERVED;
        let waited = by < stop.end && waiter.reply.is_none_or(|at| at > by);
        // One that cannot hear of it may have it now.
        let deaf = |ask: &&Ask| ask.call <= by && !is_free(past, ask, by);
        if !waited || unsure(past, hold, stop.begin, by) || asked.iter().any(deaf) {
            continue;
        }
        found.checked("silent");
        let key = &hold.keys[0];
        let had = |one: &Hold| one.keys.contains(key) && one.start > hold.start && one.start <= by;
        if !past.holds.iter().any(had) {
            let text = format!(
                "{} waited for {key} behind {}, whose program stood still",
                waiter.hold, hold.name
            );
            found.add("silent", text, &[at], by);
            return;
        }
    }
}

/// It may be lost for another reason, or its server cannot see to it.
fn unsure(past: &Past, hold: &Hold, begin: u64, by: u64) -> bool {
    let cut = past.closed(hold, hold.call).is_some_and(|at| at < by);
    let orphaned = overlaps(past, &["orphan"], (hold.start, by));
    let stood = overlaps(past, &["stop-server", "kill-server"], (begin, by));
    cut || orphaned || stood || past.stalled(begin, by) > 0 || past.thrown_out(hold) <= by
}

fn overlaps(past: &Past, kinds: &[&str], (from, to): (u64, u64)) -> bool {
    let mut faults = past.faults.iter();
    faults.any(|one| {
        kinds.contains(&one.kind.as_str()) && one.begin <= to && one.end + UNDER_WAY >= from
    })
}

/// It may have been under way at some moment of this time.
fn asks_for(ask: &Ask, key: &str, (from, to): (u64, u64)) -> bool {
    let mut several = ask.words["keys"].as_array().into_iter().flatten();
    let its = ask.words["key"] == key || several.any(|one| one == key);
    let then = ask.call <= to && ask.reply.is_none_or(|at| at >= from);
    ask.what == "acquire" && its && then
}

/// Nothing was in its way until then.
fn is_free(past: &Past, ask: &Ask, to: u64) -> bool {
    let hindered = || past.hindered(ask.driver, ask.call, to) > 0;
    past.is_raw(ask.driver) || (past.closes(ask.driver, ask.call, to) == 0 && !hindered())
}

/// It asks for this lock alone, with a client, to wait.
fn waits(past: &Past, ask: &Ask) -> bool {
    let alone = ask.words["key"].is_string() && ask.words["mode"] != "read";
    alone && ask.words["wait"].is_u64() && !past.is_raw(ask.driver)
}

//! Events and counters add up, with each other and with what clients were told.

use std::collections::HashMap;

use rlock_torture::history::{Out, Rest, Sample};

use crate::finding::{Finding, Findings};
use crate::past::{Asked, Past};
use crate::request::Verb;

const EVENTS: [&str; 6] = [
    "acquired", "released", "renewed", "expired", "forced", "evicted",
];

pub fn check(past: &Past, found: &mut Findings) {
    events(past, found);
    for rest in &past.rests {
        at_rest(past, rest, found);
    }
}

fn tell(found: &mut Findings, text: String, at: u64) {
    found.add(Finding {
        check: "counters",
        text,
        key: None,
        ops: Vec::new(),
        from: at,
        to: at,
    });
}

/// Between two looks in one stream counters and events have grown by the same.
fn events(past: &Past, found: &mut Findings) {
    let mut last: HashMap<(u16, u32), &Sample> = HashMap::new();
    for sample in &past.samples {
        let Some(before) = last.insert((sample.server, sample.stream), sample) else {
            continue;
        };
        for event in EVENTS {
            let grown = |of: fn(&Sample) -> &std::collections::BTreeMap<String, i64>| {
                let count = |sample| of(sample).get(event).copied().unwrap_or(0);
                count(sample) - count(before)
            };
            found.checked("counters");
            let (heard, counted) = (
                grown(|sample| &sample.events),
                grown(|sample| &sample.counters),
            );
            if heard != counted {
                let text = format!(
                    "{heard} events rlock.{event} were heard from server {} while rlock_{event} rose by {counted}",
                    sample.server
                );
                tell(found, text, before.at);
            }
        }
    }
}

/// Nobody waits or holds by a watchdog, and the counters are what was told, give and
/// take what was lost on the way.
fn at_rest(past: &Past, rest: &Rest, found: &mut Findings) {
    let counter = |name: &str| rest.counters.get(name).copied().unwrap_or(-1);
    found.checked("counters");
    for name in ["waiting", "watchdog_holds"] {
        if counter(name) != 0 {
            let text = format!(
                "rlock_{name} is {} though all clients have left",
                counter(name)
            );
            tell(found, text, rest.at);
        }
    }
    if !rest.top.is_empty() {
        tell(
            found,
            format!("all clients have left, and RLOCK.TOP is {}", rest.top),
            rest.at,
        );
    }
    // They count from the start of the process.
    let mut runs = past.runs.iter().filter(|run| run.server == rest.server);
    let run = runs.find(|run| run.from <= rest.at && run.to.is_none_or(|to| to >= rest.at));
    let from = run.map_or(0, |run| run.from);
    let mut bounds: HashMap<&str, (i64, i64)> = HashMap::new();
    let forced = past.faults.iter().filter(|fault| {
        let freed = fault.kind == "force" && fault.note == "Int(1)";
        freed && fault.server == rest.server && (from..=rest.at).contains(&fault.begin)
    });
    let forced = forced.count() as i64;
    bounds.insert("forced", (forced, forced));
    for asked in &past.ops {
        let here = asked.server == rest.server && asked.op.call >= from && asked.op.call <= rest.at;
        for (name, least, most) in counts(asked).into_iter().filter(|_| here) {
            let bound = bounds.entry(name).or_default();
            *bound = (bound.0 + least, bound.1 + most);
        }
    }
    for (name, (least, most)) in bounds {
        found.checked("counters");
        let value = counter(name);
        // Closes of connections release too.
        let most = if name == "released" { i64::MAX } else { most };
        if value < least || value > most {
            let text = format!(
                "rlock_{name} of server {} is {value}, where clients know of {least} to {most}",
                rest.server
            );
            tell(found, text, rest.at);
        }
    }
}

/// By how much a request raised which counters, at least and at most.
fn counts(asked: &Asked) -> Vec<(&'static str, i64, i64)> {
    let keys = asked.request.keys.len() as i64;
    let name = match asked.request.verb {
        Verb::Acquire | Verb::Macquire => "acquired",
        Verb::Release | Verb::Mrelease => "released",
        Verb::Renew | Verb::Mrenew => "renewed",
        _ => return Vec::new(),
    };
    // It may have been CLIENT UNBLOCK, or a try after all.
    let late = asked.waits().map(|_| ("timed_out", 0, 1));
    let request = &asked.request;
    let maybe = request.if_held || request.if_token.is_some();
    match asked.op.out {
        Out::Int(count) if request.verb == Verb::Mrelease => vec![(name, count, count)],
        Out::Int(0) if maybe => vec![(name, 0, 1)],
        // It may hold it already, and is given no more.
        Out::Int(_) if request.once => vec![(name, 0, keys), ("renewed", 0, keys)],
        Out::Int(_) => vec![(name, keys, keys)],
        // Its time can have been over when the server sent it away.
        Out::Null | Out::Error(_) => late.into_iter().collect(),
        Out::Lost | Out::Unanswered => {
            let again = (request.once).then_some(("renewed", 0, keys));
            let all = late.into_iter().chain(again);
            all.chain([(name, 0, keys)]).collect()
        }
        _ => Vec::new(),
    }
}

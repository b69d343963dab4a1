//! Each request is answered, by what can be the answer, and each wait ends when it is to end.

use std::collections::{HashMap, HashSet};

use rlock_torture::saw::Ask;

use crate::finding::Findings;
use crate::past::Past;

/// A wait ends by so long after its time at the latest, but for what hinders it, us.
const LATE: u64 = 10_000_000;

pub fn check(past: &Past, found: &mut Findings) {
    let cancelled = past.asks.iter().filter(|ask| ask.what == "cancel");
    let cancelled: HashSet<&str> = cancelled.map(|ask| ask.hold.as_str()).collect();
    let granted = past.holds.iter();
    let granted = granted.map(|hold| ((hold.name.as_str(), hold.life), hold.released));
    let granted: HashMap<(&str, u32), u64> = granted.collect();
    for ask in &past.asks {
        let released = granted.get(&(ask.hold.as_str(), ask.life));
        // The state of what is released is nobody's concern.
        let over = |released: &u64| ask.what == "state" && ask.reply.unwrap_or(0) > *released;
        let known = released.is_some_and(|released| !over(released));
        if known || ["acquire", "cancel", "open"].contains(&ask.what.as_str()) {
            answer(past, ask, cancelled.contains(ask.hold.as_str()), found);
        }
        if ask.what == "acquire" && !past.is_raw(ask.driver) {
            wait(past, ask, cancelled.contains(ask.hold.as_str()), found);
        }
    }
}

fn answer(past: &Past, ask: &Ask, cancelled: bool, found: &mut Findings) {
    found.checked("answers");
    let line = || format!("{} {} {} -> {}", ask.what, ask.hold, ask.words, ask.out);
    if ask.reply.is_none() {
        if !past.killed(ask.driver, ask.life) {
            found.add(
                "answers",
                format!("never answered: {}", line()),
                &[],
                ask.call,
            );
        }
        return;
    }
    let Some(error) = ask.out["error"].as_str() else {
        return;
    };
    let with_job = ask.words["job"].is_string();
    let code = ask.out["code"].as_str().unwrap_or_default();
    let fits = match (ask.what.as_str(), error) {
        ("acquire", "not_acquired" | "connection" | "lost") => true,
        ("acquire", "cancelled") => cancelled,
        ("acquire", "deadlock" | "held_by_job") => with_job,
        ("release" | "again" | "renew", "lost") => true,
        ("release" | "renew", "connection") => true,
        // A server that has not read its data yet.
        (_, "refused") => code == "LOADING",
        _ => false,
    };
    if !fits {
        found.add(
            "answers",
            format!("no right answer: {}", line()),
            &[],
            ask.call,
        );
    }
}

fn wait(past: &Past, ask: &Ask, cancelled: bool, found: &mut Findings) {
    let Some(reply) = ask.reply else {
        return;
    };
    found.checked("waits");
    let wait = ask.words["wait"].as_u64().unwrap_or(0) * 1000;
    let end = ask.call + wait;
    if ask.out["error"] == "not_acquired" && reply < end && !cancelled {
        let ms = (end - reply) as f64 / 1000.0;
        let text = format!("{} was refused {ms} ms before its wait was over", ask.hold);
        found.add("waits", text, &[], reply);
    }
    let late = end + LATE + past.hindered(ask.driver, ask.call, reply);
    if reply > late {
        let ms = (reply - end) as f64 / 1000.0;
        let text = format!("the wait of {} ended {ms} ms late: {}", ask.hold, ask.out);
        found.add("waits", text, &[], reply);
    }
}

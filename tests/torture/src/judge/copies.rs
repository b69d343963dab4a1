//! Replicas, and servers that load the AOF, have what the master has; no server
//! crashes; and what was to be done to them could be done.

use crate::finding::{Finding, Findings};
use crate::past::Past;

pub fn check(past: &Past, found: &mut Findings) {
    let mut tell = |check, text, at| {
        found.add(Finding {
            check,
            text,
            key: None,
            ops: Vec::new(),
            from: at,
            to: at,
        });
    };
    for copies in &past.copies {
        let mut keys: Vec<&String> = copies.original.keys().chain(copies.copy.keys()).collect();
        keys.sort();
        keys.dedup();
        for key in keys {
            let (original, copy) = (copies.original.get(key), copies.copy.get(key));
            let mut both = original.iter().chain(copy.iter());
            let due = both.any(|entry| (0..=copies.due as i64).contains(&entry.expires));
            if original != copy && !due {
                let (server, what) = (copies.server, &copies.what);
                let text =
                    format!("{key} of server {server} is {original:?}, and by its {what} {copy:?}");
                tell("copies", text, copies.at);
            }
        }
    }
    for crash in &past.crashes {
        let text = format!("server {}:\n{}", crash.server, crash.text);
        tell("crashes", text, crash.at);
    }
    for fault in &past.faults {
        let failed = ["move-slot", "rest"].contains(&fault.kind.as_str()) && !fault.note.is_empty();
        if failed {
            tell(
                "crashes",
                format!("{}: {}", fault.kind, fault.note),
                fault.begin,
            );
        }
    }
    found.count(
        "copies",
        past.copies.iter().map(|copies| copies.original.len()).sum(),
    );
    found.count("crashes", past.runs.len());
}

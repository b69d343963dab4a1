//! Nobody holds what another holds, by the word of their clients.

use crate::finding::Findings;
use crate::hold::Mode;
use crate::past::{Claim, Past};

/// Of the lock with permits.
const LIMIT: u64 = 3;

pub fn check(past: &Past, found: &mut Findings) {
    for (key, claims) in past.claims() {
        overlaps(past, key, &claims, found);
        permits(key, &claims, found);
    }
    denied(past, found);
}

fn overlaps(past: &Past, key: &str, claims: &[Claim], found: &mut Findings) {
    let mut open: Vec<&Claim> = Vec::new();
    for claim in claims {
        found.checked("exclusion");
        open.retain(|other| other.to > claim.from);
        for other in &open {
            if claim.mode.goes_with(other.mode) {
                continue;
            }
            let ms = (claim.to.min(other.to) - claim.from) as f64 / 1000.0;
            let (first, second) = (&past.holds[other.hold], &past.holds[claim.hold]);
            let text = format!(
                "{key} was held by {} ({:?}) and by {} ({:?}) at once, for {ms} ms at least",
                first.name, first.mode, second.name, second.mode
            );
            found.add("exclusion", text, &[other.hold, claim.hold], claim.from);
        }
        open.push(claim);
    }
}

fn permits(key: &str, claims: &[Claim], found: &mut Findings) {
    let mut open: Vec<(&Claim, u64)> = Vec::new();
    for claim in claims {
        let Mode::Permits(count) = claim.mode else {
            continue;
        };
        found.checked("permits");
        open.retain(|(other, _)| other.to > claim.from);
        open.push((claim, count));
        let out: u64 = open.iter().map(|(_, count)| count).sum();
        if out > LIMIT {
            let holds: Vec<usize> = open.iter().map(|(claim, _)| claim.hold).collect();
            let text = format!("{out} permits of {key} were held at once, of {LIMIT}");
            found.add("permits", text, &holds, claim.from);
        }
    }
}

/// Who asks without a client is told that it holds what it holds.
fn denied(past: &Past, found: &mut Findings) {
    for (at, hold) in past.holds.iter().enumerate() {
        let Some(lost) = hold.others.first() else {
            continue;
        };
        if !past.is_raw(hold.driver) {
            continue;
        }
        found.checked("held");
        if *lost < hold.lease_from.min(past.thrown_out(hold)) {
            let text = format!(
                "{} held {:?}, and was told that it did not",
                hold.name, hold.keys
            );
            found.add("held", text, &[at], hold.released);
        }
    }
}

//! What was acknowledged, against what is there after the restart.

use std::collections::{BTreeMap, BTreeSet};

use super::look::Looked;
use crate::item::{Item, SLACK};

#[derive(Default)]
pub struct Verdict {
    pub findings: Vec<String>,
    /// Steps that were acknowledged, and that are lost of them.
    pub acked: u64,
    pub lost: u64,
    /// If anything is lost: how far back the newest lies that is there, us.
    pub lost_us: u64,
    pub held: u64,
    pub holds_lost: u64,
    /// By lock: what clients hold still, for all they know.
    pub believed: BTreeMap<(u8, String), u64>,
}

/// What is loaded must be what was true at one moment: nothing is missing that was
/// acknowledged before something that is there was asked for.
struct Moment<'a> {
    kept: Option<(u64, &'a Item)>,
    missing: Option<(u64, &'a Item)>,
}

/// What was acknowledged up to `floor` must be there.
pub fn judge(items: &[Item], looked: &Looked, floor: u64, killed: u64) -> Verdict {
    let mut verdict = Verdict::default();
    let begun = items
        .iter()
        .filter_map(|item| Some(item.steps.first()?.sent));
    let begun = begun.min().unwrap_or(killed);
    let mut moment = Moment {
        kept: None,
        missing: None,
    };
    for item in items {
        let held = looked.locks.get(&(item.db, item.key.clone()));
        let who = (item.owner.clone(), item.mode.shown().to_owned());
        let found = held.and_then(|held| held.get(&who)).copied();
        let acked = item.acked();
        verdict.acked += acked as u64;
        let can_be = |number: &usize| item.can_be(*number, found, looked.at);
        let fits: Vec<usize> = (0..=item.steps.len()).filter(can_be).collect();
        let (Some(first), Some(last)) = (fits.first().copied(), fits.last().copied()) else {
            verdict.findings.push(tell("never was so", item, found));
            continue;
        };
        if last < acked {
            let at = item.steps[last].replied.unwrap_or(killed);
            verdict.lost += (acked - last) as u64;
            if at <= floor {
                let what = "acknowledged, and lost";
                verdict.findings.push(tell(what, item, found));
            }
            if moment.missing.is_none_or(|(least, _)| at < least) {
                moment.missing = Some((at, item));
            }
        }
        if first > 0 {
            let at = item.steps[first - 1].sent;
            if moment.kept.is_none_or(|(most, _)| at > most) {
                moment.kept = Some((at, item));
            }
        }
        believe(&mut verdict, item, found.is_some(), looked.at);
    }
    if moment.missing.is_some() {
        let newest = moment.kept.map(|(at, _)| killed.saturating_sub(at));
        verdict.lost_us = newest.unwrap_or(killed.saturating_sub(begun));
    }
    if let (Some((kept, one)), Some((missing, other))) = (moment.kept, moment.missing) {
        if missing < kept {
            let text = format!(
                "no moment: what was asked for {} us after a reply is there, what was said by it is not:\n  {}\n  {}",
                kept - missing,
                tell("there", one, None),
                tell("not there", other, None)
            );
            verdict.findings.push(text);
        }
    }
    verdict.findings.extend(unknown(items, looked));
    verdict
}

/// Whether its client holds it, for all it knows, and whether that is lost.
fn believe(verdict: &mut Verdict, item: &Item, is_there: bool, now: u64) {
    let state = item.now();
    let sure = item.acked() == item.steps.len() && !item.watched;
    if state.holds == 0 || !sure || state.ends.0 < now + 5 * SLACK {
        return;
    }
    verdict.held += 1;
    verdict.holds_lost += u64::from(!is_there);
    let lock = (item.db, item.key.clone());
    *verdict.believed.entry(lock).or_default() += 1;
}

/// Holders whom nobody knows.
fn unknown(items: &[Item], looked: &Looked) -> Vec<String> {
    let known = |item: &Item| (item.db, item.key.clone(), item.owner.clone());
    let known: BTreeSet<_> = items.iter().map(known).collect();
    let mut all = Vec::new();
    for ((db, key), holders) in &looked.locks {
        for ((owner, mode), state) in holders {
            if !known.contains(&(*db, key.clone(), owner.clone())) {
                all.push(format!("nobody knows: {db} {key} {owner} {mode} {state:?}"));
            }
        }
    }
    all
}

fn tell(what: &str, item: &Item, found: Option<(i64, u64)>) -> String {
    let Item {
        db,
        key,
        owner,
        mode,
        ..
    } = item;
    let steps = item.steps.iter().map(|step| {
        let (sent, replied, after) = (step.sent, step.replied, step.after);
        format!("\n    asked {sent}, replied {replied:?}: {after:?}")
    });
    let steps: String = steps.collect();
    format!("{what}: {db} {key}, owner {owner}, {mode:?}, found {found:?}{steps}")
}

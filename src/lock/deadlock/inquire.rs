//! The inquiry goes on: what it finds is looked at, link by link, and one request of those
//! that wait in a cycle finds a way out, or is refused.

use super::graph::Graph;
use super::inquiry::{Pass, Round};
use super::pass::{go_on, next_part, Came, Part};
use super::proof::look_at;
use super::way_out::finds_a_way;

use crate::lock::counters::Counters;
use crate::lock::grant;
use crate::lock::{Decision, Refusal};

/// It goes so many steps,
const STEPS: usize = 256;

/// or looks at so many links, which takes about as long.
const LOOKS: usize = 16;

/// A way out is sought for so many of the requests in a cycle.
const MOST_LED_OUT: usize = 8;

/// An error has room for fewer links than these.
const MOST_TOLD: usize = 64;

/// Goes on for a while. Whether there is more to do.
pub fn inquire(d: &mut Decision<'_>) -> bool {
    let Some(mut pass) = d.core.inquiry.take() else {
        return false;
    };
    if !d.core.rules.detect_deadlocks {
        return true;
    }
    let is_over = match go_on(&mut pass, d.core, d.now, STEPS) {
        Came::On => false,
        Came::Round => {
            prove(d, &mut pass);
            false
        }
        Came::Over => true,
    };
    if is_over {
        d.core.inquiry.has_ended(&pass, d.now);
    } else {
        d.core.inquiry.pass = Some(pass);
    }
    !is_over
}

/// Looks at the next links of a way that goes round. Each was there when the pass came to it
/// and is there when it is looked at: so all of them were there when the first was looked at.
fn prove(d: &mut Decision<'_>, pass: &mut Pass) {
    for _ in 0..LOOKS {
        match next_part(pass, d.core) {
            Part::Link(link, id) => {
                if !d.ks.is_at_hand(&link.on) {
                    return d.core.inquiry.give_up(pass);
                }
                look_at(d, &link);
                let graph = Graph::new(d.core, d.now);
                if !graph.waits_for(id, &link.on, &link.for_) {
                    return drop_round(d, pass);
                }
            }
            Part::Broken => return drop_round(d, pass),
            Part::End => return judge(d, pass),
        }
    }
}

fn drop_round(d: &mut Decision<'_>, pass: &mut Pass) {
    if !pass.drop_round() {
        d.core.inquiry.give_up(pass);
    }
}

/// One of the requests that can have closed the cycle finds a way out, or the oldest of them
/// is refused.
fn judge(d: &mut Decision<'_>, pass: &mut Pass) {
    let Some(Round { links, closing, .. }) = pass.take_round() else {
        return;
    };
    let oldest = || links.iter().map(|(_, id)| *id).min();
    let Some(oldest) = closing.first().copied().or_else(oldest) else {
        return;
    };
    let mut first = closing.into_iter().take(MOST_LED_OUT);
    if first.any(|id| finds_a_way(d, id)) {
        return;
    }
    let at = links.iter().position(|(_, id)| *id == oldest).unwrap_or(0);
    let ring = links.iter().cycle().skip(at).take(links.len());
    let cycle = ring.map(|(link, _)| link.clone()).take(MOST_TOLD);
    let cycle = cycle.collect();
    Counters::up(&mut d.core.counters.deadlocks);
    grant::refuse(d, oldest, Refusal::Deadlock { cycle });
}

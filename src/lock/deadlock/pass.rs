//! A pass of the inquiry goes on its way.

use super::graph::{Graph, Step};
use super::inquiry::Pass;

use crate::lock::{Core, Link, Now, WaiterId};

/// What a pass has come to.
pub enum Came {
    /// It goes on.
    On,
    /// To a way that goes round.
    Round,
    /// To its end.
    Over,
}

/// Of a way that goes round: what is to be looked at.
pub enum Part {
    Link(Link, WaiterId),
    /// It does not go round any more.
    Broken,
    /// All was looked at.
    End,
}

/// Goes so many steps at most.
pub fn go_on(pass: &mut Pass, core: &Core, now: Now, steps: usize) -> Came {
    if pass.round.is_some() {
        return Came::Round;
    }
    let graph = Graph::new(core, now);
    for _ in 0..steps {
        pass.counts();
        if pass.steps_back() {
            continue;
        }
        let Some(stop) = pass.way.last_mut() else {
            if pass.begins_another() {
                continue;
            }
            return Came::Over;
        };
        stop.before = stop.cursor.clone();
        match graph.step(&stop.node, &mut stop.cursor) {
            Step::Nothing => {}
            Step::End => pass.is_done(),
            Step::To(next) => match pass.seen.get(&next) {
                None => pass.goes_to(next),
                Some(false) => {}
                Some(true) => {
                    pass.goes_round(&next);
                    return Came::Round;
                }
            },
        }
    }
    Came::On
}

/// The next link of a way that goes round.
pub fn next_part(pass: &mut Pass, core: &Core) -> Part {
    pass.counts();
    let Some(round) = &pass.round else {
        return Part::Broken;
    };
    let way = &pass.way;
    let owner_from = |from: usize| {
        let stops = way.iter().enumerate().skip(from);
        let mut owners = stops.filter_map(|(at, stop)| Some((at, stop, stop.owner()?)));
        owners.next()
    };
    let Some((at, stop, waits)) = owner_from(round.at) else {
        return match round.links.len() {
            0 | 1 => Part::Broken,
            _ => Part::End,
        };
    };
    let first = || owner_from(round.from);
    let next = owner_from(at.saturating_add(1)).or_else(first);
    let id = stop.cursor.request;
    let waiter = id.and_then(|id| core.queues.get(id));
    let key = waiter.and_then(|waiter| waiter.keys.get(stop.cursor.followed()));
    let (Some(id), Some(on), Some((_, _, for_))) = (id, key, next) else {
        return Part::Broken;
    };
    let link = Link {
        waits: waits.clone(),
        on: on.clone(),
        for_: for_.clone(),
    };
    let closes = core.inquiry.is_suspect(pass, waits);
    if let Some(round) = &mut pass.round {
        round.at = at.saturating_add(1);
        round.links.push((link.clone(), id));
        round.closing.extend(closes.then_some(id));
    }
    Part::Link(link, id)
}

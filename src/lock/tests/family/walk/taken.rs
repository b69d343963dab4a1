//! What is asked for when an action is taken, as things are then.

use super::universe::{LEASE, PEOPLE, SPARE};
use crate::lock::tests::family::model::{
    Address, Hold, Kind, Mode, Owner, Place, Share, Waiter, NEVER,
};
use crate::lock::tests::family::ops::{Call, Op, Renewing, Seat, Whose, Words};
use crate::lock::tests::family::world::World;

/// For how many ms a connection may be silent.
pub const PATIENCE: i64 = 150;

pub fn call(who: usize, keys: &[Place], mode: Mode, watch: bool) -> Call {
    let (owner, seat) = PEOPLE[who];
    Call {
        keys: keys.to_vec(),
        owner,
        seat,
        mode,
        share: Share::HOLD,
        lease: LEASE,
        once: false,
        watch,
        block: Some(0),
        queue: false,
        notify: None,
    }
}

/// By QUEUE no connection waits twice for the same, but it may say it again with ONCE. The
/// tag is the one that it had, or the first that is free.
pub fn named(world: &World, call: &Call) -> Option<Call> {
    let ask = world.ask(call);
    let Some(to) = ask.told_at() else {
        let is_deaf = call.notify.is_some();
        return (!is_deaf).then(|| call.clone());
    };
    let model = &world.model;
    let theirs = |other: &&Waiter| other.ask.client == to.client && other.ask.is_same(&ask);
    let waits = model.queue.iter().find(theirs);
    if waits.is_some() && !call.once {
        return None;
    }
    let of_hold = |h: &Hold| {
        let same = (h.owner, h.mode) == (ask.owner, ask.mode) && ask.keys.contains(&h.place);
        h.notify.filter(|its| same && its.client == to.client)
    };
    let had = waits.and_then(|waiter| waiter.ask.told_at());
    let had = had.or_else(|| model.holds.iter().find_map(of_hold));
    let had = had.filter(|had| had.channel == to.channel);
    let free = |tag: &u8| {
        let with = |tag| Address { tag, ..to };
        !world
            .shell
            .core
            .sessions
            .has(&world.shell.address(with(*tag)))
    };
    let tag = had.map(|to| to.tag).or_else(|| (0..9).find(free))?;
    let notify = Some(Words {
        tag,
        ..call.notify?
    });
    Some(Call {
        notify,
        ..call.clone()
    })
}

pub fn whose(at: Place, owner: Owner, mode: Mode, seat: Seat) -> Whose {
    Whose {
        held: None,
        at,
        owner,
        mode,
        seat,
        own_seat: false,
    }
}

/// It is renewed to the shortest that there is, and that passes.
pub fn end(world: &World, place: Place, owner: Owner) -> Option<Vec<Op>> {
    let model = &world.model;
    if model.watched(place, owner).is_some() {
        return None;
    }
    let mut theirs = model.holds_at(place).filter(|hold| hold.owner == owner);
    let whose = whose(place, owner, theirs.next()?.mode, SPARE);
    Some(vec![renew(whose, 1, false), pass(2000)])
}

/// RENEW. `anew`: with TOKEN.
pub fn renew(whose: Whose, lease: i64, anew: bool) -> Op {
    Op::Renew(Renewing {
        whose,
        lease,
        watch: false,
        notify: None,
        anew,
    })
}

pub fn end_all(world: &World) -> Option<Vec<Op>> {
    let model = &world.model;
    let watched = |hold: &&Hold| model.watched(hold.place, hold.owner).is_none();
    let held = model.holds.iter().filter(watched);
    let ends = held.map(|hold| model.ends(hold.place, hold.owner));
    let texts = model.keys.values().filter(|slot| slot.kind == Kind::Text);
    let ends = ends.chain(texts.map(|slot| slot.ends));
    let last = ends.filter(|at| *at != NEVER).max()?;
    Some(vec![pass((last + 1 - model.now_ms()) * 1000)])
}

/// After a lease the server has stood still: it reads first, and then time goes on.
pub fn silence(world: &World) -> Option<Vec<Op>> {
    let stall = [pass((LEASE + 1) * 1000)].into_iter();
    let reads = [25_000; 4].into_iter().map(pass);
    let goes_on = [100_000; 3].into_iter().map(pass);
    let all = stall.chain(reads).chain(goes_on);
    let model = &world.model;
    // A reply does not take that long.
    (model.grants.is_empty() && !model.hearing.beats.is_empty()).then(|| all.collect())
}

fn pass(us: i64) -> Op {
    Op::Pass {
        us,
        cycle: false,
        fires: true,
    }
}

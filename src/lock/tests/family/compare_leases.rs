//! When locks and the leases of their readers end, in the core's keyspace and in the model.

use std::collections::{BTreeMap, BTreeSet};

use super::compare::live;
use super::model::{Kind, Mode, Owner, Place, NEVER};
use super::others::lease_key;
use super::world::World;

pub fn same_ttl(world: &mut World, place: Place, got: i64) {
    let slot = world.model.keys[&place];
    let owners = world.model.owners_at(place);
    let was_watched = |owner: &Owner| {
        world
            .model
            .hearing
            .fell_silent
            .contains_key(&(place, *owner))
    };
    let watched = owners
        .iter()
        .any(|owner| world.model.watched(place, owner).is_some() || was_watched(owner));
    let reads = |owner: &&Owner| world.model.count(place, owner, Mode::Read) > 0;
    let is_pool = slot.kind == Kind::Permits;
    let only_reads = is_pool || slot.kind == Kind::Shared && owners.iter().all(|o| reads(&o));
    let writes = |owner: &Owner| world.model.count(place, owner, Mode::Write) > 0;
    if got == slot.ends {
        return;
    }
    if slot.by_hand && slot.kind != Kind::Plain && slot.kind != Kind::Text {
        world.model.keys.get_mut(&place).unwrap().ends = got;
        return;
    }
    let show = format!("{place:?} ends at {got}, not {}", slot.ends);
    if only_reads && !owners.iter().any(writes) {
        let longest = owners
            .iter()
            .map(|owner| match is_pool {
                true => world.model.ends(place, owner),
                false => reader_ends(world, place, owner),
            })
            .max();
        assert!(slot.by_hand || got >= longest.unwrap(), "{show}");
        assert!(!is_pool || watched || slot.by_hand, "{show}");
    } else {
        assert!(watched, "{show}");
        let owner = owners.first().unwrap();
        may_renew(world, (place, owner), slot.ends, got, &show);
    }
    world.model.keys.get_mut(&place).unwrap().ends = got;
}

/// When the reader's lease ends, as the keyspace has it.
fn reader_ends(world: &World, place: Place, owner: Owner) -> i64 {
    let keys =
        (1..=world.model.count(place, owner, Mode::Read)).map(|i| lease_key(place, owner, i));
    keys.filter_map(|key| live(world, &key))
        .map(|(_, ends)| ends)
        .max()
        .unwrap_or(0)
}

/// A watchdog's renewal gives no more than its lease, and takes nothing away.
pub fn may_renew(world: &World, (place, owner): (Place, Owner), before: i64, got: i64, show: &str) {
    let model = &world.model;
    let theirs = || model.holds_at(place).filter(|hold| hold.owner == owner);
    // What ended in this step may have been renewed before.
    let ended = model.hearing.fell_silent.get(&(place, owner)).copied();
    let watches = || theirs().filter_map(|hold| hold.watch).chain(ended);
    let longest = watches().map(|watch| watch.longest).max().expect(show);
    assert!(got <= before.max(model.now_ms() + longest), "{show}");
    let by_hand = model.keys[&place].by_hand;
    let capped = match model.watchdog_max {
        0 => before,
        max => watches()
            .map(|watch| watch.since + max)
            .max()
            .unwrap()
            .min(before),
    };
    assert!(by_hand || got >= capped, "{show}");
}

/// The lease keys of a reader that are there, and when they end.
fn leases_of(world: &World, place: Place, owner: Owner) -> BTreeMap<usize, i64> {
    let bounds = lease_key(place, owner, 1)..=lease_key(place, owner, 9);
    let live = world
        .shell
        .ks
        .keys
        .range(bounds)
        .filter_map(|(key, (_, ends))| {
            let index = key.name.last()? - b'0';
            let ends = ends.map_or(NEVER, |at| at.0);
            (ends >= world.model.now_ms()).then_some((usize::from(index), ends))
        });
    live.collect()
}

pub fn same_leases(world: &mut World) {
    for place in world.places.clone() {
        for owner in super::ops::OWNERS {
            let reads = world.model.count(place, owner, Mode::Read);
            let by_hand = world
                .model
                .keys
                .get(&place)
                .is_some_and(|slot| slot.by_hand);
            let got = leases_of(world, place, owner);
            let reads_on = got.keys().any(|index| *index <= reads);
            let first = (place, owner, 0);
            let known = world.model.leases.range(first..(place, owner, usize::MAX));
            let known = known.map(|((_, _, index), _)| *index);
            let all: BTreeSet<usize> = got.keys().copied().chain(known).collect();
            for index in all {
                if world.model.squats.contains(&(place, owner, index)) {
                    continue;
                }
                let got = got.get(&index).copied();
                let expected = world.model.leases.get(&(place, owner, index)).copied();
                match (got, expected) {
                    // Left over from a hash that went, or made anew where somebody
                    // deleted it: it may be there.
                    (None, Some(_)) if index > reads || (by_hand && reads_on) => {
                        world.model.leases.remove(&(place, owner, index));
                    }
                    (Some(_), Some(_)) if index > reads => {}
                    (got, expected) if got == expected => {}
                    (Some(got), Some(before)) => {
                        let show = format!("{place:?} {owner} {index} ends at {got}, not {before}");
                        if !world.model.keys[&place].by_hand {
                            may_renew(world, (place, owner), before, got, &show);
                        }
                        world.model.leases.insert((place, owner, index), got);
                    }
                    (got, expected) => {
                        panic!("the lease {index} of {owner} on {place:?} is {got:?}, not {expected:?}")
                    }
                }
            }
        }
    }
}

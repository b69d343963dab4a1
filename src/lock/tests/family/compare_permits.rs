//! Who holds permits, how many and until when, in the core's keyspace and in the model.

use super::compare::live;
use super::compare_leases::may_renew;
use super::model::{Mode, Place};
use super::shell::at;
use super::world::World;
use crate::lock::kind;
use crate::lock::memory::Value;
use crate::lock::{Kind, Lease};

/// The same permits, and the same limits; but an owner whose lease is over may have left its
/// field, which counts as out.
pub fn same_permits(world: &mut World, place: Place) {
    let Some((Value::Hash(fields), _)) = live(world, &at(place)) else {
        panic!("{place:?} is no hash");
    };
    let found = kind::look(fields, &[], None);
    let Kind::Permits(pool) = found.kind else {
        panic!("{place:?} has no permits: {fields:?}");
    };
    let holders = kind::holders(fields, None, usize::MAX);
    assert_eq!(holders.len(), found.fields, "{fields:?}");
    let now = world.model.now_ms();
    let mut live = 0;
    let mut renewed = Vec::new();
    for holder in &holders {
        let Some(ends) = holder.lease.end().map(|at| at.0) else {
            panic!("{holder:?} has no lease");
        };
        let owner = World::is_owner(&holder.owner).unwrap();
        let count = world.model.count(place, owner, Mode::Permits);
        if ends < now {
            assert_eq!(count, 0, "{holder:?} of {place:?} is over");
            continue;
        }
        live += 1;
        assert_eq!(
            holder.holds, count as i64,
            "permits of {owner} on {place:?}"
        );
        let expected = world.model.ends(place, owner);
        if ends != expected {
            let show = format!("{owner} on {place:?} has them until {ends}, not {expected}");
            assert!(world.model.watched(place, owner).is_some(), "{show}");
            may_renew(world, (place, owner), expected, ends, &show);
            renewed.push((owner, ends));
        }
    }
    assert_eq!(live, world.model.owners_at(place).len(), "{fields:?}");
    let all: i64 = holders.iter().map(|holder| holder.holds).sum();
    assert_eq!(pool.out, all, "what is out of {place:?}: {fields:?}");
    let limit = world.model.limits[&place];
    let limits = (pool.asked, pool.limit);
    assert_eq!(limits, (limit.asked as i64, limit.now as i64), "{place:?}");
    for (owner, ends) in renewed {
        world.model.permit_ends.insert((place, owner), ends);
    }
    let known = world.shell.core.locks.shared(&at(place));
    for hold in known.into_iter().flat_map(|shared| shared.holds()) {
        assert!(hold.lease != Lease::Gone, "{hold:?}");
    }
}

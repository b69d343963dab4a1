//! Whether connections are told of lost holds what the model says, and each hold is bound
//! where it is to be.

use std::collections::BTreeSet;

use super::model::{Client, Hold, Place};
use super::shell::{at, mode};
use super::world::World;
use crate::lock::{Address, Key, Loss, Notice, Notices, Reason};

/// The connections that are to be closed: they have lost a watchdog hold, and cannot be
/// told of it.
pub fn closed(world: &World, told: &Notices) -> BTreeSet<Client> {
    let deaf = &world.shell.ks.deaf;
    let close = |loss: &Loss| {
        let heard = loss
            .address
            .as_ref()
            .filter(|to| !deaf.contains(&to.client));
        let watcher = loss.watcher.filter(|_| loss.reason != Reason::Rebound);
        watcher.filter(|client| heard.is_none_or(|to| to.client != *client))
    };
    losses(told).filter_map(close).collect()
}

fn losses(told: &Notices) -> impl Iterator<Item = &Loss> {
    told.iter().filter_map(|notice| match notice {
        Notice::Lost(loss) => Some(loss),
        _ => None,
    })
}

/// Each loss is told once, where it is to be told and for what reason.
pub fn same_losses(world: &mut World, told: &Notices) {
    let mut got: Vec<&Loss> = losses(told).filter(|loss| loss.address.is_some()).collect();
    let expected = std::mem::take(&mut world.model.losses);
    let all = losses(told).count();
    for loss in &expected {
        let address = world.shell.address(loss.address);
        let is_it = |got: &&Loss| {
            got.key == at(loss.place)
                && *got.owner == *loss.owner.as_bytes()
                && got.address.as_ref() == Some(&address)
                && loss.reasons.contains(&got.reason)
        };
        let Some(its) = got.iter().position(is_it) else {
            panic!("{loss:?} was not told, but of {all} losses {got:?}");
        };
        got.remove(its);
    }
    assert!(got.is_empty(), "told, and not lost: {got:?}");
    let closed = closed(world, told);
    assert_eq!(closed, world.model.lost, "connections to be closed");
}

/// Whoever is to know that somebody waits is told, and nobody else.
pub fn same_hints(world: &mut World, told: &Notices) {
    let got = told.iter().filter_map(|notice| match notice {
        Notice::Wanted { address, .. } => Some(address),
        Notice::Answer { to, wanted, .. } => to.as_ref().filter(|_| *wanted),
        _ => None,
    });
    let mut got: BTreeSet<&Address> = got.collect();
    let expected = std::mem::take(&mut world.model.hints).into_iter();
    let expected: Vec<Address> = expected.map(|to| world.shell.address(to)).collect();
    let expected: BTreeSet<&Address> = expected.iter().collect();
    // Of what ends at the same moment a wait may come first, and another one be the first then.
    let is_lost = |to: &Address| {
        let mut lost = told.iter().filter_map(|notice| match notice {
            Notice::Lost(loss) => loss.address.as_ref(),
            _ => None,
        });
        lost.any(|address| address == to)
    };
    got.retain(|to| expected.contains(to) || !is_lost(to));
    assert_eq!(got, expected, "who was told that somebody waits");
    for ((place, owner), hint) in &world.model.hinted {
        let hints = &world.shell.core.watchdogs.hints;
        let since = hints.since(&at(*place), owner.as_bytes());
        assert_eq!(since.is_some(), hint.told.is_some(), "{owner} on {place:?}");
    }
}

/// Each name is that of the same holds.
pub fn same_addresses(world: &World) {
    let (model, shell) = (&world.model, &world.shell);
    if shell.core.sessions.is_empty() && model.holds.iter().all(|h| h.notify.is_none()) {
        return;
    }
    let named = |hold: &&Hold| hold.notify.is_some();
    let named: Vec<&Hold> = model.holds.iter().filter(named).collect();
    let keys: BTreeSet<Place> = model.holds.iter().map(|hold| hold.place).collect();
    for place in keys {
        let key: Key = at(place);
        for owner in model.owners_at(place) {
            let hold = shell.core.locks.hold(&key, owner.as_bytes());
            let watch = hold.and_then(|hold| hold.watch.as_ref());
            let taken = watch.iter().flat_map(|watch| &watch.taken);
            let got = taken.filter_map(|taken| Some((taken.mode as u8, taken.notify.clone()?)));
            let got: BTreeSet<_> = got.collect();
            let theirs = named
                .iter()
                .filter(|h| (h.place, h.owner) == (place, owner));
            let address = |hold: &Hold| Some(shell.address(hold.notify?));
            let expected = theirs.filter_map(|hold| Some((mode(hold.mode) as u8, address(hold)?)));
            let expected: BTreeSet<_> = expected.collect();
            assert_eq!(got, expected, "where {owner} on {place:?} is told");
        }
    }
}

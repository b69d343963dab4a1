//! What changes places with what, and nothing that matters is different.

use crate::lock::tests::family::model::{Owner, Place};
use crate::lock::tests::family::ops::{Seat, OWNERS, SEATS};
use crate::lock::tests::family::others::lease_key;
use crate::lock::tests::family::shell::at;
use crate::lock::watchdog::Bond;
use crate::lock::Key;

/// In which order owners, seats and places are gone through, and so what they are
/// called: a state is the same as one in which some of them have changed places.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Names {
    pub owners: Vec<Owner>,
    pub seats: Vec<Seat>,
    pub places: Vec<Place>,
}

impl Names {
    /// Each is called what it is.
    pub fn plain(places: &[Place]) -> Self {
        Self {
            owners: OWNERS.to_vec(),
            seats: (0..SEATS).collect(),
            places: places.to_vec(),
        }
    }

    /// These names, given after the other ones.
    pub fn after(&self, first: &Self) -> Self {
        let mut places = self.places.clone();
        places.sort_unstable();
        let plain = Self::plain(&places);
        Self {
            owners: again(&plain.owners, &self.owners, &first.owners),
            seats: again(&plain.seats, &self.seats, &first.seats),
            places: again(&plain.places, &self.places, &first.places),
        }
    }
}

fn again<T: PartialEq + Copy>(plain: &[T], names: &[T], first: &[T]) -> Vec<T> {
    let name = |one: &T| plain.iter().position(|other| other == one);
    first.iter().map(|one| names[name(one).unwrap()]).collect()
}

/// Names, and the keys that they stand for.
pub struct Labels {
    pub names: Names,
    pub keys: Vec<Key>,
    pub bonds: Vec<Bond>,
    pub lease_keys: Vec<Key>,
    pub fields: Vec<Vec<u8>>,
    /// Requests have NOTIFY: which connection has taken a hold makes a difference.
    pub tells: bool,
    /// Connections may be silent: until when a lease was asked for makes a difference.
    pub hears: bool,
}

impl Labels {
    pub fn new(names: &Names, tells: bool, hears: bool) -> Self {
        let bond = |(place, owner): (&Place, &Owner)| (at(*place), owner.as_bytes().into());
        let leases = |(place, owner): (&Place, &Owner)| {
            let (place, owner) = (*place, *owner);
            (1..=LEASE_KEYS).map(move |index| lease_key(place, owner, index))
        };
        let owners = names.owners.iter();
        Self {
            keys: names.places.iter().map(|place| at(*place)).collect(),
            bonds: all(names).map(bond).collect(),
            lease_keys: all(names).flat_map(leases).collect(),
            fields: owners
                .flat_map(|o| [o.to_string(), format!("{o}:write")])
                .map(String::into_bytes)
                .collect(),
            names: names.clone(),
            tells,
            hears,
        }
    }
}

/// No owner nests deeper here.
pub const LEASE_KEYS: usize = 2;

fn all(names: &Names) -> impl Iterator<Item = (&Place, &Owner)> {
    let places = names.places.iter();
    places.flat_map(|place| names.owners.iter().map(move |owner| (place, owner)))
}

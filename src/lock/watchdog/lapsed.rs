//! How far it was looked for leases that ran out behind the gate.

use std::collections::{BTreeMap, BTreeSet};

use crate::lock::key::Bytes;
use crate::lock::{Key, Owner, WallMs};

/// How far that was looked after, since something was last written.
#[derive(Clone, Debug, Default)]
pub struct Lapsed {
    /// The leases of each database were gone through up to here.
    pub upto: BTreeMap<i32, (WallMs, Bytes)>,
    /// What is watched on the locks that it has, by when it ends: readers of one
    /// lock end one by one.
    pub ends: BTreeSet<(WallMs, Key, Owner)>,
}

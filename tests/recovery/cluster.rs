//! In a cluster only what lies in a slot of this node is presumed.

use super::{late, plain, presumed, soon};
use crate::support::{slot_of, two_nodes, Ask, RawClient};

/// A slot that another node owns, with a key of it left here by a node that did not know.
#[test]
fn a_key_of_another_nodes_slot_is_left_out() {
    let (one, two) = two_nodes();
    let (mut here, mut there) = (one.raw(), two.raw());
    let until = soon();
    let (ours, others) = ("ours", "others");
    assert_ne!(slot_of(ours), slot_of(others));
    here.succeed(&plain(ours, until));
    // Keys that are imported are there before their slot is.
    let slot = slot_of(others);
    let id = here.text("CLUSTER MYID");
    there.ok(&format!("CLUSTER SETSLOT {slot} IMPORTING {id}"));
    for line in plain(others, late()) {
        crate::support::asking(&mut there, &line);
    }
    let reload = |client: &mut RawClient| client.ok("DEBUG RELOAD");
    reload(&mut here);
    presumed(&mut here, 1);
    // On its way, and here.
    reload(&mut there);
    presumed(&mut there, 1);
    there.ok(&format!("CLUSTER SETSLOT {slot} STABLE"));
    assert_eq!(there.int("DBSIZE"), 1);
    there.ok("CONFIG SET rlock.recovery-scan no");
    presumed(&mut there, 0);
    there.ok("CONFIG SET rlock.recovery-scan yes");
    presumed(&mut there, 0);
    // Redis 8.4 and newer show nobody a key of another node's slot.
    let version = two.version();
    if version.is_valkey() || !version.at_least(8, 4) {
        assert!(there.counter("rlock_recovery_scanned") >= 1);
    }
    // And it ends as elsewhere.
    let mut waiter = crate::support::Waiter::new(&one, ours, "b");
    waiter.token();
    one.unharmed();
    two.unharmed();
}

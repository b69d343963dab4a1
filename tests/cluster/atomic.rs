//! Valkey's atomic slot migration: a slot's keys are copied while the old node goes on,
//! and change hands at once.

use super::reshard::reshard;
use crate::support::{
    both_ways, code, eventually, has_subcommand, id, map, slot_of, text, token, two_nodes, Ask,
    Bound, RawClient, Server, Way, LONG,
};

/// Two nodes, if they can do it.
fn two_that_can() -> Option<(Server, Server)> {
    let (one, two) = two_nodes();
    let can = has_subcommand(&mut one.raw(), "MIGRATESLOTS");
    can.then_some((one, two))
}

fn migrate(one: &Server, two: &Server, first: u16, last: u16) {
    let to = id(&mut two.raw());
    one.raw().ok(&format!(
        "CLUSTER MIGRATESLOTS SLOTSRANGE {first} {last} NODE {to}"
    ));
}

fn state(client: &mut RawClient) -> String {
    let jobs = client.list("CLUSTER GETSLOTMIGRATIONS");
    let job = jobs.into_iter().next().map(map).expect("a migration");
    text(job["state"].clone())
}

#[test]
fn slots_that_migrate_at_once_break_no_lock() {
    let Some((one, two)) = two_that_can() else {
        return;
    };
    reshard(&one, &two, "counter", |one, two| {
        migrate(one, two, 0, 39);
        eventually("the slots have migrated", || {
            state(&mut one.raw()) == "success"
        });
    });
}

both_ways!(what_happens_to_locks_while_their_slot_is_copied_is_known_where_it_goes);
fn what_happens_to_locks_while_their_slot_is_copied_is_known_where_it_goes(by: Way) {
    let Some((one, two)) = two_that_can() else {
        return;
    };
    let (mut here, mut there) = (one.raw(), two.raw());
    here.ok("DEBUG SLOTMIGRATION PREVENT-PAUSE 1");
    for reader in ["a", "b"] {
        here.take_read("{k}doc", reader);
    }
    let ends = here.ask("RLOCK.ACQUIRE {k}doc short 1500 READ");
    token(ends);
    here.token("RLOCK.ACQUIRE {k}lock a 1500");
    let mut granted = by.wait(&one, "{k}lock", "b");
    let mut waits = by.write(&one, "{k}doc", "w");
    // Renewed while it is copied, and long enough for what is looked at then on a busy machine.
    let mut watched = Bound::with(&one, "{k}watched a 4000 READ");
    let slot = slot_of("k");
    migrate(&one, &two, slot, slot);
    eventually("all is copied", || {
        state(&mut one.raw()) == "waiting-to-pause"
    });
    // By the timer, not by a client's command.
    let given = granted.token();
    eventually("the short lease is over", || {
        here.hash("{k}doc") == "a=1 b=1 mode=read"
    });
    watched.client.in_step();
    here.ok("DEBUG SLOTMIGRATION PREVENT-PAUSE 0");
    assert_eq!(code(&waits.end()), "MOVED");
    assert!(watched.client.is_closed());
    eventually("the slot has arrived", || {
        there.text("CLUSTER NODES").contains(&format!(" {slot}\n"))
    });
    assert_eq!(there.held_by("{k}doc"), "a read 1, b read 1");
    assert_eq!(there.held_by("{k}lock"), "b exclusive 1");
    assert_eq!(there.held_by("{k}watched"), "a read 1");
    assert!(there.refused("RLOCK.ACQUIRE {k}doc w 1000 WRITE"));
    for reader in ["a", "b"] {
        assert_eq!(
            there.int(&format!("RLOCK.RELEASE {{k}}doc {reader} READ")),
            0
        );
    }
    there.token("RLOCK.ACQUIRE {k}doc w 1000 WRITE");
    assert_eq!(there.int("RLOCK.RELEASE {k}lock b"), 0);
    let next = there.token(&format!("RLOCK.ACQUIRE {{k}}lock c {LONG}"));
    assert!(next > given);
    one.alive();
}

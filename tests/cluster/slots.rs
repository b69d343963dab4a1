//! Locks of one node that lie in different slots: what a command on one leaves for
//! another is done where clients find it.

use redis::Value;

use crate::support::{both_ways, cluster, int, keys_in_slot, slot_of, Ask, Way};

both_ways!(a_lock_that_ends_before_a_command_on_another_slot_has_one_holder);
fn a_lock_that_ends_before_a_command_on_another_slot_has_one_holder(by: Way) {
    let server = cluster();
    let mut client = server.raw();
    client.token("RLOCK.ACQUIRE k a 300");
    let mut waiter = by.wait(&server, "k", "b");
    // The lease ends in a sleep of the server's, and is found over in the same turn of
    // its loop in which the other lock is asked for.
    let replies = client.ask_all(&[
        "DEBUG SLEEP 0.6",
        "EXISTS k",
        "RLOCK.ACQUIRE other c 100000",
    ]);
    assert_eq!(replies[1], Value::Int(0));
    int(replies[2].clone());
    waiter.token();
    assert_eq!(client.hash("k"), "b=1");
    assert!(client.refused("RLOCK.ACQUIRE k thief 1000"));
    for key in ["k", "other"] {
        let slot = i64::from(slot_of(key));
        assert_eq!(client.int(&format!("CLUSTER KEYSLOT {key}")), slot);
        assert_eq!(keys_in_slot(&mut client, slot), [key]);
    }
}

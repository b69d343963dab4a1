//! Whether a key is this node's to act on, in a cluster.

use super::queue::Which;
use super::{reconcile, Decision, Key, Reason, Refusal, Slot};

/// Whether the key is this node's to act on: its slot is, or is on its way and the key is
/// here. If it is not, what is known of the key's holds is void, and those who wait for
/// it are looked at again later.
pub fn is_ours(d: &mut Decision<'_>, key: &Key) -> bool {
    let slot = d.ks.slot(key);
    let ours = match slot {
        Slot::Ours => true,
        Slot::Migrating => !d.ks.look(key, &[]).is_free(),
        Slot::Others => false,
    };
    if !ours {
        d.core.heard.forget(&mut d.core.locks, key);
        d.core.due.forget(key);
        reconcile::drop_holders(d, key, Reason::Moved);
        // Whom that lets in may not be ours to say: its queue is left alone.
        d.core.subscribers.forget(key);
        if slot == Slot::Others {
            let moved = Refusal::SlotMoved { key: key.clone() };
            d.core.queues.send_away(key, Which::Queued, &moved);
        }
        if d.core.knows(key.db, &key.name) {
            d.core.away.look_again(key);
        }
    }
    ours
}

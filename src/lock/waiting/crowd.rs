//! How many may wait: what the operator has set, `rlock.max-waiters*`.

use crate::lock::counters::Counters;
use crate::lock::queue::Waiter;
use crate::lock::{Core, Crowd, Refusal};

/// One more request wants to wait: refused where as many wait as may.
pub fn admit(core: &mut Core, waiter: &Waiter) -> Result<(), Refusal> {
    let most = core.rules.most_waiters;
    let (queues, client) = (&core.queues, waiter.want.client);
    let refuse = |which, most| Err(Refusal::TooManyWait { which, most });
    let is_full = |key: &_| queues.line(key).queue.len() >= most.of_a_key;
    let refused = if queues.len() >= most.in_all {
        refuse(Crowd::Everybody, most.in_all)
    } else if let Some(key) = waiter.keys.iter().find(|key| is_full(key)) {
        refuse(Crowd::AtKey(key.clone()), most.of_a_key)
    } else if client.is_some_and(|client| core.sessions.waiting(client) >= most.of_a_client) {
        refuse(Crowd::OnConnection, most.of_a_client)
    } else {
        Ok(())
    };
    if refused.is_err() {
        Counters::up(&mut core.counters.turned_away);
    }
    refused
}

//! Grants under way.
//!
//! A grant is not done when it is decided. Its reply leaves the server a moment
//! later, and until then the client can be killed or unblocked by somebody else.
//! So a grant is remembered until the shell says that the reply is out
//! ([`Core::confirm`]) or that it never will be ([`Note::Lost`]), exactly one of
//! them.
//!
//! [`Note::Lost`]: super::Note::Lost

use super::queue::Waiter;
use super::stats::Counters;
use super::table::Hold;
use super::{release, sight, subscribers, watchdog};
use super::{Ask, Bytes, Core, Decision, Key, Mode, Outcome, WaiterId};

/// A grant on its way to its client.
#[derive(Clone, Debug)]
pub struct Grant {
    /// Each with the token of the hold there.
    pub keys: Vec<(Key, i64)>,
    pub owner: Bytes,
    pub mode: Mode,
    pub client: u64,
    pub watched: bool,
}

impl Core {
    /// A request for several keys has them, and its reply goes out a little later: its
    /// number until then.
    pub fn on_its_way(&mut self, names: &[&[u8]], ask: &Ask<'_>) -> WaiterId {
        let id = self.queues.number();
        let keys = names.iter().map(|name| self.locks.key(ask.db, name));
        let hold = |key: &Key| self.locks.get(key)?.hold(ask.owner)?.token;
        let keys = keys.filter_map(|key| Some((hold(&key)?, key)));
        let grant = Grant {
            keys: keys.map(|(token, key)| (key, token)).collect(),
            owner: Bytes::from(ask.owner),
            mode: ask.mode,
            client: ask.client,
            watched: ask.watch,
        };
        self.grants.insert(id, grant);
        id
    }

    /// A request that is answered a little later, and has nothing to lose by that.
    pub fn number(&mut self) -> WaiterId {
        self.queues.number()
    }

    /// The reply of a grant is out: it stands.
    pub fn confirm(&mut self, id: WaiterId) {
        self.grants.remove(&id);
    }
}

pub fn granted(
    d: &mut Decision<'_>,
    id: WaiterId,
    waiter: &Waiter,
    token: i64,
    keys: Vec<(Key, i64)>,
) {
    let waited = d.now.mono_us.saturating_sub(waiter.since);
    d.core.counters.waits.add(waited);
    for (key, _) in &keys {
        subscribers::passed(d, key, waiter.want.mode != Mode::Exclusive);
    }
    let grant = Grant {
        keys,
        owner: waiter.want.owner.clone(),
        mode: waiter.want.mode,
        client: waiter.want.client,
        watched: waiter.want.watch,
    };
    // The reply to the request that is decided leaves with the decision.
    if d.asking != Some(id) {
        d.core.grants.insert(id, grant);
    }
    d.answer(id, Outcome::Granted(token));
}

/// The reply of a grant will never reach its client: the holds end as if they
/// were released.
pub fn take_back(d: &mut Decision<'_>, id: WaiterId) {
    let Some(grant) = d.core.grants.remove(&id) else {
        return;
    };
    let mut any = false;
    for (key, token) in &grant.keys {
        let look = sight::see(d, key, &grant.owner);
        let entry = d.core.locks.get(key);
        let known = entry.and_then(|entry| entry.hold(&grant.owner));
        let shared = entry.and_then(|entry| entry.shared());
        let first = shared.and_then(|shared| shared.party(&grant.owner)?.first);
        let its = |hold: &&Hold| [hold.token, first].contains(&Some(*token));
        let Some(hold) = known.filter(its) else {
            continue;
        };
        // Released meanwhile, by another connection of its owner's, or ended
        // with its own.
        let (client, mode) = (grant.client, grant.mode);
        let is_there = match &hold.watch {
            Some(watch) => watch.has(mode, client),
            None => hold.client == client,
        };
        if !is_there {
            continue;
        }
        any = true;
        watchdog::on_released(d.core, (key, &grant.owner), mode, Some(client));
        release::end_holds(d, key, &grant.owner, look, &[(mode, 1)]);
    }
    if any {
        Counters::up(&mut d.core.counters.taken_back);
    }
}

//! Who holds a lock, as far as is known: what is put down when that changes.

use super::Locks;
use crate::lock::table::hold::{Begun, Hold};
use crate::lock::table::records::New;
use crate::lock::table::shared::{Change, Shared};
use crate::lock::{ClientId, Key, Lease, Mode, Token, WallMs, WallUs};

impl Locks {
    /// Records the one owner of a plain lock, and when it ends. The hold that is over with that.
    pub fn set_plain(&mut self, key: &Key, hold: Hold, ends: Option<WallMs>) -> Option<Hold> {
        self.believe(key);
        let table = self.tables.get_or_new(key.db);
        let (entry, held, leases) = table.entry(&key.name, self.stamp);
        held.lock(entry.is_held(), true);
        held.begins(hold.since());
        let was_heard = entry.is_heard();
        let was = entry.plain.replace(hold);
        let since = was.as_ref().and_then(Hold::since);
        held.ends(since);
        self.over.extend(since);
        let from = std::mem::replace(&mut entry.deadline, ends);
        entry.foreign = false;
        self.heard.change(&key.name, was_heard, entry.is_heard());
        leases.change(&key.name, from, ends);
        was
    }

    /// Records the one owner of a plain lock of which nothing was known, and nothing else is to be.
    pub fn keep(
        &mut self,
        key: &Key,
        owner: &[u8],
        (begun, client): (Begun, Option<ClientId>),
        ends: WallMs,
    ) {
        let (table, stamp) = (self.tables.get_or_new(key.db), self.stamp);
        let (name, hash) = (&key.name[..], table.entries.hash(&key.name));
        table.held.lock(false, true);
        table.held.begins(Some(begun.since));
        table.records.insert(
            hash,
            New {
                name,
                owner,
                begun,
                client,
                ends,
                stamp,
            },
        );
    }

    /// A hold that was found has a token from now on, and is held since then, as far as is
    /// known.
    pub fn begin(&mut self, key: &Key, owner: &[u8], token: Token, now: WallUs) {
        let table = self.tables.get_mut(key.db);
        let Some((entry, held, _)) = table.and_then(|table| table.known(&key.name)) else {
            return;
        };
        entry.change_hold(owner, |hold| {
            if hold.begun.is_none() {
                hold.begun = Some(Begun { token, since: now });
                held.begins(Some(now));
            }
        });
    }

    /// The one hold of an owner has this token from now on. It is held since when it was.
    pub fn renew_token(&mut self, key: &Key, owner: &[u8], mode: Mode, token: Token, now: WallUs) {
        self.begin(key, owner, token, now);
        self.change_hold(key, owner, |hold| hold.renew_token(mode, token));
    }

    /// Takes away what is known of a plain hold.
    pub fn take_plain(&mut self, key: &Key) -> Option<Hold> {
        let table = self.tables.get_mut(key.db)?;
        let (entry, held, _) = table.known(&key.name)?;
        let was_heard = entry.is_heard();
        let hold = entry.plain.take()?;
        self.heard.change(&key.name, was_heard, entry.is_heard());
        held.lock(true, entry.is_held());
        held.ends(hold.since());
        self.over.extend(hold.since());
        Some(hold)
    }

    /// Its plain hold may be another one of the same owner's: no token is known of it.
    pub fn doubt(&mut self, key: &Key) {
        let Some(entry) = self.get(key) else { return };
        let (begun, ends) = (entry.plain().and_then(|hold| hold.begun), entry.deadline);
        if let Some(mut hold) = begun.and_then(|_| self.take_plain(key)) {
            hold.begun = None;
            self.set_plain(key, hold, ends);
        }
    }

    /// Changes what is known of a lock that several may hold, and when it is due.
    pub fn change_shared(&mut self, key: &Key, change: impl FnOnce(&mut Shared)) {
        self.believe(key);
        let table = self.tables.get_or_new(key.db);
        let (entry, held, _) = table.entry(&key.name, self.stamp);
        let (was_held, was) = (entry.is_held(), entry.shared.is_some());
        let was_heard = entry.is_heard();
        let shared = entry.shared.get_or_insert_default();
        change(shared);
        for (since, change) in shared.take_changes() {
            if change == Change::Begins {
                held.begins(Some(since));
            } else {
                held.ends(Some(since));
                self.over.push(since);
            }
        }
        entry.foreign = false;
        let mut to = shared.first_end();
        if shared.is_empty() && entry.plain.is_none() {
            entry.shared = None;
            to = None;
        }
        let is = entry.shared.is_some();
        held.lock(was_held, entry.is_held());
        self.heard.change(&key.name, was_heard, entry.is_heard());
        self.lengths.change(key.name.len(), was, is);
        self.set_deadline(key, to);
    }

    /// A lock that several may hold ends then, and an owner's own lease so, with so many holds.
    pub fn change_ends(
        &mut self,
        key: &Key,
        owner: &[u8],
        expires: Option<WallMs>,
        its: Option<(Lease, i64)>,
    ) {
        self.change_shared(key, |shared| {
            shared.expires = expires;
            if let Some((lease, holds)) = its {
                shared.change(owner, |hold| (hold.lease, hold.holds) = (lease, holds));
            }
        });
    }

    /// Puts this in the place of what is known of a lock that several may hold.
    pub fn set_shared(&mut self, key: &Key, shared: Shared) {
        self.change_shared(key, |known| known.replace(shared));
    }
}

//! What the model remembers.

use std::collections::BTreeSet;

use super::{Page, NONE};
use crate::lock::tests::family::model;
use crate::lock::tests::family::walk::names::LEASE_KEYS;
use crate::lock::tests::family::walk::taken::PATIENCE;
use crate::lock::types::Next;
use crate::lock::{Core, WallMs};

impl Page<'_> {
    pub fn model(&mut self) {
        let model = &self.world.model;
        for waiter in &model.queue {
            self.id(self.world.ids[waiter.id]);
            self.flag(waiter.upgrades);
        }
        // In the order in which they were given, for a grant is lost by its place there.
        for grant in &model.grants {
            self.id(self.world.ids[grant.waiter]);
            self.flag(grant.queue);
        }
        let granted: BTreeSet<u64> = model
            .grants
            .iter()
            .flat_map(|g| &g.holds)
            .copied()
            .collect();
        // What was given for which hold matters to a request that names a token: to none here.
        assert!(model.aside.is_empty(), "nobody PERSISTs in a walk");
        self.model_permits();
        let names = self.names;
        for place in &names.places {
            match model.keys.get(place) {
                None => self.put(NONE),
                Some(slot) => {
                    self.put(slot.kind as u8);
                    self.moment(Some(WallMs(slot.ends)));
                    self.flag(slot.by_hand);
                    self.flag(slot.known);
                }
            }
            self.flag(model.left.contains_key(place));
            for owner in &names.owners {
                let token = model.tokens.get(&(*place, *owner));
                self.token(1, token.map(|token| *token as i64));
                for hold in model.holds_at(*place).filter(|hold| hold.owner == *owner) {
                    self.model_hold(hold, granted.contains(&hold.id));
                }
                for index in 1..=LEASE_KEYS {
                    let which = (*place, *owner, index);
                    let ends = model.leases.get(&which);
                    self.moment(Some(WallMs(ends.copied().unwrap_or(0))));
                    self.flag(model.squats.contains(&which));
                }
            }
        }
    }

    /// Whether it is silent, if it has ever said that it is alive, and whether it is looked at that: a
    /// moment more or less makes no difference.
    pub fn silence(&mut self, client: model::Client) {
        let model = &self.world.model;
        let Some(beat) = model.hearing.beats.get(&client) else {
            return self.put(NONE);
        };
        let stands_still = model.mono_us - model.hearing.last_turn > PATIENCE * 1000;
        let is_silent = beat.until <= model.hearing.listened;
        let to_read = model.hearing.stood_still;
        self.flag(is_silent);
        self.flag(stands_still);
        self.put(to_read.map_or(NONE, |left| left));
    }

    /// Who was told that somebody waits, and who was first when it was looked at all of them.
    pub fn hints(&mut self, core: &Core) {
        let hints = &core.watchdogs.hints;
        assert!(!hints.is_stirred());
        let labels = self.labels;
        for (key, owner) in labels.bonds.iter().filter(|_| !hints.is_empty()) {
            for next in hints.told_and_seen(key, owner) {
                match next {
                    Some(Next::Waiter(id)) => self.id(id),
                    Some(Next::Subscribers) | None => self.put(NONE),
                }
            }
        }
    }

    fn model_hold(&mut self, hold: &model::Hold, granted: bool) {
        self.put(hold.mode as u8);
        self.flag(granted);
        self.flag(hold.watch.is_some());
        self.taker(hold.client, hold.watch.is_some());
        let to = hold.notify.map(|to| self.world.shell.address(to));
        self.address(to.as_ref());
        self.flag(hold.wanted);
    }
}

//! Permits, in the core, in the hash, and in the model.

use super::{Page, NONE};
use crate::lock::kind;
use crate::lock::table::Shared;
use crate::lock::tests::family::others::Fields;
use crate::lock::{Kind, Share, WallMs};

impl Page<'_> {
    pub fn share(&mut self, share: Share) {
        self.count(usize::try_from(share.count()).unwrap());
        self.count(usize::try_from(share.limit()).unwrap());
    }

    /// What the core knows of the permits of a lock.
    pub fn known_permits(&mut self, shared: &Shared) {
        let Some(pool) = shared.pool() else {
            return self.put(NONE);
        };
        for number in [
            pool.asked,
            pool.limit,
            pool.out,
            shared.permits(),
            shared.stuck(),
        ] {
            self.count(usize::try_from(number).unwrap());
        }
        let names = self.names;
        for owner in &names.owners {
            let hold = shared.hold(owner.as_bytes());
            self.flag(hold.is_some_and(|hold| hold.waits));
        }
    }

    /// The fields of a hash: of permits how many, and whether their lease is over.
    pub fn fields(&mut self, fields: &Fields) {
        self.count(fields.len());
        let mode = fields.get(&b"mode"[..]);
        self.text.extend(mode.into_iter().flatten());
        let is_pool = matches!(kind::look(fields, &[], None).kind, Kind::Permits(_));
        let labels = self.labels;
        for field in &labels.fields {
            self.put(b' ');
            let Some(value) = fields.get(field) else {
                continue;
            };
            match kind::permit_holder(field, value).filter(|_| is_pool) {
                Some(holder) => {
                    self.count(usize::try_from(holder.holds).unwrap());
                    self.moment(holder.lease.end());
                }
                None => self.text.extend(value),
            }
        }
    }

    /// What the model knows of them.
    pub fn model_permits(&mut self) {
        let model = &self.world.model;
        for place in &self.names.places {
            let Some(limit) = model.limits.get(place) else {
                self.put(NONE);
                continue;
            };
            self.count(limit.asked);
            self.count(limit.now);
            for owner in &self.names.owners {
                let ends = model.permit_ends.get(&(*place, *owner));
                self.moment(Some(WallMs(ends.copied().unwrap_or(0))));
            }
        }
    }
}

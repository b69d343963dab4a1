//! RENEW and MRENEW in a random run.

use super::model::{Place, Renew};
use super::ops::{Whose, Words};
use super::sessions::wants_hints;
use super::world::{Got, World};

impl World {
    pub fn renew(&mut self, whose: Whose, lease: i64, watch: bool, notify: Option<Words>) {
        let (place, owner, mode, seat) = self.who(whose);
        if let Some(client) = self.speaks(seat) {
            let to = self.address(client, notify);
            let renew = Renew {
                place,
                owner,
                mode,
                lease,
                bind: watch.then_some(client),
                notify: to,
                wanted: wants_hints(notify, to),
            };
            if renew.binds() {
                // Else it is left open which of its holds a grant is that is lost.
                self.confirm(|grant| grant.client == client);
            }
            let got = self.shell.renew(&renew);
            self.renamed = renew.notify.filter(|_| got.is_ok());
            let got = got.map_or_else(Got::Refused, |()| Got::Done);
            self.replies = Some((got, self.model.renew(&renew)));
        }
    }

    pub fn renew_many(&mut self, keys: &[Place], whose: Whose, lease: i64) {
        let (_, owner, _, seat) = self.who(whose);
        if self.speaks(seat).is_some() {
            let got = self.shell.renew_many(keys, owner, lease);
            let got = got.map_or_else(Got::Refused, |()| Got::Done);
            self.replies = Some((got, self.model.renew_many(keys, owner, lease)));
        }
    }
}

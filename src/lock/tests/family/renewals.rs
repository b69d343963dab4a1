//! RENEW and MRENEW in a random run.

use super::model::{Place, Renew};
use super::ops::{Renewing, Whose};
use super::sessions::wants_hints;
use super::world::{Got, World};

impl World {
    pub fn renew(&mut self, words: Renewing) {
        let (place, owner, mode, seat) = self.who(words.whose);
        if let Some(client) = self.speaks(seat) {
            let to = self.address(client, words.notify);
            let renew = Renew {
                place,
                owner,
                mode,
                lease: words.lease,
                bind: words.watch.then_some(client),
                notify: to,
                wanted: wants_hints(words.notify, to),
                anew: words.anew,
            };
            if renew.binds() {
                // Else it is left open which of its holds a grant is that is lost.
                self.confirm(|grant| grant.client == client);
            }
            let got = self.shell.renew(&renew);
            self.renamed = renew.notify.filter(|_| got.is_ok());
            let done = |token: Option<_>| token.map_or(Got::Done, Got::Token);
            let got = got.map_or_else(Got::Refused, done);
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

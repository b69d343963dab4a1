//! RENEW and MRENEW.

use super::{Address, Client, Event, Hold, Mode, Model, Owner, Place, Reply, Token, Watch, Why};

/// A renewal of what an owner holds.
#[derive(Clone, Copy, Debug)]
pub struct Renew {
    pub place: Place,
    pub owner: Owner,
    pub mode: Mode,
    pub lease: i64,
    /// With WATCHDOG, for this connection.
    pub bind: Option<Client>,
    /// By NOTIFY, with WANTED or without.
    pub notify: Option<Address>,
    pub wanted: bool,
    /// Its hold has a new token: TOKEN.
    pub anew: bool,
}

impl Renew {
    pub fn binds(&self) -> bool {
        self.bind.is_some() || self.notify.is_some()
    }
}

impl Model {
    pub fn renew(&mut self, renew: &Renew) -> Reply {
        let (place, owner, mode, lease) = (renew.place, renew.owner, renew.mode, renew.lease);
        self.know([&place]);
        if let Err(why) = self.held(place, owner, mode) {
            return Reply::Refused(vec![why]);
        }
        let its = |hold: &Hold| (hold.place, hold.owner, hold.mode) == (place, owner, mode);
        if let Some(to) = renew.notify {
            let is_its = |hold: &Hold| its(hold) && hold.notify == Some(to);
            if self.is_tag_known(to, None) && !self.holds.iter().any(is_its) {
                return Reply::Refused(vec![Why::TagInUse]);
            }
        }
        let all = self.holds_at(place);
        let all = all.filter(|hold| hold.owner == owner).count();
        if renew.anew && all > 1 {
            return Reply::Refused(vec![Why::Held]);
        }
        self.set_lease(place, owner, self.now_ms() + lease);
        let since = self.now_ms();
        if let Some(client) = renew.bind {
            self.bind_all(place, owner, client);
        }
        for hold in &mut self.holds {
            let is_its = (hold.place, hold.owner) == (place, owner);
            if is_its && (hold.watch.is_some() || renew.bind.is_some()) {
                hold.watch = Some(Watch {
                    lease,
                    longest: lease,
                    since,
                    asked: since + lease,
                });
            }
            // Its owner knows of it, whatever becomes of the reply to an earlier grant.
            for grant in &mut self.grants {
                grant
                    .holds
                    .retain(|id| !(is_its && renew.binds() && *id == hold.id));
            }
        }
        self.has_other_lease((place, owner), lease);
        self.bind_address((renew.notify, renew.wanted), its);
        self.begin_hints((place, owner), lease, renew.wanted);
        let token = renew.anew.then(|| self.renew_token(place, owner, mode));
        self.tell(place, Event::Renewed, true);
        self.settle();
        token.map_or(Reply::Done, |token| Reply::Token(vec![token]))
    }

    /// The one hold of an owner has a new token, and none that it had before. An earlier grant
    /// whose reply is lost told of another.
    fn renew_token(&mut self, place: Place, owner: Owner, mode: Mode) -> Token {
        let token = self.next_token();
        self.tokens.insert((place, owner), token);
        self.given.insert((place, owner, mode), vec![token]);
        let holds = &self.holds;
        let is_its = |id: &u64| {
            let mut its = holds
                .iter()
                .filter(|h| (h.place, h.owner) == (place, owner));
            its.any(|hold| hold.id == *id)
        };
        for grant in &mut self.grants {
            grant.holds.retain(|id| !is_its(id));
        }
        token
    }

    pub fn renew_many(&mut self, places: &[Place], owner: Owner, lease: i64) -> Reply {
        let refused = |place: &Place| self.held(*place, owner, Mode::Plain).err();
        let reasons: Vec<Why> = places.iter().filter_map(refused).collect();
        if !reasons.is_empty() {
            return Reply::Refused(reasons);
        }
        for place in places {
            self.renew(&Renew {
                place: *place,
                owner,
                mode: Mode::Plain,
                lease,
                bind: None,
                notify: None,
                wanted: false,
                anew: false,
            });
        }
        Reply::Done
    }
}

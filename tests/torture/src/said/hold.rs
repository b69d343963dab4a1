//! A hold as its program saw it: from the answer that granted it on, and what its client said of
//! it afterwards.

use rlock_torture::saw::{Ask, Told};

pub const NEVER: u64 = u64::MAX;
/// So long ago its lock may have been lost, and the client of a use know nothing of it yet, us.
const UNKNOWN: u64 = 1_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Plain,
    Read,
    Write,
    Permits(u64),
}

impl Mode {
    pub fn goes_with(self, other: Self) -> bool {
        match (self, other) {
            (Self::Read, Self::Read) => true,
            // They are counted.
            (Self::Permits(_), Self::Permits(_)) => true,
            _ => false,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Hold {
    pub driver: usize,
    pub life: u32,
    pub name: String,
    pub keys: Vec<String>,
    pub mode: Mode,
    pub watchdog: bool,
    /// us; none: it has no such bound.
    pub max: Option<u64>,
    /// us, as it was asked for.
    pub lease: u64,
    /// Redisson's locks have none, but for its fenced ones.
    pub token: Option<i64>,
    pub call: u64,
    pub start: u64,
    /// It is a use of a sticky lock: that was acquired some time before, and is said to be lost by the
    /// end of the use alone.
    pub sticky: bool,
    /// Its program has asked for its token. (Of a use it need not.)
    pub has_token: bool,
    /// What befell its lock from then on may be its loss.
    pub since: u64,
    /// Its client said that it has it, surely at these moments or later, and not after those.
    pub has: Vec<(u64, u64)>,
    /// When its last release was asked for.
    pub released: u64,
    /// To give way.
    pub gave_way: bool,
    /// Its lease is over at the earliest, and at the latest, at these moments, by the client's word.
    pub lease_from: u64,
    pub lease_to: u64,
    /// When its client said that it is lost: by events; to requests for its state; to others.
    pub events: Vec<Told>,
    pub states: Vec<u64>,
    pub others: Vec<u64>,
}

impl Hold {
    /// What an acquisition became, if it was granted.
    pub fn granted(ask: &Ask) -> Option<Self> {
        let start = ask.reply?;
        let token = ask.out.get("ok")?["token"].as_i64();
        let words = &ask.words;
        let text = |name: &str| words[name].as_str().map(str::to_owned);
        let keys = words["keys"].as_array().map(|keys| {
            let keys = keys.iter().filter_map(|key| key.as_str());
            keys.map(str::to_owned).collect()
        });
        let mode = match (words["mode"].as_str(), words["permits"].as_u64()) {
            (Some("read"), _) => Mode::Read,
            (Some("write"), _) => Mode::Write,
            (_, Some(permits)) => Mode::Permits(permits),
            _ => Mode::Plain,
        };
        let lease = words["lease"].as_u64().unwrap_or(10_000) * 1000;
        Some(Self {
            driver: ask.driver,
            life: ask.life,
            name: ask.hold.clone(),
            keys: keys.unwrap_or_else(|| text("key").into_iter().collect()),
            mode,
            watchdog: words["watchdog"] != false,
            max: words["max"].as_u64().map(|ms| ms * 1000),
            lease,
            token,
            call: ask.call,
            start,
            sticky: words["sticky"] == true,
            has_token: words["token"] != false,
            since: match words["sticky"] == true {
                true => ask.call.saturating_sub(UNKNOWN),
                false => ask.call,
            },
            has: Vec::new(),
            released: NEVER,
            gave_way: false,
            lease_from: ask.call + lease,
            lease_to: start + lease,
            events: Vec::new(),
            states: Vec::new(),
            others: Vec::new(),
        })
    }

    /// What its client said to the requests that name it, in order.
    pub fn follow(&mut self, asks: &[&Ask]) {
        let mut count = 1;
        for ask in asks {
            let ok = ask.out.get("ok").is_some();
            let lost = ask.out["error"] == "lost";
            let said = (ask.call, ask.reply.unwrap_or(NEVER));
            match ask.what.as_str() {
                "state" if ask.out["ok"]["lost"].is_string() => {
                    self.states.push(ask.reply.unwrap_or(ask.call));
                }
                "state" if ok => self.has.push(said),
                "again" if ok => {
                    count += 1;
                    self.has.push(said);
                }
                "renew" => self.renewed(ask, ok, lost),
                "release" => {
                    if ok {
                        self.has.push(said);
                    }
                    count -= 1;
                    if count == 0 || !ok {
                        self.released = ask.call;
                        self.gave_way = ask.words["next"].is_string();
                    }
                }
                _ => (),
            }
            if lost {
                self.others.push(ask.reply.unwrap_or(ask.call));
            }
            // A second release says nothing.
            if self.released != NEVER {
                break;
            }
        }
        // What was asked before the release, and answered after it, says nothing.
        let released = self.released;
        self.states.retain(|at| *at < released);
        self.has
            .retain(|(call, reply)| *reply < released || *call >= released);
    }

    /// A use whose end did not say that its lock was lost. Another may have begun with a lock that was another's
    /// by then, and storage refuses the token of that.
    pub fn ended_well(&self) -> bool {
        let lost = self.events.len() + self.states.len() + self.others.len();
        self.released != NEVER && lost == 0
    }

    fn renewed(&mut self, ask: &Ask, ok: bool, lost: bool) {
        let lease = ask.words["lease"].as_u64().unwrap_or(0) * 1000;
        self.lease_from = self.lease_from.min(ask.call + lease);
        match ask.reply {
            Some(reply) if ok => {
                self.has.push((ask.call, reply));
                self.lease_to = reply + lease;
            }
            Some(_) if lost => (),
            // It may be carried out at any time, for it is retried.
            _ => self.lease_to = NEVER,
        }
    }

    /// The last moment at which its client surely said that it has it.
    pub fn said(&self) -> u64 {
        self.has.last().map_or(self.start, |(from, _)| *from)
    }
}

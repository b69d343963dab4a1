//! One acquisition: what was asked for, and the commands that say so.

use std::sync::OnceLock;
use std::time::Duration;

use redis::Cmd;

use crate::clock::{at_most_far, ms};
use crate::error::Error;
use crate::job::{Place, fresh_owner};
use crate::library::{ALL, QUEUE, Speech};

pub(crate) const LEASE: Duration = Duration::from_secs(10);

pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Plain,
    Read,
    Write,
    Permits { limit: u32, permits: u32 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    Once,
    For(Duration),
    Forever,
}

impl Wait {
    /// No time at all is no wait.
    pub fn at_most(time: Duration) -> Self {
        if time.is_zero() {
            Self::Once
        } else {
            Self::For(at_most_far(time))
        }
    }
}

#[derive(Debug)]
pub(crate) struct Request {
    /// One, or several that are taken together.
    pub keys: Vec<String>,
    pub owner: String,
    /// In the place of the job's, on a server without the module: a late copy of a RELEASE names
    /// no token there.
    pub own: OnceLock<String>,
    /// The place of its line in the lock's queue, on a server without the module. It stays over
    /// connections: a new one would stand behind the old one, which nobody uses any more.
    pub stands_as: OnceLock<String>,
    pub lease: Duration,
    pub wait: Wait,
    pub mode: Mode,
    pub watchdog: bool,
    pub max: Option<Duration>,
    /// Of one of several servers: the request goes on at the others.
    pub in_quorum: bool,
    /// So many replicas, within so long.
    pub acks: Option<(u32, Duration)>,
    /// Keeps other requests of the same job away from the keys.
    pub place: Option<Place>,
}

/// What all keys of a request may have, in bytes: a server may be set to close a connection that
/// sends 1 MB.
const MOST_BYTES: usize = 1 << 19;

/// Why these cannot be the keys of a request.
pub fn wrong_with(keys: &[String]) -> Option<&'static str> {
    if keys.iter().any(String::is_empty) {
        return Some("a lock has a name: the key is empty");
    }
    let bytes = keys.iter().map(String::len).sum::<usize>();
    (bytes > MOST_BYTES).then_some("the keys of a request are at most 524,288 bytes together")
}

/// What a lease is for the heartbeat. A shorter one than these is over before anything can be
/// proved, and with the connection all other holds would be lost too; without the watchdog it does
/// not end with that.
pub(crate) fn counted(lease: Duration, watchdog: bool) -> Duration {
    lease.max(Duration::from_millis(match watchdog {
        true => 100,
        false => 5_000,
    }))
}

impl Request {
    pub fn counted(&self, lease: Duration) -> Duration {
        counted(lease, self.watchdog)
    }

    /// What the arguments of the program would be refused for.
    pub fn check(&self) -> Result<(), Error> {
        let wrong = |text: &str| Err(Error::Argument(text.into()));
        if self.keys.is_empty() || self.keys.len() > 1024 {
            return wrong("1 to 1,024 keys can be taken together");
        }
        if let Some(why) = wrong_with(&self.keys) {
            return wrong(why);
        }
        if self.keys.len() > 1 {
            let mut sorted: Vec<_> = self.keys.iter().collect();
            sorted.sort_unstable();
            if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
                return wrong("a key is named twice");
            }
            if self.mode != Mode::Plain {
                return wrong("several keys are taken as plain locks only");
            }
        }
        if self.lease.is_zero() {
            return wrong("a lease is longer than 0");
        }
        if let Mode::Permits { limit, permits } = self.mode
            && (limit == 0 || limit > 1_000_000 || permits == 0 || permits > limit)
        {
            return wrong("a limit is 1 to 1,000,000, permits are 1 to the limit");
        }
        if self.max.is_some_and(|max| max.is_zero()) {
            return wrong("max is longer than 0");
        }
        if self
            .acks
            .is_some_and(|(n, within)| n == 0 || within.is_zero())
        {
            return wrong("acks are at least 1, within more than 0");
        }
        Ok(())
    }

    /// What asks for the same once more, with its place in the job.
    pub fn anew(&self, wait: Wait, lease: Duration) -> Self {
        let place = self.place.as_ref().map(Place::hand_over);
        Self {
            keys: self.keys.clone(),
            owner: place
                .as_ref()
                .map_or_else(fresh_owner, |place| place.owner().into()),
            own: OnceLock::new(),
            stands_as: OnceLock::new(),
            lease,
            wait,
            place,
            ..*self
        }
    }

    /// As the server knows it.
    pub fn owner(&self) -> &str {
        self.own.get().unwrap_or(&self.owner)
    }

    /// Before it is asked for at a server without the module.
    pub fn own_owner(&self) {
        if self.place.is_some() {
            self.own.get_or_init(fresh_owner);
        }
    }

    /// `left`: for how long to wait; none is without waiting. `wanted`: the holder is to be told that somebody waits.
    pub fn acquire(
        &self,
        speech: &Speech,
        left: Option<Wait>,
        channel: &str,
        tag: u64,
        wanted: bool,
    ) -> Cmd {
        let mut ask = self.wanted(speech);
        match left {
            None | Some(Wait::Once) => {}
            Some(Wait::For(time)) => _ = ask.arg("QUEUE").arg(ms(time)),
            Some(Wait::Forever) => _ = ask.arg("QUEUE").arg(0),
        }
        ask.arg("NOTIFY").arg(channel).arg(tag);
        ask.arg(wanted.then_some("WANTED"));
        ask.arg(self.watchdog.then_some("WATCHDOG"));
        ask.arg("ONCE");
        ask
    }

    /// One try, at a server without the module. `place`: who waits, and for how many ms it is to
    /// have a place in the queue, or keep it.
    pub fn attempt(&self, speech: &Speech, place: Option<(&str, u64)>) -> Cmd {
        let mut ask = self.wanted(speech);
        if let Some((name, ms)) = place {
            ask.arg("PLACE").arg(name).arg(ms);
        }
        ask.arg("ONCE");
        ask
    }

    fn wanted(&self, speech: &Speech) -> Cmd {
        let mut ask = self.command(speech, "acquire", ALL);
        ask.arg(ms(self.lease));
        match self.mode {
            Mode::Plain => {}
            Mode::Read => _ = ask.arg("READ"),
            Mode::Write => _ = ask.arg("WRITE"),
            Mode::Permits { limit, permits } => {
                _ = ask.arg("LIMIT").arg(limit).arg("PERMITS").arg(permits);
            }
        }
        ask
    }

    /// With `fence` the reply is the lock's counter, no less than that.
    pub fn renew(&self, speech: &Speech, lease: Duration, fence: Option<u64>) -> Cmd {
        let with = if fence.is_some() { ALL } else { &[] };
        let mut ask = self.command(speech, "renew", with);
        ask.arg(ms(lease));
        ask.arg(self.mode_word());
        if let Some(token) = fence {
            ask.arg("FENCE").arg(token);
        }
        ask
    }

    /// The reply is a new token.
    pub fn renew_with_token(&self, speech: &Speech) -> Cmd {
        let mut ask = self.command(speech, "renew", ALL);
        ask.arg(ms(self.lease)).arg("TOKEN");
        ask
    }

    /// Ends one hold, and no other than that; whichever there is if its token may not be known.
    pub fn release(&self, speech: &Speech, token: Option<u64>) -> Cmd {
        let mut ask = self.command(speech, "release", QUEUE);
        if self.keys.len() > 1 {
            return ask;
        }
        ask.arg(self.mode_word());
        if let Mode::Permits { permits, .. } = self.mode {
            ask.arg(permits);
        }
        match token {
            // The owner is of this hold alone, and whether it had the lock is to be known.
            _ if !speech.has_module() => {}
            Some(token) => _ = ask.arg("IFTOKEN").arg(token),
            None => _ = ask.arg("IFHELD"),
        }
        ask
    }

    /// Ends whatever came of the request.
    pub fn release_all(&self, speech: &Speech) -> Cmd {
        let mut ask = self.command(speech, "release", QUEUE);
        if self.keys.len() == 1 {
            ask.arg(self.mode_word()).arg("ALL").arg("IFHELD");
        }
        ask
    }

    /// Ends the wait. Of several keys one names the whole request. `place`: of a server without the
    /// module, where that is all that is ended.
    pub fn cancel(&self, speech: &Speech, place: Option<&str>) -> Cmd {
        let first = self.keys.first().map(std::slice::from_ref);
        let mut ask = speech.call("cancel", first.unwrap_or_default(), QUEUE);
        ask.arg(self.owner()).arg(self.mode_word());
        if let Some(name) = place {
            ask.arg("PLACE").arg(name);
        }
        ask
    }

    /// The command for one key or for several, as far as the owner.
    fn command(&self, speech: &Speech, name: &str, with: &[&str]) -> Cmd {
        let mut ask = speech.call(name, &self.keys, with);
        ask.arg(self.owner());
        ask
    }

    fn mode_word(&self) -> Option<&'static str> {
        match self.mode {
            Mode::Plain => None,
            Mode::Read => Some("READ"),
            Mode::Write => Some("WRITE"),
            Mode::Permits { .. } => Some("PERMITS"),
        }
    }
}

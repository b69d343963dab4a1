//! A request, and the hold that it became.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use redis::{RedisResult, Value};

use crate::clock::Time;
use crate::error::{Error, Reason};
use crate::hold::Hold;
use crate::request::{Request, Wait};
use crate::state::State;

use super::Answer;
use super::direct::Reply;

pub(super) struct Entry {
    pub request: Arc<Request>,
    /// That it was asked for at, or will be.
    pub node: usize,
    /// Of the connection that there is; 0 if it was not asked for there.
    pub tag: u64,
    /// A RENEW is under way that subscribes to the loss of a plain hold on this connection.
    pub regains: bool,
    pub phase: Phase,
}

pub(super) enum Phase {
    Asked(Asked),
    Held(Held),
    Released(Released),
}

/// Until the reply to RELEASE, and to a RENEW that was sent before it.
pub(super) struct Released {
    pub to: Option<Answer<()>>,
    /// The request for which it gave way, which fails with this.
    pub behind: Option<u64>,
    pub reply: Reply,
    pub end: Option<Result<(), Error>>,
    /// The message overtook the reply.
    pub lost: Option<Reason>,
}

/// It waits, or is granted and something has to be made sure of first.
pub(super) struct Asked {
    pub to: To,
    pub since: Time,
    /// When it was asked for last.
    pub sent: Time,
    /// When it is asked for again, or looked after.
    pub again: Option<Time>,
    /// The server grants nothing yet.
    pub is_early: bool,
    /// The time is over: the try that is under way is the last.
    pub is_last: bool,
    /// The last try asked for a place in the queue.
    pub had_turn: bool,
    /// There was a message while a try was under way.
    pub more: bool,
    /// It was on any connection, so that a server may know it.
    pub was_sent: bool,
    /// It was on a connection that is gone.
    pub was_sent_before: bool,
    pub token: Option<u64>,
    pub deadline: Option<Time>,
    /// Until when replicas are waited for.
    pub acked_by: Option<Time>,
    /// The message overtook the token.
    pub lost: Option<Reason>,
    /// The server has said that it waits, on this connection.
    pub stands: bool,
    /// To the command.
    pub reply: Option<Reply>,
    /// Of a hold that gave way for it.
    pub way: Option<Way>,
    /// As of a hold: on this connection the server says that somebody waits for what it grants.
    pub asked_on: u64,
}

/// Who asks.
pub(super) enum To {
    Program(Answer<Hold>),
    /// A sticky lock, whose state that will be.
    Stay(u64, Arc<State>),
}

impl To {
    /// Nobody waits for it any more.
    pub fn is_closed(&self) -> bool {
        match self {
            Self::Program(to) => to.is_closed(),
            Self::Stay(..) => false,
        }
    }
}

/// What gave way, so that it is asked for again.
pub(super) struct Way {
    /// Its release may be under way still.
    pub id: u64,
    /// It goes on with what is granted.
    pub state: Arc<State>,
}

pub(super) struct Held {
    pub state: Arc<State>,
    pub token: u64,
    pub lease: Duration,
    /// Of `max`.
    pub until: Option<Time>,
    /// Its token may not be known: a server that was restarted does not know it when this is not on its first
    /// connection any more, and a sticky lock has got others since.
    pub regained: bool,
    /// When this session renews it: the server has no watchdog.
    pub renew_at: Option<Time>,
    /// The program's own renewals that are under way.
    pub renewals: u32,
    /// The connection on which the server was asked to say that somebody waits for it; 0: on none.
    pub asked_on: u64,
    /// When it is asked again.
    pub ask_at: Option<Time>,
    /// The sticky lock that it is of.
    pub stay: Option<u64>,
}

impl Asked {
    pub fn new(to: To, now: Time) -> Self {
        Self {
            to,
            since: now,
            sent: now,
            again: None,
            is_early: false,
            is_last: false,
            had_turn: false,
            more: false,
            was_sent: false,
            was_sent_before: false,
            token: None,
            deadline: None,
            acked_by: None,
            lost: None,
            stands: false,
            reply: None,
            way: None,
            asked_on: 0,
        }
    }

    /// Its connection is gone.
    pub fn forget(&mut self) {
        self.token = None;
        self.deadline = None;
        self.acked_by = None;
        self.lost = None;
        self.again = None;
        self.stands = false;
        if let Some(reply) = self.reply.take() {
            reply.forget();
        }
    }

    /// It wants to be told that somebody waits for what it is granted, as far as that is said.
    pub fn hint(&self) -> Option<&Arc<State>> {
        match &self.to {
            To::Stay(_, state) => Some(state),
            To::Program(_) => self.way.as_ref().map(|way| &way.state),
        }
    }

    /// The reply, if it is there and nobody has taken it.
    pub fn arrived(&mut self) -> Option<RedisResult<Value>> {
        let mut context = Context::from_waker(Waker::noop());
        match self.reply.as_ref()?.poll(&mut context) {
            Poll::Ready(reply) => Some(reply),
            Poll::Pending => None,
        }
    }

    /// The server has just started, and may have lost holds that are under way.
    pub fn try_later(&mut self, now: Time) {
        const PAUSE: Duration = Duration::from_millis(500);
        self.forget();
        self.again = Some(now + PAUSE);
        self.is_early = true;
    }

    /// What is left of the wait.
    pub fn left(&self, wait: Wait, now: Time) -> Option<Wait> {
        match wait {
            Wait::Once => None,
            Wait::Forever => Some(Wait::Forever),
            Wait::For(time) => {
                let left = (self.since + time).checked_sub(now)?;
                (!left.is_zero()).then_some(Wait::For(left))
            }
        }
    }

    /// When it fails for the program, if the server has not answered by then.
    pub fn patience(&self, wait: Wait, timeout: Duration) -> Option<Time> {
        /// The server's own message is to come first.
        const GRACE: Duration = Duration::from_secs(1);
        match wait {
            Wait::Once => Some(self.since + timeout),
            Wait::For(time) if time < timeout => Some(self.since + timeout),
            Wait::For(time) => self.since.checked_add(time)?.checked_add(GRACE),
            Wait::Forever => None,
        }
    }

    /// Its time is over.
    pub fn too_late(&self, connection: Option<&str>) -> Error {
        match connection {
            Some(error) => Error::Connection(error.into()),
            None if self.is_early => Error::Connection("the server grants nothing yet".into()),
            // Only the server knows whether somebody else has it.
            None => Error::Connection("the server did not answer in time".into()),
        }
    }
}

impl Entry {
    /// What it was asked for again for.
    pub fn gave_way(&self) -> Option<u64> {
        match &self.phase {
            Phase::Asked(asked) => asked.way.as_ref().map(|way| way.id),
            _ => None,
        }
    }

    /// The lease that it needs to be proved alive for.
    pub fn lease(&self) -> Duration {
        self.request.counted(match &self.phase {
            Phase::Held(held) => held.lease,
            _ => self.request.lease,
        })
    }

    /// When to look at it again.
    pub fn due(&self, timeout: Duration) -> Option<Time> {
        match &self.phase {
            Phase::Asked(asked) => {
                let patience = || asked.patience(self.request.wait, timeout);
                let end = asked.acked_by.or_else(patience);
                end.into_iter().chain(asked.again).min()
            }
            Phase::Held(held) => {
                let ends = held.state.deadline().into_iter().chain(held.until);
                ends.chain(held.renew_at).chain(held.ask_at).min()
            }
            Phase::Released(..) => None,
        }
    }
}

//! One use of a sticky lock.

use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::clock::{self, Time};
use crate::error::{Error, Reason};
use crate::process;
use crate::session::Session;
use crate::state::State;
use crate::sticky::Sticky;
use crate::turn::{Acquired, Turn};

/// Has the turn, and gives it back however it ends.
pub(crate) struct InUse<'a> {
    sticky: &'a Sticky,
    pub turn: &'a Arc<Turn>,
    pub acquired: Arc<Acquired>,
    number: u64,
    is_over: bool,
}

impl<'a> InUse<'a> {
    pub fn new(
        sticky: &'a Sticky,
        turn: &'a Arc<Turn>,
        acquired: Arc<Acquired>,
        number: u64,
    ) -> Self {
        Self {
            sticky,
            turn,
            acquired,
            number,
            is_over: false,
        }
    }

    /// For the body.
    pub fn given(&self) -> Use {
        Use {
            sticky: self.sticky.clone(),
            id: self.turn.id,
            acquired: Arc::clone(&self.acquired),
            number: self.number,
            token: OnceLock::new(),
        }
    }

    /// The time, unless nothing was heard for too long, as in a process that was stopped: whether it has the lock has
    /// to be asked.
    pub fn heard_at(&self) -> Option<Time> {
        let now = clock::now();
        let is_known = self.turn.is_proved(now) || self.acquired.state.reason().is_some();
        is_known.then_some(now)
    }

    /// Waits until that is known.
    pub async fn prove(&self) -> Time {
        if let Ok(session) = self.sticky.session() {
            session.prove_use(self.turn.id).await;
        }
        clock::now()
    }

    /// Why it had not the lock to its end.
    pub fn end(&mut self, now: Time) -> Option<Reason> {
        if std::mem::replace(&mut self.is_over, true) {
            return None;
        }
        let turn = self.turn;
        if turn.process != process::id() {
            return Some(Reason::Fork);
        }
        turn.ended(now);
        let is_sure = !turn.is_past(now) && turn.is_proved(now);
        let reason = if is_sure {
            None
        } else {
            self.acquired.state.reason()
        };
        turn.give_back(self.number);
        self.look(now);
        reason
    }

    fn look(&self, now: Time) {
        if self.turn.is_looked_for(now)
            && let Ok(session) = self.sticky.session()
        {
            session.look_at_stay(self.turn.id);
        }
    }
}

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.end(clock::now());
        }
    }
}

/// One use of a [`Sticky`] lock, as its body has it.
pub struct Use {
    sticky: Sticky,
    /// Of the sticky lock.
    id: u64,
    acquired: Arc<Acquired>,
    number: u64,
    token: OnceLock<u64>,
}

impl Use {
    /// The key.
    pub fn key(&self) -> &str {
        self.sticky.key()
    }

    /// The owner, as the server and `RLOCK.INFO` know it: that of the acquisition, which one use or many have had.
    pub fn owner(&self) -> &str {
        self.acquired.request.owner()
    }

    /// Ends when the lock is lost, with the reason.
    pub fn lost(&self) -> impl Future<Output = Reason> + Send + 'static + use<> {
        State::lost(&self.acquired.state)
    }

    /// For callbacks.
    pub(crate) fn ended(&self) -> impl Future<Output = Option<Reason>> + Send + 'static + use<> {
        State::ended(&self.acquired.state)
    }

    /// Whether it is lost.
    pub fn is_lost(&self) -> bool {
        self.reason().is_some()
    }

    /// Why it was lost, if it was.
    pub fn reason(&self) -> Option<Reason> {
        self.acquired.state.reason()
    }

    /// A fencing token of this use, greater than those of all uses and holds of the lock before it. Have storage refuse a
    /// write with a smaller one than it has seen.
    ///
    /// The first use that asks for one since the lock was acquired has it at once, each other one by a round trip to the
    /// server.
    ///
    /// # Errors
    /// [`Error::Lost`] if the lock is lost, or the use is over; [`Error::Refused`] and [`Error::Connection`] if the server does not
    /// say it. The lock goes back at the end of the use then.
    pub async fn token(&self) -> Result<u64, Error> {
        if let Some(&token) = self.token.get() {
            return Ok(token);
        }
        if let Some(reason) = self.reason() {
            return Err(Error::Lost(reason));
        }
        let session = self.sticky.session()?;
        let token = session.use_token(self.id, self.number).await?;
        Ok(*self.token.get_or_init(|| token))
    }

    pub(crate) fn session(&self) -> Result<&Session, Error> {
        self.sticky.session()
    }
}

impl fmt::Debug for Use {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Use")
            .field("key", &self.key())
            .field("owner", &self.owner())
            .field("lost", &self.reason())
            .finish()
    }
}

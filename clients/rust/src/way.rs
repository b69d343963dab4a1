//! A hold gives way.

use std::pin::Pin;
use std::time::Duration;

use crate::acquire::fresh_id;
use crate::error::{Error, Reason};
use crate::hold::Hold;
use crate::request::Wait;

/// What is granted is held for so long at least.
const LEAST: Duration = Duration::from_millis(20);

/// A hold that is to [give way](Hold::give_way): `.await` it.
///
/// If its future is dropped meanwhile the hold is over, as after an error, and nothing is left on the server.
#[must_use = "nothing is done before it is awaited"]
#[derive(Debug)]
pub struct GiveWay<'a> {
    hold: &'a mut Hold,
    wait: Wait,
    least: Duration,
}

impl<'a> GiveWay<'a> {
    pub(crate) fn new(hold: &'a mut Hold) -> Self {
        Self {
            hold,
            wait: Wait::Forever,
            least: LEAST,
        }
    }

    /// Waits for at most so long to have it again. Without it that takes as long as it takes.
    pub fn wait(mut self, time: Duration) -> Self {
        self.wait = Wait::at_most(time);
        self
    }

    /// Does not give way if it was granted less than that ago (20 ms).
    pub fn least(mut self, age: Duration) -> Self {
        self.least = age;
        self
    }

    async fn give(self) -> Result<bool, Error> {
        let Self { hold, wait, least } = self;
        if let Some(reason) = hold.reason() {
            return Err(Error::Lost(reason));
        }
        if let Some(text) = hold.unfit_to_give_way() {
            return Err(Error::Argument(text.into()));
        }
        if !hold.is_wanted() || hold.age() < least {
            return Ok(false);
        }
        let new = fresh_id();
        let again = hold.released_for(new, wait);
        let mut giving = Giving {
            hold,
            new,
            reason: Some(Reason::Released),
        };
        match again.await {
            Ok(new) => {
                giving.hold.come_back(new);
                giving.reason = None;
                Ok(true)
            }
            Err(error) => {
                if let Error::Lost(reason) = error {
                    giving.reason = Some(reason);
                }
                Err(error)
            }
        }
    }
}

/// Until it is a hold again: else it is over.
struct Giving<'a> {
    hold: &'a mut Hold,
    new: u64,
    /// Why it will be lost.
    reason: Option<Reason>,
}

impl Drop for Giving<'_> {
    fn drop(&mut self) {
        if let Some(reason) = self.reason {
            self.hold.gave_way_in_vain(self.new, reason);
        }
    }
}

impl<'a> IntoFuture for GiveWay<'a> {
    type Output = Result<bool, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    /// # Errors
    /// [`Error::Lost`] if it was lost before. [`Error::Argument`] of a hold of several keys, and while there is one
    /// by [`again`](Hold::again): nothing is done then.
    ///
    /// Those of asking for it again ([`Acquire`](crate::Acquire)), and [`Error::Refused`] if the server refuses the
    /// release. After one of these the hold is over: lost, with [`Reason::Released`] if it was not lost before. To
    /// release or drop it does nothing more then.
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.give())
    }
}

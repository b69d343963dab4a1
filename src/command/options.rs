//! What a request says at its end, and the owner whose request it is.

use crate::error::Error;
use crate::lock::{Address, Ask, ClientId, Ended, Fence, Mode, Once, Only, Renewal, Share, Wait};
use crate::server::CommandCall;

/// An owner as it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnerArg<'a> {
    Named(&'a [u8]),
    /// `*`: this connection.
    Connection,
}

impl<'a> OwnerArg<'a> {
    /// The owner's id. `*` is refused where all callers share one client.
    pub fn id(&self, call: &CommandCall<'_>) -> Result<std::borrow::Cow<'a, [u8]>, Error> {
        match self {
            Self::Named(id) => Ok((*id).into()),
            Self::Connection => match call.own_id() {
                Some(id) => Ok(id.into_bytes().into()),
                None => Err(Error::new(
                    "owner * means a connection, and a script, a function or a module has none \
                     of its own: give an owner id",
                )),
            },
        }
    }
}

/// The keywords at the end of a command, as they were given.
#[derive(Debug, Default)]
pub struct Options<'a> {
    pub mode: Option<Mode>,
    /// With LIMIT.
    pub(super) limit: Option<u32>,
    /// So many of them.
    pub(super) permits: Option<u32>,
    /// BLOCK or QUEUE.
    pub(super) wait: Option<Wait>,
    /// A channel and a tag.
    pub(super) notify: Option<(&'a [u8], &'a [u8])>,
    pub(super) wanted: bool,
    pub(super) watch: bool,
    pub(super) once: bool,
    pub(super) all: bool,
    pub(super) only: Option<Only>,
    /// FENCE or TOKEN.
    pub(super) fence: Option<Fence>,
    pub count: Option<usize>,
}

impl Options<'_> {
    pub fn mode(&self) -> Mode {
        self.mode.unwrap_or(Mode::Exclusive)
    }

    /// The channel on which this connection is to be notified of its request, if any. Refused
    /// where no message would reach it.
    pub fn address(&self, call: &CommandCall<'_>) -> Result<Option<Address>, Error> {
        let queued = self.wait.is_some_and(|wait| wait.queued);
        let Some(channel_and_tag) = self.notify else {
            return if self.wanted {
                Err(Error::new(
                    "WANTED needs NOTIFY channel tag: the channel on which a message says that \
                     somebody waits for the hold",
                ))
            } else if queued {
                Err(Error::new(
                    "QUEUE needs NOTIFY channel tag: the channel on which a message says how the wait ended",
                ))
            } else {
                Ok(None)
            };
        };
        match call.connection() {
            Some(client) => call
                .session(client, channel_and_tag, self.wanted)
                .map(Some),
            // Where nothing waits QUEUE is a try, as BLOCK is.
            None if queued && !self.wanted => Ok(None),
            None => Err(Error::new(
                "NOTIFY notifies a connection of its hold, and a script, a function or a module has \
                 none of its own: leave it out",
            )),
        }
    }

    /// The request of an owner, whose id is `id`.
    pub fn ask<'a>(
        &self,
        call: &CommandCall<'_>,
        owner: &OwnerArg<'_>,
        id: &'a [u8],
        lease: i64,
        notify: Option<&'a Address>,
    ) -> Result<Ask<'a>, Error> {
        let watchdog = self.watchdog(call)?;
        let once = match owner {
            OwnerArg::Connection => Once::IsRefused,
            OwnerArg::Named(_) if self.once => Once::IsTheSame,
            OwnerArg::Named(_) => Once::Nests,
        };
        Ok(Ask {
            db: call.db(),
            owner: id,
            client: watchdog.or_else(|| call.client()),
            mode: self.mode(),
            share: self.share()?,
            lease,
            once,
            watch: self.watch,
            notify,
            wait: self.wait.filter(|_| call.may_block()),
        })
    }

    /// How much of the lock is wanted.
    fn share(&self) -> Result<Share, Error> {
        let count = self.permits.unwrap_or(1);
        match self.limit {
            None if self.permits.is_some() => Err(Error::new(
                "PERMITS needs LIMIT n: how many permits of this lock there are",
            )),
            None => Ok(Share::HOLD),
            Some(limit) if count > limit => Err(Error::new(format!(
                "PERMITS must be at most LIMIT, {limit}, got {count}"
            ))),
            Some(limit) => Ok(Share::new(count, limit)),
        }
    }

    /// The end of holds of an owner, whose id is `id`.
    pub fn ended<'a>(&self, call: &CommandCall<'_>, id: &'a [u8]) -> Result<Ended<'a>, Error> {
        if self.all && self.permits.is_some() {
            return Err(Error::new("ALL and a number of permits exclude each other"));
        }
        let count = i64::from(self.permits.unwrap_or(1));
        Ok(Ended {
            db: call.db(),
            owner: id,
            client: call.client(),
            mode: self.mode(),
            count: (!self.all).then_some(count),
            only: self.only,
        })
    }

    /// The renewal of an owner's lease, ms.
    pub fn renewal<'a>(
        &self,
        call: &CommandCall<'_>,
        id: &'a [u8],
        lease: i64,
        notify: Option<&'a Address>,
    ) -> Result<Renewal<'a>, Error> {
        Ok(Renewal {
            db: call.db(),
            owner: id,
            mode: self.mode(),
            lease,
            watch: self.watchdog(call)?,
            notify,
            fence: self.fence,
        })
    }

    /// With WATCHDOG the connection that the hold belongs to. Refused where all callers
    /// share one client.
    fn watchdog(&self, call: &CommandCall<'_>) -> Result<Option<ClientId>, Error> {
        if !self.watch {
            return Ok(None);
        }
        call.connection().map(Some).ok_or_else(|| {
            Error::new(
                "WATCHDOG binds a hold to a connection, and a script, a function or a module has \
                 none of its own: leave it out and RENEW the lease",
            )
        })
    }
}

//! One of the servers, and whether it can be reached.

use std::time::Duration;

use redis::{AsyncConnectionConfig, Client};
use tokio::time::timeout;

use crate::error::Error;
use crate::hold::Hold;
use crate::locks::Locks;
use crate::session::open;

use super::QuorumAcquire;

/// A server that is away must not take up the time of the others.
pub(super) const TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Clone, Debug)]
pub(super) struct Server {
    pub locks: Locks,
    client: Client,
}

/// A request at one server that came to nothing.
pub(super) struct Failed {
    pub error: Error,
    /// The server may have been sent a RELEASE of this owner: it is not asked by it again.
    pub is_out: bool,
}

impl Server {
    pub fn new(client: Client) -> Self {
        Self {
            locks: Locks::with_timeout(client.clone(), TIMEOUT),
            client,
        }
    }

    pub fn require_module(self) -> Self {
        let locks = self.locks.require_module();
        Self { locks, ..self }
    }

    pub fn address(&self) -> String {
        let address = self.client.get_connection_info().addr().to_string();
        address.to_lowercase()
    }

    /// Fails at once where a connection is refused, which the session would try on for its
    /// whole time; and after that time where nothing is said at all. Without a connection
    /// nothing was sent for anybody, so that the same owner may ask there again.
    pub async fn reach(&self) -> Result<(), Error> {
        if self.locks.session()?.is_connected() {
            return Ok(());
        }
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(TIMEOUT))
            .set_response_timeout(Some(TIMEOUT));
        let opened = open(&self.client, config);
        match timeout(TIMEOUT, opened).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => match Error::from_redis(&error) {
                error @ Error::Connection(_) => Err(error),
                // It is there; what it refuses it says to the session too.
                _ => Ok(()),
            },
            Err(_) => Err(Error::Connection("the server did not reply in time".into())),
        }
    }
}

impl Failed {
    /// Nothing was asked for.
    pub fn away(error: Error) -> Self {
        let is_out = false;
        Self { error, is_out }
    }

    /// Where the reply is not known the request is cancelled with a RELEASE.
    pub fn asked(error: Error) -> Self {
        let is_out = matches!(error, Error::Connection(_));
        Self { error, is_out }
    }

    /// The server is away or refuses, whoever has the lock.
    pub fn is_unable(&self) -> bool {
        matches!(self.error, Error::Connection(_) | Error::Refused { .. })
    }
}

impl QuorumAcquire {
    /// At one server, without waiting.
    pub(super) async fn try_at(self, index: usize, owner: String) -> Result<Hold, Failed> {
        let server = &self.quorum.servers[index];
        server.reach().await.map_err(Failed::away)?;
        self.at(index, &owner).await.map_err(Failed::asked)
    }
}

//! Connections are opened.

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ErrorKind, RedisError, RedisResult};
use tokio::task::JoinError;

/// In a task of its own: to look up a name takes a thread, and where there is none to be had that
/// panics. Whoever waits for the connection goes on, with an error.
pub(crate) async fn open(
    client: &Client,
    config: AsyncConnectionConfig,
) -> RedisResult<MultiplexedConnection> {
    let client = client.clone();
    let opening = tokio::spawn(async move {
        let opening = client.get_multiplexed_async_connection_with_config(&config);
        opening.await
    });
    opening.await.unwrap_or_else(|error| Err(failed(&error)))
}

/// The task that was to open one has panicked.
pub fn failed(error: &JoinError) -> RedisError {
    (ErrorKind::Io, "connecting", error.to_string()).into()
}

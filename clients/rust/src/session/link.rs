//! A connection of the session's own, subscribed to a channel that it has for itself.

use std::task::{Context, Waker};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, ProtocolVersion, PushInfo, RedisResult, Value};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::{JoinSet, unconstrained};

use crate::clock::{self, Time};

use super::actor::What;

pub(super) struct Link {
    pub channel: String,
    /// Before the first proof of it was asked for.
    pub since: Time,
    connection: MultiplexedConnection,
    pushes: UnboundedReceiver<PushInfo>,
    /// Commands that have no reply yet. They end with the link: each holds the connection.
    replies: JoinSet<(What, RedisResult<Value>)>,
}

/// What came in.
pub(super) enum Event {
    Reply(What, RedisResult<Value>),
    Push(PushInfo),
    End,
}

impl Link {
    pub async fn open(client: Client, timeout: Duration) -> RedisResult<Self> {
        let (sender, pushes) = unbounded_channel();
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(timeout))
            .set_response_timeout(Some(timeout))
            .set_pipeline_buffer_size(1024)
            .set_push_sender(sender);
        let connection = client.get_multiplexed_async_connection_with_config(&config);
        let mut connection = connection.await?;
        let channel = format!("rlock:{}", uuid::Uuid::new_v4());
        let since = clock::now();
        connection.subscribe(&channel).await?;
        // From here on the heartbeat says when a reply is too late.
        connection.set_response_timeout(Duration::MAX);
        Ok(Self {
            channel,
            since,
            connection,
            pushes,
            replies: JoinSet::new(),
        })
    }

    /// Commands go out in the order of these calls.
    pub fn send(&mut self, what: What, command: Cmd) {
        let mut connection = self.connection.clone();
        let reply = async move { (what, command.query_async(&mut connection).await) };
        let mut reply = Box::pin(unconstrained(reply));
        // The first poll hands the command over; tasks alone would run in any order.
        let now = reply.as_mut().poll_now();
        match now {
            Some(done) => self.replies.spawn(async move { done }),
            None => self.replies.spawn(reply),
        };
    }

    pub fn connection(&self) -> MultiplexedConnection {
        self.connection.clone()
    }

    pub async fn next(&mut self) -> Event {
        tokio::select! {
            Some(done) = self.replies.join_next() => match done {
                Ok((what, reply)) => Event::Reply(what, reply),
                Err(_) => Event::End,
            },
            push = self.pushes.recv() => push.map_or(Event::End, Event::Push),
        }
    }
}

trait PollNow: Future {
    fn poll_now(self: std::pin::Pin<&mut Self>) -> Option<Self::Output> {
        let mut context = Context::from_waker(Waker::noop());
        match self.poll(&mut context) {
            std::task::Poll::Ready(done) => Some(done),
            std::task::Poll::Pending => None,
        }
    }
}

impl<F: Future> PollNow for F {}

/// The client's own address and credentials, in RESP3.
pub(super) fn in_resp3(client: &Client) -> RedisResult<Client> {
    let info = client.get_connection_info().clone();
    let settings = info.redis_settings().clone();
    let settings = settings
        .set_protocol(ProtocolVersion::RESP3)
        .set_lib_name("rlock-client", env!("CARGO_PKG_VERSION"));
    Client::open(info.set_redis_settings(settings))
}

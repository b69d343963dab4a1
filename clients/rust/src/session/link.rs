//! A connection of the session's own, subscribed to a channel that it has for itself.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ProtocolVersion, PushInfo, PushKind, RedisResult, Value,
    cmd,
};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::{JoinSet, unconstrained};
use tokio::time::timeout;

use crate::clock::{self, Time};
use crate::error::Error;
use crate::finding::{self, Finding, find};
use crate::library::Speech;

use super::actor::What;
use super::direct::{Reply, Sent, Way};
use super::line::Lines;
use super::wire::Wire;

pub(super) struct Link {
    pub number: u64,
    pub channel: String,
    pub speech: Speech,
    pub lines: Lines,
    /// The server can be told how long this process may be silent, as far as is known.
    pub hears_patience: bool,
    /// The server can be asked to say that somebody waits for a hold, as far as is known.
    pub hears_wanted: bool,
    /// Before the first proof of it was asked for.
    pub since: Time,
    connection: MultiplexedConnection,
    pub wire: Wire,
    pushes: UnboundedReceiver<PushInfo>,
    /// Taken out, and to be read after the replies that are there.
    kept: Option<PushInfo>,
    /// The server ended the subscription. What comes after that is taken for replies to the
    /// wrong commands.
    broken: Arc<AtomicBool>,
    /// Subscriptions that end because this session says so.
    ending: Arc<Mutex<HashSet<String>>>,
    /// Of commands whose replies the session takes. They end with the link: each holds the
    /// connection.
    replies: JoinSet<(What, RedisResult<Value>)>,
}

/// What came in.
pub(super) enum Event {
    Opened(Box<Result<Link, Error>>),
    Reply(Way, What, RedisResult<Value>),
    Push(PushInfo),
    End,
}

impl Link {
    /// `tag`: in a cluster a hash tag of a slot that the node serves.
    pub async fn open(
        client: Client,
        patience: Duration,
        tag: Option<String>,
        needs_module: bool,
    ) -> Result<Self, Error> {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        let (sender, pushes) = unbounded_channel();
        let (broken, ending) = (Arc::<AtomicBool>::default(), Arc::default());
        let (ended, expected) = (Arc::clone(&broken), Arc::clone(&ending));
        let pushed = move |push: PushInfo| {
            if matches!(push.kind, PushKind::SUnsubscribe | PushKind::Unsubscribe) {
                if is_expected(&expected, &push) {
                    return Ok(());
                }
                ended.store(true, Ordering::Release);
            }
            sender.send(push)
        };
        // Afterwards the heartbeat says when a reply is too late.
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(patience))
            .set_response_timeout(None)
            // Room for all that can be said while the server is silent: what found none would
            // go out in any order.
            .set_pipeline_buffer_size(1 << 20)
            .set_push_sender(pushed);
        let opening = async {
            let failed = |error| Error::from_redis(&error);
            let (mut connection, wire) = Wire::open(&client, config).await.map_err(failed)?;
            name(&mut connection).await.map_err(failed)?;
            let id = uuid::Uuid::new_v4();
            let (subscribe, channel) = match &tag {
                Some(tag) => ("SSUBSCRIBE", format!("rlock:{{{tag}}}{id}")),
                None => ("SUBSCRIBE", format!("rlock:{id}")),
            };
            let since = clock::now();
            let mut subscribe = cmd(subscribe);
            subscribe.arg(&channel);
            let first = finding::first();
            let mut other = connection.clone();
            let (subscribed, found) = tokio::join!(
                connection.send_packed_command(&subscribe),
                other.send_packed_command(&first)
            );
            finding::reply(subscribed).map_err(|error| match tag {
                Some(_) if error.says("unknown command") => Error::no_shards(),
                _ => error,
            })?;
            let finding = Finding::new(tag.is_some(), needs_module);
            let speech = find(&mut connection, finding, found).await?;
            let lines = Lines::new(tag.is_some());
            Ok((connection, wire, channel, since, speech, lines))
        };
        let late = || Error::Connection("the server did not reply in time".into());
        // Connecting, and the few commands after it.
        let opened = timeout(patience * 2, opening).await;
        let (connection, wire, channel, since, speech, lines) =
            opened.unwrap_or_else(|_| Err(late()))?;
        Ok(Self {
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            channel,
            hears_patience: speech.has_module(),
            hears_wanted: speech.has_module(),
            speech,
            lines,
            since,
            connection,
            wire,
            pushes,
            kept: None,
            broken,
            ending,
            replies: JoinSet::new(),
        })
    }

    /// The command that begins or ends a subscription.
    pub fn subscription(&self, begins: bool, channel: &str) -> Cmd {
        if !begins {
            let mut ending = self.ending.lock().unwrap_or_else(PoisonError::into_inner);
            ending.insert(channel.into());
        }
        cmd(match (begins, self.is_sharded()) {
            (true, false) => "SUBSCRIBE",
            (true, true) => "SSUBSCRIBE",
            (false, false) => "UNSUBSCRIBE",
            (false, true) => "SUNSUBSCRIBE",
        })
        .arg(channel)
        .clone()
    }

    /// In a cluster channels are of a node.
    pub fn is_sharded(&self) -> bool {
        self.channel.contains('{')
    }

    pub fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Acquire)
    }

    /// Commands go out in the order of these calls, when the session is not locked any more.
    pub fn send(&self, node: usize, what: What, command: Cmd) -> Sent {
        let mut connection = self.connection.clone();
        let reply = async move { connection.send_packed_command(&command).await };
        let mut reply = Box::pin(unconstrained(reply));
        // The first poll hands the command over; whoever waits would do so in any order.
        let mut context = Context::from_waker(Waker::noop());
        let reply = match self.wire.say(|| reply.as_mut().poll(&mut context)) {
            Poll::Ready(done) => Reply::new(Box::pin(std::future::ready(done))),
            Poll::Pending => Reply::new(reply),
        };
        let link = self.number;
        let way = Way { node, link };
        Sent { way, what, reply }
    }

    /// The session takes the reply.
    pub fn follow(&mut self, Sent { what, reply, .. }: Sent, runtime: &Handle) {
        let reply = async move {
            let done = std::future::poll_fn(|context| reply.poll(context)).await;
            (what, done)
        };
        self.replies.spawn_on(reply, runtime);
    }

    pub fn connection(&self) -> MultiplexedConnection {
        self.connection.clone()
    }

    /// A message that came before a reply which is there.
    pub fn next_message(&mut self) -> Option<PushInfo> {
        next_message(&mut self.pushes, &mut self.kept)
    }

    pub fn poll_next(&mut self, node: usize, context: &mut Context<'_>) -> Poll<Event> {
        if let Poll::Ready(Some(done)) = self.replies.poll_join_next(context) {
            let link = self.number;
            return Poll::Ready(match done {
                Ok((what, reply)) => Event::Reply(Way { node, link }, what, reply),
                Err(_) => Event::End,
            });
        }
        if let Some(push) = self.kept.take() {
            return Poll::Ready(Event::Push(push));
        }
        let push = self.pushes.poll_recv(context);
        push.map(|push| push.map_or(Event::End, Event::Push))
    }
}

/// Stops at the end of the link, which is kept. What else there is says nothing: the reply to
/// SUBSCRIBE lies before all messages, until the session's task has come to it.
fn next_message(
    pushes: &mut UnboundedReceiver<PushInfo>,
    kept: &mut Option<PushInfo>,
) -> Option<PushInfo> {
    while kept.is_none() {
        let push = pushes.try_recv().ok()?;
        match push.kind {
            PushKind::Message | PushKind::SMessage => return Some(push),
            PushKind::Disconnection | PushKind::SUnsubscribe => *kept = Some(push),
            _ => {}
        }
    }
    None
}

/// Whether the end of a subscription was asked for.
fn is_expected(ending: &Mutex<HashSet<String>>, push: &PushInfo) -> bool {
    let Some(Value::BulkString(channel)) = push.data.first() else {
        return false;
    };
    let mut ending = ending.lock().unwrap_or_else(PoisonError::into_inner);
    ending.remove(&*String::from_utf8_lossy(channel))
}

static NAME: OnceLock<&str> = OnceLock::new();

/// For the command line, which names its connections after itself.
pub fn name_connections(name: &'static str) {
    _ = NAME.set(name);
}

/// As CLIENT LIST shows it. Who may not say so goes on without.
pub(super) async fn name(connection: &mut MultiplexedConnection) -> RedisResult<()> {
    let name = NAME.get().copied();
    let name = name.unwrap_or(concat!("rlock-rust-", env!("CARGO_PKG_VERSION")));
    let mut say = cmd("CLIENT");
    say.arg("SETNAME").arg(name);
    connection.send_packed_command(&say).await.map(drop)
}

/// The client's own address and credentials, in RESP3.
pub(super) fn in_resp3(client: &Client) -> RedisResult<Client> {
    crate::tls::choose_provider();
    let info = client.get_connection_info().clone();
    let settings = info.redis_settings().clone();
    let settings = settings
        .set_protocol(ProtocolVersion::RESP3)
        .set_lib_name("rlock-client", env!("CARGO_PKG_VERSION"));
    Client::open(info.set_redis_settings(settings))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_behind_the_reply_to_subscribe_and_none_behind_the_end() {
        let (sender, mut pushes) = unbounded_channel();
        let kinds = [
            PushKind::Subscribe,
            PushKind::Message,
            PushKind::SUnsubscribe,
            PushKind::Message,
        ];
        for kind in kinds {
            let data = Vec::new();
            sender.send(PushInfo { kind, data }).unwrap();
        }
        let mut kept = None;
        let mut next = || next_message(&mut pushes, &mut kept).map(|push| push.kind);
        assert_eq!(
            (next(), next(), next()),
            (Some(PushKind::Message), None, None)
        );
        assert_eq!(kept.map(|push| push.kind), Some(PushKind::SUnsubscribe));
    }
}

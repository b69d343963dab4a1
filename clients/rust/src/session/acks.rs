//! Whether replicas have a grant.
//!
//! WAIT goes by the last write of its own connection, and a grant that was pushed is none.
//! So over a second connection: a write that changes nothing for each of the holds, and one
//! WAIT for all who want the same.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, InfoDict, RedisResult, Value, cmd, pipe};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use crate::clock::{self, Time};
use crate::error::Error;
use crate::finding::{self, Finding, find};
use crate::library::Speech;
use crate::request::Request;

use super::Shared;
use super::link::{Link, name};
use super::opening;

struct Question {
    id: u64,
    tag: u64,
    request: Arc<Request>,
    acks: Wanted,
    session: MultiplexedConnection,
    speech: Speech,
}

pub(super) struct Acks {
    client: Client,
    session: Weak<Shared>,
    timeout: Duration,
    questions: Option<UnboundedSender<Question>>,
}

impl Acks {
    /// `timeout`: to connect in, and for an answer that is late.
    pub fn new(client: Client, session: Weak<Shared>, timeout: Duration) -> Self {
        Self {
            client,
            session,
            timeout,
            questions: None,
        }
    }

    /// The answer goes to `Actor::acked`.
    pub fn ask(
        &mut self,
        id: u64,
        tag: u64,
        request: &Arc<Request>,
        acks: Wanted,
        link: &Link,
        runtime: &Handle,
    ) {
        let question = Question {
            id,
            tag,
            request: Arc::clone(request),
            acks,
            session: link.connection(),
            speech: link.speech.clone(),
        };
        let questions = self.questions.get_or_insert_with(|| {
            let (sender, questions) = unbounded_channel();
            let server = (self.client.clone(), self.timeout);
            runtime.spawn(answer(server, questions, self.session.clone()));
            sender
        });
        // The task ends after this sender.
        _ = questions.send(question);
    }
}

/// So many replicas, within so long.
type Wanted = (u32, Duration);
/// And the time-out.
type Server = (Client, Duration);
type Confirmed = Result<(Time, Vec<Result<(), Error>>), Error>;

/// One WAIT at a time for each number and time, so that nobody waits for longer than was asked for
/// because somebody else does. A connection is kept for the next.
async fn answer(server: Server, mut questions: UnboundedReceiver<Question>, session: Weak<Shared>) {
    let mut kept = None;
    let mut waiting: HashMap<Wanted, Vec<Question>> = HashMap::new();
    let mut busy = HashSet::new();
    let mut asking = JoinSet::new();
    loop {
        tokio::select! {
            question = questions.recv() => {
                let Some(question) = question else { return };
                waiting.entry(question.acks).or_default().push(question);
                while let Ok(question) = questions.try_recv() {
                    waiting.entry(question.acks).or_default().push(question);
                }
            }
            Some(Ok((acks, connection, asked, end))) = asking.join_next() => {
                busy.remove(&acks);
                kept = kept.or(connection);
                let Some(session) = session.upgrade() else { return };
                complete(&session, asked, &end);
            }
        }
        for (acks, now) in waiting.extract_if(|acks, _| busy.insert(*acks)) {
            let (server, mut connection) = (server.clone(), kept.take());
            asking.spawn(async move {
                let end = confirm(&server, &mut connection, &now, acks).await;
                (acks, connection, now, end)
            });
        }
    }
}

fn complete(session: &Shared, asked: Vec<Question>, end: &Confirmed) {
    for (index, Question { id, tag, .. }) in asked.into_iter().enumerate() {
        let end = match end {
            Ok((sent, ends)) => match ends.get(index) {
                Some(end) => end.clone().map(|()| *sent),
                None => Err(Error::Connection("no reply to RENEW".into())),
            },
            Err(error) => Err(error.clone()),
        };
        session.with(|actor| actor.acked(id, tag, end));
    }
}

/// When the RENEW was sent, and what came of each question.
async fn confirm(
    server: &Server,
    kept: &mut Option<MultiplexedConnection>,
    questions: &[Question],
    (n, within): Wanted,
) -> Confirmed {
    let mut connection = match kept.take() {
        Some(connection) => connection,
        None => open(server)
            .await
            .map_err(|error| Error::from_redis(&error))?,
    };
    let mut sent = clock::now();
    let mut asked = ask(&mut connection, questions, (n, within), server.1).await;
    let is_gone = |end: &Result<(), Error>| matches!(end, Err(e) if e.is_unknown_function());
    if let (Ok((ends, _)), Some(question)) = (&asked, questions.first())
        && ends.iter().any(is_gone)
    {
        // Somebody has flushed the functions: they are loaded again.
        let first = finding::first().query_async(&mut connection).await;
        let finding = Finding::new(question.speech.in_cluster, false);
        find(&mut connection, finding, first).await?;
        sent = clock::now();
        asked = ask(&mut connection, questions, (n, within), server.1).await;
    }
    let (ends, had) = asked.map_err(|error| Error::from_redis(&error))?;
    *kept = Some(connection);
    let few = || Error::Refused {
        code: "NOREPLICAS".into(),
        text: format!(
            "{had} of {n} replicas had the lock within {} ms",
            within.as_millis()
        ),
    };
    let end = |end: Result<(), Error>| end.and_then(|()| if had < n { Err(few()) } else { Ok(()) });
    Ok((sent, ends.into_iter().map(end).collect()))
}

async fn open((client, timeout): &Server) -> RedisResult<MultiplexedConnection> {
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(*timeout))
        .set_response_timeout(Some(*timeout));
    let mut connection = opening::open(client, config).await?;
    name(&mut connection).await?;
    Ok(connection)
}

async fn ask(
    connection: &mut MultiplexedConnection,
    questions: &[Question],
    (n, within): Wanted,
    timeout: Duration,
) -> RedisResult<(Vec<Result<(), Error>>, u32)> {
    let Some(mut session) = questions.last().map(|question| question.session.clone()) else {
        return Ok((Vec::new(), 0));
    };
    session.set_response_timeout(timeout);
    connection.set_response_timeout(timeout + within);
    let (mine, its) = (run(connection).await?, run(&mut session).await?);
    if mine != its {
        let text = "the address led to another server meanwhile";
        return Err((redis::ErrorKind::Io, text).into());
    }
    let mut renew = pipe();
    for Question {
        request, speech, ..
    } in questions
    {
        renew.add_command(request.renew(speech, request.lease, None));
    }
    renew.add_command(cmd("WAIT").arg(n).arg(clock::ms(within)).clone());
    renew.ignore_errors();
    let mut replies: Vec<Value> = renew.query_async(connection).await?;
    let had = match replies.pop() {
        Some(Value::Int(had)) => u32::try_from(had).unwrap_or(0),
        _ => 0,
    };
    let end = |reply: Value| match reply.extract_error() {
        Ok(_) => Ok(()),
        Err(error) => Err(Error::from_redis(&error)),
    };
    Ok((replies.into_iter().map(end).collect(), had))
}

/// Which run of which server this is.
async fn run(connection: &mut MultiplexedConnection) -> RedisResult<Option<String>> {
    let info: InfoDict = cmd("INFO").arg("server").query_async(connection).await?;
    Ok(info.get("run_id"))
}

//! A command whose reply the program's own task takes.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use redis::{RedisResult, Value};
use tokio::sync::oneshot;

use crate::error::Error;

use super::actor::{Actor, What};
use super::apart::apart;
use super::{Answer, Session};

/// Empty when its connection is gone, which it would keep open.
#[derive(Clone)]
pub(super) struct Reply(Arc<Mutex<Option<Waiting>>>);

type Waiting = Pin<Box<dyn Future<Output = RedisResult<Value>> + Send>>;

impl Reply {
    pub fn new(waiting: Waiting) -> Self {
        Self(Arc::new(Mutex::new(Some(waiting))))
    }

    pub fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub fn poll(&self, context: &mut Context<'_>) -> Poll<RedisResult<Value>> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *waiting {
            Some(reply) => {
                let done = reply.as_mut().poll(context);
                if done.is_ready() {
                    *waiting = None;
                }
                done
            }
            None => Poll::Pending,
        }
    }
}

/// Where a command went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Way {
    pub node: usize,
    pub link: u64,
}

pub(super) struct Sent {
    pub way: Way,
    pub what: What,
    pub reply: Reply,
}

impl Session {
    /// What the session answers: by the reply to the command that was sent, or by something
    /// else that comes before.
    pub(super) async fn ask<T>(
        &self,
        command: impl FnOnce(&mut Actor, Answer<T>) -> Option<Sent>,
    ) -> Result<T, Error> {
        let (to, mut answer) = oneshot::channel();
        let sent = self.with(|actor| command(actor, to))?;
        let session = self;
        let mut following = Following { session, sent };
        let answered = std::future::poll_fn(|context| {
            following.poll(context);
            Pin::new(&mut answer).poll(context)
        });
        apart(answered)
            .await
            .unwrap_or_else(|_| Err(Error::closed()))
    }
}

struct Following<'a> {
    session: &'a Session,
    sent: Option<Sent>,
}

impl Following<'_> {
    fn poll(&mut self, context: &mut Context<'_>) {
        let Some(sent) = &self.sent else { return };
        let Poll::Ready(reply) = sent.reply.poll(context) else {
            return;
        };
        if let Some(Sent { way, what, .. }) = self.sent.take() {
            let replied = |actor: &mut Actor| actor.replied(way, what, reply);
            _ = self.session.with(replied);
        }
    }
}

impl Drop for Following<'_> {
    fn drop(&mut self) {
        // The program does not wait any more; the session goes on with it.
        if let Some(sent) = self.sent.take() {
            _ = self.session.with(|actor| actor.follow(sent));
        }
    }
}

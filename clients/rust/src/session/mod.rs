//! A session: one connection to one server, over which all waits and holds run.
//!
//! One task owns it all (`Actor`); the program's side sends it commands and holds ends of
//! channels. So nothing is locked, and what happened first is what was received first.

mod acks;
mod actor;
mod asks;
mod entry;
mod link;
mod lost;
mod told;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redis::Client;
use tokio::sync::{mpsc, oneshot};

use crate::clock::Time;
use crate::error::Error;
use crate::hold::Hold;
use crate::request::Request;

pub(crate) type Answer<T> = oneshot::Sender<Result<T, Error>>;

pub(crate) enum Command {
    Acquire {
        id: u64,
        request: Arc<Request>,
        to: Answer<Hold>,
    },
    /// Nobody wants the request any more.
    Cancel(u64),
    Release {
        id: u64,
        to: Option<Answer<()>>,
    },
    Renew {
        id: u64,
        lease: Duration,
        fence: Option<u64>,
        to: Answer<u64>,
    },
    /// Whether replicas have the grant to the request as it was asked with this tag; and
    /// when its lease was renewed for that.
    Acked {
        id: u64,
        tag: u64,
        end: Result<Time, Error>,
    },
    Close(oneshot::Sender<()>),
}

/// The program's end of it. The session ends when the last of these is gone.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    commands: mpsc::UnboundedSender<Command>,
    pub timeout: Duration,
    connected: Arc<AtomicBool>,
}

impl Session {
    /// Within a tokio runtime.
    pub fn start(client: &Client, timeout: Duration) -> Result<Self, Error> {
        let client = link::in_resp3(client).map_err(|error| Error::from_redis(&error))?;
        let (commands, asked) = mpsc::unbounded_channel();
        let weak = commands.downgrade();
        let acks = acks::Acks::new(client.clone(), weak.clone());
        let actor = actor::Actor::new(client, timeout, weak, acks);
        let connected = Arc::clone(&actor.is_connected);
        tokio::spawn(actor.run(asked));
        Ok(Self {
            commands,
            timeout,
            connected,
        })
    }

    /// Whether its runtime has ended.
    pub fn is_over(&self) -> bool {
        self.commands.is_closed()
    }

    pub fn is_connected(&self) -> bool {
        self.connected.load(Ordering::Relaxed)
    }

    /// False if the session is over.
    pub fn send(&self, command: Command) -> bool {
        self.commands.send(command).is_ok()
    }

    /// What the session answers to a command.
    pub async fn ask<T>(&self, command: impl FnOnce(Answer<T>) -> Command) -> Result<T, Error> {
        let (to, answer) = oneshot::channel();
        self.send(command(to));
        answer.await.unwrap_or_else(|_| Err(Error::closed()))
    }

    pub async fn close(&self) {
        let (to, done) = oneshot::channel();
        if self.send(Command::Close(to)) {
            _ = done.await;
        }
    }
}

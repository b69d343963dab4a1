//! One server, or one node of a cluster: its connection, and the proof that this lives.

use std::pin::Pin;
use std::sync::Weak;
use std::task::{Context, Poll};
use std::time::Duration;

use redis::{Client, ConnectionAddr};
use tokio::task::JoinHandle;

use crate::backend::Backend;
use crate::clock::{self, Time};
use crate::error::Error;
use crate::request::LEASE;

use super::Shared;
use super::acks::Acks;
use super::link::{Event, Link};
use super::opening;

/// In the place of a node's number: it has to be found out yet.
pub(super) const NOWHERE: usize = usize::MAX;

/// Of a server that accepts a connection and says nothing.
fn no_answer(client: &Client) -> &'static str {
    match client.get_connection_info().addr() {
        ConnectionAddr::TcpTls { .. } => {
            "the server has not answered over TLS: does it speak that?"
        }
        _ => "the server has not answered yet",
    }
}

pub(super) struct Node {
    pub client: Client,
    pub acks: Acks,
    pub link: Option<Link>,
    pub connecting: Option<JoinHandle<Result<Link, Error>>>,
    pub connect_at: Time,
    /// There is something to say to it.
    pub wanted: bool,
    /// Connections in a row that were good for nothing.
    pub failures: u32,
    pub last_error: String,
    /// When a heartbeat was sent that was answered.
    pub proof: Time,
    shortest: Duration,
    shortest_since: Time,
    /// Before that it is not given up: this process was paused.
    read_until: Time,
    pub next_beat: Time,
    /// The next connection is made to speak to it in another way: it is there.
    pub is_anew: bool,
    /// What it has, as far as is known.
    pub backend: Option<Backend>,
    /// When it is asked whether it has the module by now.
    pub ask_at: Time,
}

impl Node {
    pub fn new(client: Client, session: Weak<Shared>, timeout: Duration) -> Self {
        Self {
            acks: Acks::new(client.clone(), session, timeout),
            last_error: no_answer(&client).into(),
            client,
            link: None,
            connecting: None,
            connect_at: Time::ZERO,
            wanted: false,
            failures: 0,
            proof: Time::ZERO,
            shortest: LEASE,
            shortest_since: Time::ZERO,
            read_until: Time::ZERO,
            next_beat: Time::ZERO,
            is_anew: false,
            backend: None,
            ask_at: Time::MAX,
        }
    }

    pub fn wants_connection(&self) -> bool {
        self.wanted && self.link.is_none() && self.connecting.is_none()
    }

    /// Reconnects: at once, then with a backoff of 50 ms, doubled up to 1 s.
    pub fn connect_later(&mut self) {
        let wait = match self.failures {
            0 => 0,
            more => (50_u64 << (more - 1).min(5)).min(1000),
        };
        self.failures = self.failures.saturating_add(1);
        self.connect_at = clock::now() + Duration::from_millis(wait);
    }

    /// When something has to be done with it.
    pub fn wake(&self) -> Option<Time> {
        if let Some(link) = &self.link {
            let own = self.next_beat.min(self.dead_at()).min(self.ask_at);
            Some(link.lines.wake().map_or(own, |lines| lines.min(own)))
        } else {
            self.wants_connection().then_some(self.connect_at)
        }
    }

    /// When the last proof of the connection is too old.
    pub fn dead_at(&self) -> Time {
        let dead_at = self.proof.max(self.shortest_since) + self.shortest;
        dead_at.max(self.read_until)
    }

    /// After so long the heartbeat that is sent now is to be answered first.
    pub fn stood_still(&mut self, late: Duration, now: Time) {
        let third = self.shortest / 3;
        if late > third {
            self.read_until = now + third;
        }
    }

    /// A heartbeat is sent now; so long is the shortest lease.
    pub fn beaten(&mut self, shortest: Duration, now: Time) {
        self.shortest = shortest;
        self.next_beat = now + self.shortest / 3;
    }

    /// The heartbeat is as fast as the shortest lease needs.
    pub fn beat_for(&mut self, lease: Duration) {
        if lease < self.shortest {
            let now = clock::now();
            self.shortest = lease;
            self.shortest_since = now;
            self.next_beat = self.next_beat.min(now);
        }
    }

    /// A connection is there, proved since then.
    pub fn start_beat(&mut self, since: Time) {
        self.proof = since;
        self.next_beat = since;
    }

    pub fn poll_next(&mut self, number: usize, context: &mut Context<'_>) -> Poll<Event> {
        if let Some(link) = &mut self.link {
            return link.poll_next(number, context);
        }
        let Some(opening) = &mut self.connecting else {
            return Poll::Pending;
        };
        let link = std::task::ready!(Pin::new(opening).poll(context));
        self.connecting = None;
        let failed = |error| Err(Error::from_redis(&opening::failed(&error)));
        let link = link.unwrap_or_else(failed);
        Poll::Ready(Event::Opened(Box::new(link)))
    }
}

//! The task that owns the session: what it knows, and what it waits for.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use redis::{Client, RedisResult};
use tokio::sync::mpsc::{UnboundedReceiver, WeakUnboundedSender};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::clock::{self, Time};
use crate::error::Error;
use crate::request::{LEASE, Request};

use super::acks::Acks;
use super::entry::Entry;
use super::link::{Event, Link};
use super::{Answer, Command, Session};

/// Which command a reply belongs to.
pub(super) enum What {
    Acquire {
        id: u64,
        tag: u64,
    },
    /// Of a plain hold that waited, to know its deadline.
    FirstRenew {
        id: u64,
        tag: u64,
        sent: Time,
    },
    Renew {
        id: u64,
        lease: Duration,
        sent: Time,
        to: Answer<u64>,
    },
    Release {
        id: u64,
    },
    Cancel,
    Owed {
        id: u64,
    },
    Ping {
        sent: Time,
    },
}

/// A request or a hold that is over for the program, and perhaps not for the server.
pub(super) struct Owed {
    pub request: Arc<Request>,
    /// It may wait still.
    pub waits: bool,
    pub sent: bool,
}

pub(super) struct Actor {
    client: Client,
    pub timeout: Duration,
    /// To make holds with; the session ends when nobody else has one.
    sender: WeakUnboundedSender<Command>,
    pub acks: Acks,

    pub link: Option<Link>,
    pub is_connected: Arc<AtomicBool>,
    connecting: Option<JoinHandle<RedisResult<Link>>>,
    connect_at: Time,
    /// Connections in a row that were good for nothing.
    pub failures: u32,
    pub last_error: String,

    pub entries: HashMap<u64, Entry>,
    pub by_tag: HashMap<u64, u64>,
    pub last_tag: u64,
    pub owed: HashMap<u64, Owed>,
    pub due: BTreeSet<(Time, u64)>,

    /// When a PING was sent that was answered.
    pub proof: Time,
    pub shortest: Duration,
    shortest_since: Time,
    next_ping: Time,
    pub closing: Option<oneshot::Sender<()>>,
    pub closed: bool,
}

impl Actor {
    pub fn new(
        client: Client,
        timeout: Duration,
        sender: WeakUnboundedSender<Command>,
        acks: Acks,
    ) -> Self {
        Self {
            client,
            timeout,
            sender,
            acks,
            link: None,
            is_connected: Arc::default(),
            connecting: None,
            connect_at: Time::ZERO,
            failures: 0,
            last_error: "not connected yet".into(),
            entries: HashMap::new(),
            by_tag: HashMap::new(),
            last_tag: 0,
            owed: HashMap::new(),
            due: BTreeSet::new(),
            proof: Time::ZERO,
            shortest: LEASE,
            shortest_since: Time::ZERO,
            next_ping: Time::ZERO,
            closing: None,
            closed: false,
        }
    }

    pub async fn run(mut self, mut commands: UnboundedReceiver<Command>) {
        let mut open = true;
        // When nobody is left who could ask, so long for what is owed to the server.
        let mut end: Option<Time> = None;
        loop {
            if !open && !self.has_work() || end.is_some_and(|end| end <= clock::now()) {
                return;
            }
            self.connect_if_needed();
            let wake = self.wake(end);
            tokio::select! {
                command = commands.recv(), if open => match command {
                    Some(command) => self.asked(command),
                    None => {
                        open = false;
                        end = Some(clock::now() + self.timeout);
                    }
                },
                event = next(&mut self.link) => match event {
                    Event::Reply(what, reply) => self.replied(what, reply),
                    Event::Push(push) => self.pushed(push),
                    Event::End => self.disconnected("the connection was closed"),
                },
                link = connected(&mut self.connecting) => {
                    self.connecting = None;
                    match link {
                        Ok(link) => self.connected(link),
                        Err(error) => self.not_connected(&error),
                    }
                }
                () = sleep(wake.saturating_sub(clock::now())) => {}
            }
            self.look_at_clock();
            self.finish_close();
        }
    }

    pub fn session(&self) -> Option<Session> {
        let commands = self.sender.upgrade()?;
        let timeout = self.timeout;
        let connected = Arc::clone(&self.is_connected);
        Some(Session {
            commands,
            timeout,
            connected,
        })
    }

    pub fn has_work(&self) -> bool {
        !self.entries.is_empty() || !self.owed.is_empty()
    }

    fn connect_if_needed(&mut self) {
        let idle = self.link.is_some() || self.connecting.is_some();
        if idle || !self.has_work() || self.connect_at > clock::now() {
            return;
        }
        let open = Link::open(self.client.clone(), self.timeout);
        self.connecting = Some(tokio::spawn(open));
    }

    /// At once, then after 50 ms, doubled up to 1 s.
    pub fn connect_later(&mut self) {
        let wait = match self.failures {
            0 => 0,
            more => (50_u64 << (more - 1).min(5)).min(1000),
        };
        self.failures = self.failures.saturating_add(1);
        self.connect_at = clock::now() + Duration::from_millis(wait);
    }

    /// When something has to be done, whatever comes in.
    fn wake(&self, end: Option<Time>) -> Time {
        let mut wake = clock::now() + Duration::from_secs(3600);
        let mut at = |time: Time| wake = wake.min(time);
        if let Some(&(due, _)) = self.due.first() {
            at(due);
        }
        if self.link.is_some() {
            at(self.next_ping);
            at(self.dead_at());
        } else if self.connecting.is_none() && self.has_work() {
            at(self.connect_at);
        }
        end.map(at);
        wake
    }

    /// When the last proof of the connection is too old.
    fn dead_at(&self) -> Time {
        self.proof.max(self.shortest_since) + self.shortest
    }

    fn look_at_clock(&mut self) {
        let now = clock::now();
        if self.link.is_some() {
            if self.dead_at() <= now {
                self.disconnected("the server did not answer for a lease");
            } else if self.next_ping <= now {
                self.beat(now);
            }
        }
        while let Some(&(at, id)) = self.due.first()
            && at <= now
        {
            self.due.pop_first();
            self.entry_due(id, now);
        }
    }

    fn beat(&mut self, now: Time) {
        let leases = self.entries.values().map(Entry::lease);
        self.shortest = leases.min().unwrap_or(LEASE);
        self.next_ping = now + self.shortest / 3;
        if let Some(link) = &mut self.link {
            link.send(What::Ping { sent: now }, redis::cmd("PING"));
        }
        self.pay();
    }

    /// The heartbeat is as fast as the shortest lease needs.
    pub fn beat_for(&mut self, lease: Duration) {
        if lease < self.shortest {
            let now = clock::now();
            self.shortest = lease;
            self.shortest_since = now;
            self.next_ping = self.next_ping.min(now);
        }
    }

    /// A connection is there, proved since then.
    pub fn start_beat(&mut self, since: Time) {
        self.proof = since;
        self.next_ping = since;
    }

    pub fn look_again(&mut self, id: u64) {
        if let Some(entry) = self.entries.get(&id)
            && let Some(at) = entry.due(self.timeout)
        {
            self.due.insert((at, id));
        }
    }

    /// Sends what the server has not been told yet.
    pub fn pay(&mut self) {
        let Some(link) = &mut self.link else { return };
        for (&id, owed) in self.owed.iter_mut().filter(|(_, owed)| !owed.sent) {
            owed.sent = true;
            if owed.waits {
                link.send(What::Cancel, owed.request.cancel());
            }
            link.send(What::Owed { id }, owed.request.release_all());
        }
    }

    pub fn owe(&mut self, id: u64, request: Arc<Request>, waits: bool) {
        let sent = false;
        let owed = Owed {
            request,
            waits,
            sent,
        };
        self.owed.insert(id, owed);
        self.pay();
    }

    /// Ends a request that has failed.
    pub fn fail(&mut self, id: u64, error: Error) {
        if let Some(entry) = self.remove(id)
            && let super::entry::Phase::Asked(asked) = entry.phase
        {
            if let Some(place) = &entry.request.place {
                place.leave();
            }
            _ = asked.to.send(Err(error));
        }
    }

    pub fn remove(&mut self, id: u64) -> Option<Entry> {
        let entry = self.entries.remove(&id)?;
        self.by_tag.remove(&entry.tag);
        if let Some(at) = entry.due(self.timeout) {
            self.due.remove(&(at, id));
        }
        Some(entry)
    }

    fn finish_close(&mut self) {
        if self.closed && !self.has_work() {
            self.link = None;
            if let Some(done) = self.closing.take() {
                _ = done.send(());
            }
        }
    }
}

async fn next(link: &mut Option<Link>) -> Event {
    match link {
        Some(link) => link.next().await,
        None => std::future::pending().await,
    }
}

async fn connected(connecting: &mut Option<JoinHandle<RedisResult<Link>>>) -> RedisResult<Link> {
    let Some(opening) = connecting else {
        return std::future::pending().await;
    };
    opening
        .await
        .unwrap_or_else(|error| Err((redis::ErrorKind::Io, "connecting", error.to_string()).into()))
}

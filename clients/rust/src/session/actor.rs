//! What the session knows, and the task that looks after it.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU8};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use redis::Client;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::sleep;

use crate::clock::{self, Time};
use crate::error::{Error, Reason};
use crate::state::State;

use super::cluster::Cluster;
use super::direct::Sent;
use super::entry::{Entry, Phase};
use super::link::Event;
use super::node::Node;
use super::pending::PendingCommand;
use super::stay::Stay;
use super::{Answer, End, Options, Session, Shared};

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
    /// Of a plain hold, to be notified of its loss on a new connection.
    Regain {
        id: u64,
        lease: Duration,
        sent: Time,
    },
    Release {
        id: u64,
    },
    /// One or the other command of what is pending.
    PendingCommand {
        id: u64,
    },
    /// A token for the use of a sticky lock; the tag is of this question alone.
    Token {
        stay: u64,
        tag: u64,
    },
    /// PING, to read what was said before its reply.
    Proof {
        sent: Time,
    },
    /// HEARTBEAT, or PING.
    Beat {
        sent: Time,
    },
    /// To be told that somebody waits for a hold.
    Want {
        id: u64,
    },
    /// Of a hold with watchdog that this session keeps.
    Keep {
        id: u64,
        lease: Duration,
        sent: Time,
    },
    /// The end of one says nothing.
    Subscribe {
        channel: String,
    },
    Unsubscribe,
    /// Whether there is the module by now; asked by the first question, or by the second.
    HasModule {
        first: bool,
    },
}

pub(super) struct Actor {
    pub timeout: Duration,
    pub runtime: Handle,
    pub me: Weak<Shared>,
    /// To make holds with; the session ends when nobody else has one.
    pub end: Weak<End>,
    pub open: bool,
    /// Until when pending commands are retried, when it is closed or nobody is left who
    /// could ask.
    ends: Option<Time>,

    /// The one server, or the nodes of the cluster as they became known.
    pub nodes: Vec<Node>,
    pub cluster: Option<Cluster>,
    pub is_connected: Arc<AtomicBool>,
    pub backend: Arc<AtomicU8>,
    pub options: Options,

    pub entries: HashMap<u64, Entry>,
    pub by_tag: HashMap<u64, u64>,
    pub last_tag: u64,
    pub pending: HashMap<u64, PendingCommand>,
    /// Whose release was sent and not answered.
    pub releasing: HashSet<u64>,
    /// Requests of jobs that come after a release.
    pub held_back: HashSet<u64>,
    pub stays: HashMap<u64, Stay>,
    /// Of entries and of sticky locks.
    pub due: BTreeSet<(Time, u64)>,
    /// To be done when this is not locked any more: what notifies the program, and what of
    /// its own is dropped with that, is code of the program, which may come here again.
    pub after: Vec<Box<dyn FnOnce() + Send>>,

    sleeps_until: Time,
    /// This process was paused: until then what came meanwhile is read first.
    pub read_until: Time,
    poked: bool,
    pub closing: Vec<oneshot::Sender<()>>,
    pub closed: bool,
}

impl Actor {
    pub fn new(clients: Vec<Client>, options: Options, runtime: Handle, me: Weak<Shared>) -> Self {
        let (mut nodes, mut cluster) = (Vec::new(), None);
        let timeout = options.timeout;
        if options.is_cluster {
            cluster = Some(Cluster::new(clients));
        } else {
            nodes.extend(
                clients
                    .into_iter()
                    .map(|client| Node::new(client, me.clone(), timeout)),
            );
        }
        Self {
            timeout,
            runtime,
            me,
            end: Weak::new(),
            open: true,
            ends: None,
            nodes,
            cluster,
            is_connected: Arc::default(),
            backend: Arc::default(),
            options,
            entries: HashMap::new(),
            by_tag: HashMap::new(),
            last_tag: 0,
            pending: HashMap::new(),
            releasing: HashSet::new(),
            held_back: HashSet::new(),
            stays: HashMap::new(),
            due: BTreeSet::new(),
            after: Vec::new(),
            sleeps_until: Time::MAX,
            read_until: Time::ZERO,
            poked: false,
            closing: Vec::new(),
            closed: false,
        }
    }

    pub fn session(&self) -> Option<Session> {
        let (end, timeout) = (self.end.upgrade()?, self.timeout);
        Some(Session { end, timeout })
    }

    pub fn has_work(&self) -> bool {
        !self.entries.is_empty() || !self.pending.is_empty()
    }

    /// Whether there is something that its task does not wait for yet.
    pub fn wants_its_task(&mut self) -> bool {
        let closes = !self.closing.is_empty() && !self.has_work();
        std::mem::take(&mut self.poked) || closes || self.wake() < self.sleeps_until
    }

    /// The session's own task takes the reply.
    pub fn follow(&mut self, sent: Sent) {
        if let Some(node) = self.nodes.get_mut(sent.way.node)
            && let Some(link) = node.link.as_mut()
            && link.number == sent.way.link
        {
            link.follow(sent, &self.runtime);
            self.poked = true;
        }
    }

    /// When something has to be done, whatever comes in.
    fn wake(&self) -> Time {
        let due = self.due.first().map(|&(due, _)| due);
        let nodes = self.nodes.iter().filter_map(Node::wake);
        let slots = self.cluster.as_ref().and_then(Cluster::wake);
        let all = due.into_iter().chain(nodes).chain(slots).chain(self.ends);
        all.min().unwrap_or(Time::MAX)
    }

    /// False when the session is over.
    fn look_after(&mut self) -> bool {
        let now = clock::now();
        if !self.open || !self.closing.is_empty() {
            let ends = *self.ends.get_or_insert(now + self.timeout);
            if ends <= now {
                self.give_up("the server did not answer");
            }
            if !self.open && !self.has_work() {
                return false;
            }
        }
        self.stood_still(now.saturating_sub(self.sleeps_until), now);
        self.read_slots_if_due(now);
        for node in 0..self.nodes.len() {
            self.look_after_node(node, now);
        }
        while let Some(&(at, id)) = self.due.first()
            && at <= now
        {
            self.due.pop_first();
            self.entry_due(id, now);
        }
        self.finish_close();
        self.sleeps_until = self.wake();
        self.poked = false;
        true
    }

    fn look_after_node(&mut self, number: usize, now: Time) {
        let node = &self.nodes[number];
        if node.link.is_some() {
            if node.dead_at() <= now {
                self.disconnected(number, "the server did not answer for a lease");
            } else if node.next_beat <= now {
                self.beat(number, now);
                self.send_all_pending();
            }
            self.look_after_lines(number, now);
        }
        let node = &self.nodes[number];
        if node.wants_connection() && node.connect_at <= now {
            self.connect(number);
        }
    }

    pub fn look_again(&mut self, id: u64) {
        if let Some(entry) = self.entries.get(&id)
            && let Some(at) = entry.due(self.timeout)
        {
            self.due.insert((at, id));
        }
    }

    /// To the program.
    pub fn answer<T: Send + 'static>(&mut self, to: oneshot::Sender<T>, answer: T) {
        // If nobody waits it is dropped there; a hold is released by that.
        self.after.push(Box::new(move || drop(to.send(answer))));
    }

    pub fn notify_lost(&mut self, state: Arc<State>, reason: Reason) {
        state.lose(reason);
        self.notify(state);
    }

    pub fn notify(&mut self, state: Arc<State>) {
        self.after.push(Box::new(move || state.notify()));
    }

    pub fn is_of_job(&self, id: u64) -> bool {
        let entry = self.entries.get(&id);
        entry.is_some_and(|entry| entry.request.place.is_some())
    }

    pub fn remove(&mut self, id: u64) -> Option<Entry> {
        let entry = self.entries.remove(&id)?;
        if let Phase::Asked(asked) = &entry.phase {
            self.leave_line(&entry.request, entry.node, id, asked.token.is_some());
        }
        self.by_tag.remove(&entry.tag);
        self.releasing.remove(&id);
        if let Some(at) = entry.due(self.timeout) {
            self.due.remove(&(at, id));
        }
        Some(entry)
    }

    fn finish_close(&mut self) {
        if self.closed && !self.has_work() {
            for node in &mut self.nodes {
                node.link = None;
                node.connecting = None;
                node.wanted = false;
            }
            self.ends = None;
            for done in std::mem::take(&mut self.closing) {
                self.answer(done, ());
            }
        }
    }

    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<(usize, Event)> {
        for (number, node) in self.nodes.iter_mut().enumerate() {
            if let Poll::Ready(event) = node.poll_next(number, context) {
                return Poll::Ready((number, event));
            }
        }
        let slots = self.cluster.as_mut().map(|slots| slots.poll(context));
        if let Some(Poll::Ready(read)) = slots {
            self.slots_read(read);
            // What was given to nodes may have to be looked after.
            context.waker().wake_by_ref();
        }
        Poll::Pending
    }

    fn happened(&mut self, node: usize, event: Event) {
        match event {
            Event::Opened(opened) => match *opened {
                Ok(link) => self.connected(node, link),
                Err(error) => self.not_connected(node, &error),
            },
            Event::Reply(way, what, reply) => self.replied(way, what, reply),
            Event::Push(push) => self.pushed(node, push),
            Event::End => self.disconnected(node, "the connection was closed"),
        }
    }

    /// What could not be said to the server: leases end by themselves.
    fn give_up(&mut self, why: &str) {
        for node in 0..self.nodes.len() {
            self.disconnected(node, why);
        }
        for id in self.entries.keys().copied().collect::<Vec<_>>() {
            self.lose(id, Reason::Connection);
            self.fail(id, Error::Connection(why.into()));
        }
        self.entries.clear();
        self.pending.clear();
        self.releasing.clear();
        self.held_back.clear();
    }
}

pub(super) async fn run(shared: Arc<Shared>) {
    let shared = Looked(shared);
    let Looked(this) = &shared;
    while this.with(Actor::look_after) {
        let until = this.with(|actor| actor.sleeps_until);
        // In one step: else a call of the program between the two would not know of a loss that has
        // come.
        let poll = |context: &mut Context<'_>| {
            this.with(|actor| {
                let event = actor.poll_event(context);
                event.map(|(node, event)| actor.happened(node, event))
            })
        };
        let event = std::future::poll_fn(poll);
        let rest = until
            .saturating_sub(clock::now())
            .min(Duration::from_secs(3600));
        tokio::select! {
            () = event => {}
            () = this.wake.notified() => {}
            () = sleep(rest) => {}
        }
    }
}

/// Nobody waits for a task that has ended, as it would by an error of its own.
struct Looked(Arc<Shared>);

impl Drop for Looked {
    fn drop(&mut self) {
        self.0.with(|actor| {
            actor.closed = true;
            actor.give_up("the session has ended");
            actor.finish_close();
        });
    }
}

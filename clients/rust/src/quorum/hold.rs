//! A hold by quorum, and the task that renews it.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::QuorumAcquire;
use super::attempt::{Tries, drift};
use super::server::Failed;
use crate::clock::{Time, now};
use crate::error::{Error, Reason};
use crate::hold::Hold;
use crate::session::apart;
use crate::state::State;

/// One server that counts.
pub(super) struct Member {
    /// Which of the servers.
    pub index: usize,
    pub hold: Arc<Hold>,
    /// By its last RENEW that was acknowledged, from before that was sent.
    pub valid: Time,
}

/// A lock that this program has on a majority of servers, until it is released, dropped or
/// lost. It is renewed every third of its lease by a task of this runtime. That somebody waits for it
/// is not told, as it is of a [`Hold`](crate::Hold::is_wanted).
#[must_use = "a hold that is dropped is released"]
pub struct QuorumHold {
    key: String,
    owner: String,
    token: u64,
    state: Arc<State>,
    /// Dropped, or asked to release: the task ends.
    end: Option<mpsc::Sender<oneshot::Sender<()>>>,
}

impl QuorumHold {
    /// `free`: servers that the same owner may ask again.
    pub(super) fn new(
        ask: QuorumAcquire,
        owner: String,
        token: u64,
        members: Vec<Member>,
        tries: Tries,
        free: &[usize],
    ) -> Result<Self, Error> {
        let (majority, key) = (ask.quorum.majority(), ask.key.clone());
        let servers = ask.quorum.servers.len();
        let state = Arc::new(State::new(validity(&members, majority)));
        if state.reason().is_some() {
            return Err(Error::Connection("the servers answered too late".into()));
        }
        let (end, ended) = mpsc::channel(1);
        let keeper = Keeper {
            lease: ask.lease,
            ask,
            owner: owner.clone(),
            token,
            majority,
            members,
            tries,
            renewing: JoinSet::new(),
            joining: JoinSet::new(),
            tried: (0..servers).filter(|index| !free.contains(index)).collect(),
            state: Arc::clone(&state),
        };
        tokio::spawn(keeper.run(ended));
        let end = Some(end);
        Ok(Self {
            key,
            owner,
            token,
            state,
            end,
        })
    }

    /// The fencing token: greater than that of every hold by quorum before.
    pub fn token(&self) -> u64 {
        self.token
    }

    /// The key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The owner, as the servers know it.
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// Ends when the hold is lost, with the reason.
    pub fn lost(&self) -> impl Future<Output = Reason> + Send + 'static + use<> {
        State::lost(&self.state)
    }

    /// Whether it is lost.
    pub fn is_lost(&self) -> bool {
        self.reason().is_some()
    }

    /// Why it was lost, if it was.
    pub fn reason(&self) -> Option<Reason> {
        self.state.reason()
    }

    /// Until when it is good if it is not renewed any more, counted from now.
    pub fn remaining(&self) -> Duration {
        self.state
            .deadline()
            .unwrap_or_default()
            .saturating_sub(now())
    }

    /// Releases it, and waits until the servers that answer within a second have.
    ///
    /// # Errors
    /// [`Error::Lost`] if it was lost before.
    pub async fn release(mut self) -> Result<(), Error> {
        let lost = self.reason();
        // A fork has no task that would answer.
        if lost == Some(Reason::Fork) {
            return Err(Error::Lost(Reason::Fork));
        }
        if let Some(end) = self.end.take() {
            let (to, done) = oneshot::channel();
            let done = async {
                if end.send(to).await.is_ok() {
                    _ = done.await;
                }
            };
            apart(done).await;
        }
        lost.map_or(Ok(()), |reason| Err(Error::Lost(reason)))
    }
}

impl fmt::Debug for QuorumHold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuorumHold")
            .field("key", &self.key)
            .field("token", &self.token)
            .field("owner", &self.owner)
            .field("lost", &self.reason())
            .finish()
    }
}

/// Until when a server is sure: from before its last RENEW was sent.
pub(super) fn sure(hold: &Hold, lease: Duration) -> Time {
    hold.deadline()
        .unwrap_or_default()
        .saturating_sub(drift(lease))
}

/// Until when a majority is sure.
fn validity(members: &[Member], majority: usize) -> Option<Time> {
    let mut valid: Vec<Time> = members.iter().map(|member| member.valid).collect();
    valid.sort_unstable_by(|one, other| other.cmp(one));
    Some(valid.get(majority - 1).copied().unwrap_or(Time::ZERO))
}

struct Keeper {
    ask: QuorumAcquire,
    owner: String,
    token: u64,
    lease: Duration,
    majority: usize,
    members: Vec<Member>,
    /// Requests under way.
    tries: Tries,
    /// Renewals under way: of which hold, and until when it is sure by that. Nobody waits for
    /// a server that is away.
    renewing: JoinSet<(Arc<Hold>, Option<Time>)>,
    /// Grants that are to count: of which server, and whether they do.
    joining: JoinSet<(usize, Option<Member>)>,
    /// Servers that are not to be asked now: because they count, are asked already, or were sent
    /// a RELEASE, which could come after the next ACQUIRE of this owner. That one is out for good.
    tried: HashSet<usize>,
    state: Arc<State>,
}

impl Keeper {
    async fn run(mut self, mut ended: mpsc::Receiver<oneshot::Sender<()>>) {
        let mut round = now() + self.lease / 3;
        loop {
            let deadline = self.state.deadline().unwrap_or_default();
            let next = deadline.min(round).saturating_sub(now());
            tokio::select! {
                biased;
                end = ended.recv() => return self.release(end).await,
                reason = a_loss(&self.members) => {
                    self.forget_lost();
                    self.state.set_deadline(validity(&self.members, self.majority));
                    if self.members.len() < self.majority {
                        self.state.lose(reason);
                    }
                }
                Some(Ok((index, tried))) = self.tries.join_next() => self.granted(index, tried),
                // Its deadline passes if the hold was good until now.
                Some(Ok((_, member))) = self.joining.join_next() => {
                    if self.state.reason().is_none() {
                        self.members.extend(member);
                        self.state.set_deadline(validity(&self.members, self.majority));
                    }
                }
                Some(Ok((hold, valid))) = self.renewing.join_next() => self.renewed(&hold, valid),
                () = sleep(next) => {
                    round = now() + self.lease / 3;
                    self.join_again();
                    self.renew();
                }
            }
            if self.state.reason().is_some() {
                self.state.notify();
                // For ever, and released at all of them.
                return self.release(None).await;
            }
        }
    }

    /// Asks the servers that do not count any more, or never did.
    fn join_again(&mut self) {
        for index in 0..self.ask.quorum.servers.len() {
            if self.tried.insert(index) {
                let ask = self.ask.clone().try_at(index, self.owner.clone());
                self.tries.spawn(async move { (index, ask.await) });
            }
        }
    }

    /// A server has granted after the majority was full, or has come back: it counts once it
    /// knows the token, as long as the hold is good. What its own token is does not matter any
    /// more, so the fence's reply says nothing.
    fn granted(&mut self, index: usize, tried: Result<Hold, Failed>) {
        let (lease, token) = (self.lease, self.token);
        match tried {
            Ok(hold) => {
                self.joining.spawn(async move {
                    let fenced = hold.renew_and(lease, Some(token)).await;
                    let valid = sure(&hold, lease);
                    (
                        index,
                        fenced.is_ok().then(|| Member {
                            index,
                            hold: Arc::new(hold),
                            valid,
                        }),
                    )
                });
            }
            Err(failed) if failed.is_out => {}
            Err(_) => {
                self.tried.remove(&index);
            }
        }
    }

    /// Who has lost the hold may be asked again: there is none that a RELEASE was sent for.
    fn forget_lost(&mut self) {
        let tried = &mut self.tried;
        self.members.retain(|member| {
            let is_lost = member.hold.is_lost();
            if is_lost {
                tried.remove(&member.index);
            }
            !is_lost
        });
    }

    fn renew(&mut self) {
        let (lease, token) = (self.lease, self.token);
        for Member { hold, .. } in &self.members {
            let hold = Arc::clone(hold);
            self.renewing.spawn(async move {
                let reply = timeout(lease / 4, hold.renew_and(lease, Some(token))).await;
                let valid = matches!(reply, Ok(Ok(_))).then(|| sure(&hold, lease));
                (hold, valid)
            });
        }
    }

    /// What comes after the validity has ended is too late.
    fn renewed(&mut self, hold: &Arc<Hold>, valid: Option<Time>) {
        let mut members = self.members.iter_mut();
        let member = members.find(|member| Arc::ptr_eq(&member.hold, hold));
        if let (Some(member), Some(valid), None) = (member, valid, self.state.reason()) {
            member.valid = valid;
            self.state
                .set_deadline(validity(&self.members, self.majority));
        }
    }

    async fn release(mut self, done: Option<oneshot::Sender<()>>) {
        self.renewing.shutdown().await;
        let mut releasing = JoinSet::new();
        let holds = self.members.into_iter().map(|member| member.hold);
        for hold in holds.filter_map(Arc::into_inner) {
            releasing.spawn(hold.release());
        }
        let all = async { while releasing.join_next().await.is_some() {} };
        _ = timeout(Duration::from_secs(1), all).await;
        _ = done.map(|done| done.send(()));
    }
}

/// The next of them that is lost.
async fn a_loss(members: &[Member]) -> Reason {
    let mut losses: Vec<_> = members
        .iter()
        .map(|member| Box::pin(member.hold.lost()))
        .collect();
    std::future::poll_fn(|context| {
        for loss in &mut losses {
            if let std::task::Poll::Ready(reason) = loss.as_mut().poll(context) {
                return std::task::Poll::Ready(reason);
            }
        }
        std::task::Poll::Pending
    })
    .await
}

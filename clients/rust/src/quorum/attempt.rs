//! One attempt, by a fresh owner: a majority, and then the fence.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::hold::{Member, sure};
use super::server::{Failed, Server};
use super::{QuorumAcquire, QuorumHold};
use crate::acquire::Acquire;
use crate::clock::{Time, now};
use crate::error::Error;
use crate::hold::Hold;
use crate::job::fresh_owner;
use crate::request::Wait;

/// Requests under way: of which server, and what came of it.
pub(super) type Tries = JoinSet<(usize, Result<Hold, Failed>)>;

/// For how long grants are still waited for when the majority is full: the more servers count
/// at once, the fewer have to join later.
const GRACE: Duration = Duration::from_millis(50);

/// What a lease is shorter by than it is on the servers: clocks drift.
pub(super) fn drift(lease: Duration) -> Duration {
    lease / 100 + Duration::from_millis(2)
}

impl QuorumAcquire {
    /// Without a majority everything is released when it is dropped: a hold, or a request whose
    /// grant may come yet. With one nothing is, for a late copy of a RELEASE could free what
    /// the same owner has come to hold since; whatever else is granted joins the hold.
    pub(super) async fn attempt(&self, left: Wait) -> Result<QuorumHold, Error> {
        let owner = fresh_owner();
        // Servers that this owner does not ask any more.
        let mut out = HashSet::new();
        let (first, hold) = self.first(&owner, left, &mut out).await?;
        // Of all requests this one was sent first, or the RENEW after it was waited for.
        let begun = hold
            .deadline()
            .unwrap_or_default()
            .saturating_sub(self.lease);
        let mut tries = JoinSet::new();
        let servers = self.quorum.servers.len();
        for index in (0..servers).filter(|index| *index != first && !out.contains(index)) {
            let ask = self.clone().try_at(index, owner.clone());
            tries.spawn(async move { (index, ask.await) });
        }
        let mut grants = vec![(first, hold)];
        let (mut free, mut unable, mut why) = (Vec::new(), out.len(), None);
        let mut taken = None;
        let end = begun + self.lease / 2;
        let mut until = end;
        while let Ok(Some(tried)) = timeout(until.saturating_sub(now()), tries.join_next()).await {
            match tried {
                Ok((index, Ok(hold))) => grants.push((index, hold)),
                Ok((index, Err(failed))) => {
                    if !failed.is_out {
                        free.push(index);
                    }
                    if failed.is_unable() {
                        unable += 1;
                        why = worse(why, failed.error);
                    } else {
                        taken = Some(failed.error);
                    }
                }
                Err(_) => {}
            }
            if grants.len() == self.quorum.majority() {
                until = end.min(now() + GRACE);
            }
            if grants.len() + tries.len() < self.quorum.majority() {
                break;
            }
        }
        if grants.len() < self.quorum.majority() {
            // Those that are away are the reason if they could have made the majority.
            let silent = unable + tries.len();
            if let Some(taken) = taken
                && grants.len() + silent < self.quorum.majority()
            {
                return Err(taken);
            }
            let silent = || Error::Connection("no majority answers".into());
            return Err(why.unwrap_or_else(silent));
        }
        let token = grants
            .iter()
            .map(|(_, hold)| hold.token())
            .max()
            .unwrap_or(0);
        let members = self.fence(grants, token, begun, &mut tries).await?;
        QuorumHold::new(self.clone(), owner, token, members, tries, &free)
    }

    pub(super) fn at(&self, index: usize, owner: &str) -> Acquire {
        let ask = self.quorum.servers[index].locks.acquire(self.key.as_str());
        ask.plain().lease(self.lease).owner(owner)
    }

    /// At the first server that can be reached, where waiters are queued. `out`: those
    /// that were asked and did not answer.
    async fn first(
        &self,
        owner: &str,
        left: Wait,
        out: &mut HashSet<usize>,
    ) -> Result<(usize, Hold), Error> {
        let mut why = None;
        for (index, server) in self.quorum.servers.iter().enumerate() {
            let failed = match self.clone().try_at(index, owner.into()).await {
                Ok(hold) => return Ok((index, hold)),
                Err(failed) => failed,
            };
            let error = match failed.error {
                taken @ Error::NotAcquired { .. } => {
                    let ask = self.at(index, owner);
                    let ask = match left {
                        // All before it are away or refuse.
                        Wait::Once
                            if self.quorum.servers.len() - index < self.quorum.majority() =>
                        {
                            return Err(why.unwrap_or(taken));
                        }
                        Wait::Once => return Err(taken),
                        Wait::For(time) => ask.wait(time),
                        Wait::Forever => ask.wait_forever(),
                    };
                    tokio::select! {
                        end = ask.into_future() => match end {
                            Err(error @ Error::Connection(_)) => error,
                            end => return end.map(|hold| (index, hold)),
                        },
                        error = gone(server) => error,
                    }
                }
                error @ (Error::Connection(_) | Error::Refused { .. }) => {
                    if !failed.is_out {
                        why = worse(why, error);
                        continue;
                    }
                    error
                }
                error => return Err(error),
            };
            out.insert(index);
            why = worse(why, error);
        }
        Err(why.unwrap_or_else(|| Error::Connection("none of the servers".into())))
    }

    /// Those whose counter is the token now. A hold that came later has a greater one; it may
    /// join those that count once they are a majority. Where they are none, it fails with what
    /// a server replied against the token.
    async fn fence(
        &self,
        grants: Vec<(usize, Hold)>,
        token: u64,
        begun: Time,
        others: &mut Tries,
    ) -> Result<Vec<Member>, Error> {
        let lease = self.lease;
        let end = (begun + lease - drift(lease)).saturating_sub(lease / 4);
        let patience = end.saturating_sub(now());
        let mut fencing = JoinSet::new();
        for (index, hold) in grants {
            fencing.spawn(async move {
                let counter = timeout(patience, hold.renew_and(lease, Some(token))).await;
                (index, hold, counter)
            });
        }
        let (mut members, mut why) = (Vec::new(), None);
        while let Some(fenced) = fencing.join_next().await {
            let Ok((index, hold, counter)) = fenced else {
                continue;
            };
            if counter == Ok(Ok(token)) {
                let valid = sure(&hold, lease);
                let hold = Arc::new(hold);
                members.push(Member { index, hold, valid });
                continue;
            }
            others.spawn(async move { (index, Ok(hold)) });
            match counter {
                // Somebody else has a greater token, or has it.
                Ok(Ok(_) | Err(Error::Lost(_))) => {}
                Ok(Err(error)) => why = worse(why, error),
                Err(_) => why = worse(why, Error::Connection("no reply to RENEW".into())),
            }
        }
        if members.len() < self.quorum.majority() {
            return Err(why.unwrap_or_else(|| self.not_acquired()));
        }
        Ok(members)
    }
}

/// Of a server that is connected: until it cannot be reached any more.
async fn gone(server: &Server) -> Error {
    let mut look = interval(Duration::from_millis(100));
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        look.tick().await;
        if let Err(error) = server.reach().await {
            return error;
        }
    }
}

/// What a server refuses says more than that another is away.
fn worse(one: Option<Error>, other: Error) -> Option<Error> {
    match (one, other) {
        (Some(one @ Error::Refused { .. }), _) => Some(one),
        (_, other @ Error::Refused { .. }) => Some(other),
        (one, other) => one.or(Some(other)),
    }
}

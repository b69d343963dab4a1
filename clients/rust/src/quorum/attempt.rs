//! One attempt, by a fresh owner: a majority, and then the fence.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{interval, timeout};

use super::hold::{Member, sure};
use super::{QuorumAcquire, QuorumHold};
use crate::acquire::Acquire;
use crate::clock::{Time, now};
use crate::error::Error;
use crate::hold::Hold;
use crate::job::fresh_owner;
use crate::request::Wait;

/// Requests under way: of which server, and what came of it.
pub(super) type Tries = JoinSet<(usize, Result<Hold, Error>)>;

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
        let (first, hold) = self.first(&owner, left).await?;
        // Of all requests this one was sent first, or the RENEW after it was waited for.
        let begun = hold
            .deadline()
            .unwrap_or_default()
            .saturating_sub(self.lease);
        let mut tries = JoinSet::new();
        for (index, _) in self
            .quorum
            .servers
            .iter()
            .enumerate()
            .filter(|(index, _)| *index != first)
        {
            let ask = self.at(index, &owner).into_future();
            tries.spawn(async move { (index, ask.await) });
        }
        let mut grants = vec![(first, hold)];
        let mut refused = None;
        let end = begun + self.lease / 2;
        let mut until = end;
        while let Ok(Some(tried)) = timeout(until.saturating_sub(now()), tries.join_next()).await {
            match tried {
                Ok((index, Ok(hold))) => grants.push((index, hold)),
                Ok((_, Err(error))) => refused = refused.or(Some(error)),
                Err(_) => {}
            }
            if grants.len() == self.quorum.majority() {
                until = end.min(now() + GRACE);
            }
        }
        if grants.len() < self.quorum.majority() {
            return Err(refused.unwrap_or(Error::NotAcquired));
        }
        let token = grants
            .iter()
            .map(|(_, hold)| hold.token())
            .max()
            .unwrap_or(0);
        let members = self.fence(grants, token, begun, &mut tries).await;
        if members.len() < self.quorum.majority() {
            return Err(Error::NotAcquired);
        }
        QuorumHold::new(self.clone(), owner, token, members, tries)
    }

    pub(super) fn at(&self, index: usize, owner: &str) -> Acquire {
        let ask = self.quorum.servers[index].acquire(self.key.as_str());
        ask.plain().lease(self.lease).owner(owner)
    }

    /// At the first server that can be reached, where those who wait stand in line.
    async fn first(&self, owner: &str, left: Wait) -> Result<(usize, Hold), Error> {
        let mut away = Error::Connection("none of the servers".into());
        for (index, server) in self.quorum.servers.iter().enumerate() {
            match self.at(index, owner).await {
                Ok(hold) => return Ok((index, hold)),
                Err(error @ Error::Connection(_)) => {
                    away = error;
                    continue;
                }
                Err(Error::NotAcquired) => {}
                Err(error) => return Err(error),
            }
            let ask = self.at(index, owner);
            let ask = match left {
                Wait::Once => return Err(Error::NotAcquired),
                Wait::For(time) if time.is_zero() => return Err(Error::NotAcquired),
                Wait::For(time) => ask.wait(time),
                Wait::Forever => ask.wait_forever(),
            };
            let session = server.session()?;
            let gone = async {
                let mut look = interval(Duration::from_millis(500));
                let mut seen = now();
                loop {
                    look.tick().await;
                    if session.is_connected() {
                        seen = now();
                    } else if now().saturating_sub(seen) > session.timeout {
                        return;
                    }
                }
            };
            tokio::select! {
                end = ask.into_future() => return end.map(|hold| (index, hold)),
                () = gone => away = Error::Connection("the server went away".into()),
            }
        }
        Err(away)
    }

    /// Those whose counter is the token now. A hold that came later has a greater one; it may
    /// join those that count once they are a majority.
    async fn fence(
        &self,
        grants: Vec<(usize, Hold)>,
        token: u64,
        begun: Time,
        others: &mut Tries,
    ) -> Vec<Member> {
        let lease = self.lease;
        let end = (begun + lease - drift(lease)).saturating_sub(lease / 4);
        let patience = end.saturating_sub(now());
        let mut fencing = JoinSet::new();
        for (index, hold) in grants {
            fencing.spawn(async move {
                let counter = timeout(patience, hold.renew_and(lease, Some(token))).await;
                (index, hold, counter == Ok(Ok(token)))
            });
        }
        let mut members = Vec::new();
        while let Some(fenced) = fencing.join_next().await {
            match fenced {
                Ok((index, hold, true)) => {
                    let valid = sure(&hold, lease);
                    members.push(Member { index, hold, valid });
                }
                Ok((index, hold, false)) => {
                    others.spawn(async move { (index, Ok(hold)) });
                }
                Err(_) => {}
            }
        }
        members
    }
}

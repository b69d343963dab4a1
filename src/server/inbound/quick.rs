//! ACQUIRE and RELEASE without keywords, of a plain lock that is free or only held: the quick way.
//!
//! Most calls are such, and for them the core has a [short way](lock::take_free); here is as short
//! a one to it. What only other calls need is neither read nor made. Each "no" comes before
//! anything has changed, and leaves the call to the command's own way, as if it had not been here.

use super::watching;
use crate::config;
use crate::lock::{self, Ask, Core, Decider, Ended, Mode, Notice, Notices, Once, Share};
use crate::server::outbound::replication::{By, Replication};
use crate::server::run::{self, schedule, Caller, ServerKeyspace};
use crate::server::shell::ServerShell;
use crate::server::sys::{Ctx, FirstArgs, RawArgs};

/// A call that may be of that kind.
pub struct Quick<'a> {
    pub shell: &'a ServerShell,
    pub ctx: Ctx<'a>,
    pub args: RawArgs<'a>,
}

impl<'a> Quick<'a> {
    /// The arguments after the command's name, if there are so many.
    pub fn args<const N: usize>(&self) -> Option<[&'a [u8]; N]> {
        let mut args = [&[][..]; N];
        if self.args.len() != N {
            return None;
        }
        for (at, arg) in args.iter_mut().enumerate() {
            *arg = self.args.get(at)?.bytes();
        }
        Some(args)
    }

    /// Acquires the lock for `lease` ms: the token.
    pub fn acquire(&self, key: &[u8], owner: &[u8], lease: i64) -> Option<i64> {
        let ask = Ask {
            db: self.ctx.db(),
            owner,
            client: self.ctx.client(),
            mode: Mode::Exclusive,
            share: Share::HOLD,
            lease,
            once: Once::Nests,
            watch: false,
            notify: None,
            wait: None,
        };
        let take = |with: &mut Decider<'_>| {
            let token = lock::take_free(with, key, &ask)?;
            Some((token.0, with.now.deadline(lease)))
        };
        let (token, ends) = self.decide(take)?;
        if !self.shell.alarm.fires_by(ends) {
            schedule::arm_after_command(self.shell, self.ctx);
        }
        Some(token)
    }

    /// Releases a lock that the owner holds once, and of which nothing else is known.
    pub fn release(&self, key: &[u8], owner: &[u8]) -> Option<i64> {
        let ended = Ended {
            db: self.ctx.db(),
            owner,
            client: self.ctx.client(),
            mode: Mode::Exclusive,
            count: Some(1),
            only: None,
        };
        self.decide(|with| lock::give_up_only_held(with, key, &ended))?;
        Some(0)
    }

    fn decide<T>(&self, run: impl FnOnce(&mut Decider<'_>) -> Option<T>) -> Option<T> {
        let Self { shell, ctx, args } = *self;
        let is_master = shell.situation.master.get();
        if !is_master || shell.server.cluster || !shell.inbox.is_empty() || shell.observes_all() {
            return None;
        }
        let named = [args.get(0), args.get(1)];
        let given = FirstArgs(&named);
        let to = Replication {
            shell,
            ctx,
            by: By::Command,
        };
        let caller = Caller {
            to,
            given,
            first_key: None,
        };
        let decide = |core: &mut Core, ks: &mut ServerKeyspace<'_>, out: &mut Notices| {
            core.rules = config::plain_rules()?;
            let now = run::now_for(core);
            if shell.alarm.is_overdue(now.wall_ms()) {
                return None;
            }
            let out = &mut *out;
            let done = run(&mut Decider { core, ks, now, out })?;
            let is_wake = |notice: &Notice| matches!(notice, Notice::Wake { .. });
            Some((done, !out.iter().all(is_wake)))
        };
        let (done, found) = run::lend(&caller, decide)?;
        let (done, is_handed_over) = done?;
        if is_handed_over || !found.is_empty() {
            run::attend(to, found);
            watching::after_command(shell, ctx);
        }
        Some(done)
    }
}

//! One call of a command: its arguments, the way into the core and back.

use std::cell::RefCell;

use redis_module::ContextFlags;

use super::{inspect, key_events, tick, watching};
use crate::error::{self, Error};
use crate::lock::{
    self, Address, Ask, ClientId, Core, Decider, Decision, Mode, Now, Occasion, Once, Outcome,
    Refusal, Renewal, Verdict, WaiterId,
};
use crate::redisson;
use crate::server::keys::slots;
use crate::server::outbound::notices::ListenersFound;
use crate::server::outbound::reply::Responder;
use crate::server::outbound::{answers, reach};
use crate::server::run::{self, Caller, ServerKeyspace};
use crate::server::shell::ServerShell;
use crate::server::state::clock;
use crate::server::sys::{self, Ctx, KeyArgs, RawArgs, User};

/// A request for so many keys is long work: some hundred microseconds.
const MANY: usize = 128;

/// The keys that are counted, if all are there. The command says what is wrong otherwise.
fn counted<'a>(args: RawArgs<'a>) -> Option<Vec<&'a [u8]>> {
    let count = std::str::from_utf8(args.get(0)?.bytes()).ok()?;
    let count: usize = count.parse().ok()?;
    let keys: Vec<_> = args.iter().skip(1).take(count).collect();
    Some(keys).filter(|keys| keys.len() == count)
}

/// One call of a command.
pub struct CommandCall<'a> {
    pub(super) args: RawArgs<'a>,
    pub(super) caller: Caller<'a>,
    /// What was found out about those who wait by subscription, for the core to know
    /// when the command is done.
    pub(super) found: RefCell<ListenersFound>,
}

impl<'a> CommandCall<'a> {
    fn shell(&self) -> &'a ServerShell {
        self.caller.to.shell
    }

    fn ctx(&self) -> Ctx<'a> {
        self.caller.to.ctx
    }

    /// A replica that may be written (`replica-read-only no`) has its master's locks, and ends
    /// no lease and grants nothing on its own: nobody is to rely on it.
    pub(super) fn is_master(&self, writes: bool) -> Result<(), Error> {
        if writes && !self.shell().situation.master.get() {
            return Err(Error::replica());
        }
        Ok(())
    }

    /// Whether all of its keys are here: in a cluster the server looks at the first alone.
    pub(super) fn is_at_home(&self, keys: KeyArgs) -> Result<(), Error> {
        let counted = match keys {
            KeyArgs::Counted(_) if self.shell().server.cluster => counted(self.args),
            KeyArgs::None | KeyArgs::One(_) | KeyArgs::Counted(_) => None,
        };
        counted.map_or(Ok(()), |keys| slots::are_here(self.ctx(), &keys))
    }

    /// The arguments after the command's name.
    pub fn args(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.args.iter()
    }

    pub fn db(&self) -> i32 {
        self.ctx().db()
    }

    pub fn client(&self) -> Option<ClientId> {
        self.ctx().client()
    }

    /// This connection's id. `None` where all callers share one client: in a script
    /// or function, or without a client.
    pub fn connection(&self) -> Option<ClientId> {
        let flags = self.ctx().flags();
        let shared = flags.contains(ContextFlags::LUA)
            || (flags.contains(ContextFlags::DENY_BLOCKING)
                && !flags.contains(ContextFlags::MULTI));
        self.client().filter(|_| !shared)
    }

    /// This connection's owner id, in Redisson's form `uuid:id`.
    pub fn own_id(&self) -> Option<String> {
        let client = self.connection()?;
        Some(format!("{}:{client}", self.shell().server.uuid))
    }

    /// In a cluster, whether a reader's lease keys lie in the slot of the lock.
    pub fn lease_key_fits(&self, key: &[u8], owner: &[u8]) -> Result<(), Error> {
        if !self.shell().server.cluster || redisson::lease_key_fits(key, owner) {
            return Ok(());
        }
        Err(Error::new(format!(
            "in a cluster the lease key of a reader would lie in another slot than {}: use a \
             name without braces, or with a whole hash tag",
            error::shown(key)
        )))
    }

    /// The user whose command this is.
    pub fn user(&self) -> Result<User<'a>, Error> {
        User::of(self.ctx()).ok_or_else(|| {
            Error::new("this server does not name the user, and so not what it may read")
        })
    }

    /// A command without keys sees those of every slot, but in a cluster not in the middle
    /// of others: some servers look any name up in the slot of the keys of those.
    pub fn sees_all_slots(&self) -> Result<(), Error> {
        if !self.shell().server.cluster || self.may_block() {
            return Ok(());
        }
        Err(Error::new(
            "in a cluster this is refused in MULTI, scripts and functions: it is about the keys of \
             all slots",
        ))
    }

    /// A hold may belong to a connection from now on.
    fn watches(&self) {
        watching::update(self.shell(), self.ctx());
    }

    /// Whether the client may wait: not in MULTI, a script, a function, or where
    /// the server says so.
    pub fn may_block(&self) -> bool {
        self.ctx().stands_alone()
    }

    /// Where this connection is to be notified of a request, and `wants_hints`: also that somebody
    /// waits for what it holds. Refused where no message would reach it.
    pub fn session(
        &self,
        client: ClientId,
        (channel, tag): (&[u8], &[u8]),
        wants_hints: bool,
    ) -> Result<Address, Error> {
        let (shell, ctx) = (self.shell(), self.ctx());
        if !ctx.speaks_resp3() || !shell.listeners.has(client, channel) {
            self.listens(client, channel)?;
            shell.listeners.add(client, channel);
        }
        let address = |core: &Core| core.address(client, channel, tag, wants_hints);
        let known = shell.core.ask(address);
        known.ok_or_else(Error::busy)
    }

    /// Refused where what is published on the channel would not reach the connection, as far
    /// as the server can say.
    fn listens(&self, client: ClientId, channel: &[u8]) -> Result<(), Error> {
        let (shell, ctx) = (self.shell(), self.ctx());
        let subscribe = match shell.server.cluster {
            true => "SSUBSCRIBE",
            false => "SUBSCRIBE",
        };
        if !ctx.speaks_resp3() || !sys::is_subscribed(ctx, client) {
            return Err(Error::new(format!(
                "QUEUE and NOTIFY need RESP3 and a subscription on this connection: HELLO 3, \
                 {subscribe} channel; without them use BLOCK"
            )));
        }
        let user = User::of_client(ctx, client);
        if !user.is_some_and(|user| user.may_subscribe(channel)) {
            return Err(Error::no_permission(channel));
        }
        if !reach::has_subscriber(&self.caller.to, channel) {
            return Err(Error::new(format!(
                "nobody is subscribed to the channel {}: {subscribe} to it on this connection, by \
                 its name, before you name it in NOTIFY",
                error::shown(channel)
            )));
        }
        Ok(())
    }

    /// Ends waits of an owner. This is no write: the timer finds out whom that lets in, through
    /// the gate.
    pub fn cancel(&self, key: &[u8], owner: &[u8], mode: Option<Mode>) -> Result<i64, Error> {
        let (shell, ctx, db) = (self.shell(), self.ctx(), self.db());
        let cancel = |with: &mut Decider<'_>| with.note(|d| lock::cancel(d, db, key, owner, mode));
        let decided = run::decide(&self.caller, false, cancel);
        let (cancelled, _) = decided.ok_or_else(Error::busy)?;
        if shell.has_notes() {
            shell.alarm.arm_now(ctx);
        }
        Ok(cancelled)
    }

    /// The program behind this connection is alive, and may be silent for so many ms.
    pub fn heartbeat(&self, patience: i64) -> Result<(), Error> {
        let (shell, ctx) = (self.shell(), self.ctx());
        let Some(client) = self.connection() else {
            return Err(Error::new(
                "RLOCK.HEARTBEAT is about a connection, and a script, a function or a module has \
                 none of its own",
            ));
        };
        let now = clock::now();
        let takes_in = |core: &mut Core| lock::heartbeat(core, client, patience, now);
        shell.core.change(takes_in).ok_or_else(Error::busy)?;
        // It is forgotten when it closes.
        shell.subscriptions.subscribe_closes(ctx);
        Ok(())
    }

    /// Puts a request to the core, and sends the notices of its decision.
    pub fn decide<T>(
        &self,
        run: impl FnOnce(&mut Decision<'_>) -> Result<T, Refusal>,
    ) -> Result<T, Error> {
        self.put(false, |with| with.decide(run))
    }

    /// The same for a renewal, which may bind holds to a connection.
    pub fn renew<T>(
        &self,
        renewal: &Renewal<'_>,
        run: impl FnOnce(&mut Decision<'_>) -> Result<T, Refusal>,
    ) -> Result<T, Error> {
        let hints = renewal.binding().wants_hints();
        let renewed = self.put(hints, |with| with.decide(run))?;
        if !renewal.binding().is_empty() {
            self.watches();
        }
        Ok(renewed)
    }

    /// Puts a request for locks to the core, which may have to stand in their queues. Its
    /// reply.
    pub fn request(
        &self,
        keys: &[&[u8]],
        ask: &Ask<'_>,
        run: impl FnOnce(&mut Decider<'_>) -> Result<Verdict, Refusal>,
    ) -> Result<Responder, Error> {
        let hints = ask.notify.is_some_and(|address| address.wants_hints);
        let verdict = self.put(ask.wait.is_some() || hints, run)?;
        if ask.watch || ask.notify.is_some() {
            self.watches();
        }
        if ask.mode == Mode::Permits {
            key_events::watch_hashes(self.shell(), self.ctx());
        }
        Ok(match verdict {
            Verdict::Granted(token) => {
                self.after_long_work(keys, Outcome::Granted(token), Some(ask))
            }
            Verdict::Refused => self.after_long_work(keys, Outcome::TimedOut, None),
            Verdict::Waits(waiter) => {
                self.waits(ask.mode);
                if ask.wait.is_some_and(|wait| wait.queued) {
                    Responder::Status(c"QUEUED")
                } else {
                    self.block(waiter, keys)
                }
            }
        })
    }

    /// Lets the core decide, and sends the notices. `waits`: the request may come to wait, or is to
    /// know who does, for which both clocks are read.
    pub fn put<T>(
        &self,
        waits: bool,
        run: impl FnOnce(&mut Decider<'_>) -> Result<T, Refusal>,
    ) -> Result<T, Error> {
        let (shell, ctx) = (self.shell(), self.ctx());
        if shell.has_notes() {
            tick::serve(shell, ctx, Occasion::Command);
        }
        let decided = run::decide(&self.caller, waits, |with| {
            tick::end_few(shell, ctx, with);
            run(with)
        });
        let (answer, found) = decided.ok_or_else(Error::busy)?;
        if !found.is_empty() {
            self.found.borrow_mut().extend(found);
        }
        watching::after_command(shell, ctx);
        Ok(answer?)
    }

    /// Looks without changing anything.
    pub fn inspect<T>(
        &self,
        look: impl FnOnce(&Core, &mut ServerKeyspace<'a>, Now) -> T,
    ) -> Result<T, Error> {
        inspect::inspect(&self.caller, look).ok_or_else(Error::busy)
    }

    /// The reply to a request for several keys. Where they are very many the client gets
    /// it in the next turn of the event loop, so that others have theirs before the
    /// next such request in a pipeline. `grant`: what is to be given back if the
    /// reply is lost; with ONCE nothing, for it may have been held before.
    pub fn after_long_work(
        &self,
        keys: &[&[u8]],
        outcome: Outcome,
        grant: Option<&Ask<'_>>,
    ) -> Responder {
        let (shell, ctx) = (self.shell(), self.ctx());
        let first = keys
            .get(..1)
            .filter(|_| keys.len() >= MANY && self.may_block());
        let Some(first) = first else {
            return Responder::of(&outcome);
        };
        let id = shell.core.change(|core| match grant {
            Some(ask) if ask.once != Once::IsTheSame => core.on_its_way(keys, ask),
            _ => core.number(),
        });
        watching::update(shell, ctx);
        if let Some(id) = id {
            if answers::block(&self.caller.to, self.caller.given, id, first) {
                answers::settle(shell, ctx, id, outcome);
                return Responder::Later;
            }
            shell.core.change(|core| core.confirm(id));
        }
        Responder::of(&outcome)
    }

    /// Somebody waits for a lock in this mode from now on.
    fn waits(&self, mode: Mode) {
        let (shell, ctx) = (self.shell(), self.ctx());
        watching::subscribe_turns(shell, ctx);
        if mode != Mode::Exclusive {
            key_events::watch_hashes(shell, ctx);
        }
    }

    /// Blocks the client until its request, which is in the queue, is settled. A
    /// client that the server does not let wait is answered as for a try.
    fn block(&self, waiter: WaiterId, keys: &[&[u8]]) -> Responder {
        if answers::block(&self.caller.to, self.caller.given, waiter, keys) {
            return Responder::Later;
        }
        self.shell().core.change(|core| lock::leave(core, waiter));
        Responder::Null
    }
}

//! Messages to the clients of sessions (NOTIFY): how a wait ended, that a hold is lost.
//!
//! The server has no way to write to one client, but a message to a channel reaches a
//! connection that subscribes to it, in RESP3 also while it asks for other things. Not on
//! every server may it leave at once ([`Publishing`]).

use std::collections::BTreeMap;
use std::rc::Rc;

use super::replication::{By, Replication};
use super::{answers, closes, reach};
use crate::error::{self, shown};
use crate::lock::{Address, ClientId, Loss, Outcome, Reason, WaiterId};
use crate::server::shell::Shell;
use crate::server::state::{Letter, Publishing, Unheard};
use crate::server::sys::{self, Ctx, Text};

/// A request that waited gets its reply. A grant is known to be out when the turn of the
/// event loop is over.
pub fn settle(to: &Replication<'_>, waiter: WaiterId, address: Address, outcome: &Outcome) {
    let (word, rest) = match outcome {
        Outcome::Granted(token) => ("granted", token.0.to_string()),
        Outcome::TimedOut => ("timeout", String::new()),
        Outcome::Refused(refusal) => ("error", error::of(refusal).line().to_owned()),
        // Only a request that carries on is answered so.
        Outcome::Done(number) => ("done", number.to_string()),
    };
    let mut unheard = Unheard::Nothing;
    if matches!(outcome, Outcome::Granted(_)) {
        to.shell.alarm.keep_awake();
        unheard = Unheard::Lost(waiter);
    }
    send(to, address, (word, &rest), unheard);
}

/// What was found of connections that are told of losses. Very many are told at once as a rule,
/// and nothing runs in between that could change it.
#[derive(Default)]
pub struct Heard {
    /// The last that was found to hear what it is told.
    last: Option<Address>,
    /// Where they come from; `None`: they are gone.
    from: BTreeMap<ClientId, Option<Rc<str>>>,
}

impl Heard {
    fn from(&mut self, ctx: Ctx<'_>, client: Option<ClientId>) -> Option<Rc<str>> {
        let client = client?;
        let from = self.from.entry(client);
        from.or_insert_with(|| sys::address_of(ctx, client).map(Rc::from))
            .clone()
    }

    /// Whether a client that is told at an address would hear it.
    fn is_by(&mut self, to: &Replication<'_>, address: &Address) -> bool {
        let same = |known: &Address| known.listener == address.listener;
        let is_last = self.last.as_ref().is_some_and(same);
        let hears = is_last || reach::hears(to, address);
        if hears && !is_last {
            self.last = Some(address.clone());
        }
        hears
    }
}

/// A hold is lost: its address is told, or else the connection that watched it is closed.
pub fn lost(to: &Replication<'_>, loss: Loss, heard: &mut Heard) {
    let (reason, watcher) = (loss.reason, loss.watcher);
    let told = loss.address.filter(|address| heard.is_by(to, address));
    let client = watcher.or(told.as_ref().map(|address| address.client));
    // By its owner's will nobody is closed.
    let by_owner = matches!(reason, Reason::Released | Reason::Rebound);
    let closes = watcher.filter(|_| !by_owner);
    let at_once = closes.filter(|_| told.is_none());
    if let Some(address) = told {
        let unheard = closes.map_or(Unheard::Nothing, Unheard::Close);
        send(to, address, ("lost", word(reason)), unheard);
    }
    if reason == Reason::Released {
        return;
    }
    // The same program has it, by another connection.
    if let Some(heir) = heard.from(to.ctx, loss.heir) {
        let from = heard.from(to.ctx, client);
        if from.as_deref().map(host) == Some(host(&heir)) {
            return;
        }
    }
    let closing = at_once.is_some_and(|client| closes::close_soon(to.shell, to.ctx, client));
    to.shell.outbox.put_line(|| {
        format!(
            "rlock: lost: key {}, owner {}, client {}, {}{}",
            shown(&loss.key.name),
            shown(&loss.owner),
            heard.from(to.ctx, client).as_deref().unwrap_or("gone"),
            word(reason),
            if closing {
                "; closing its connection (rlock.watchdog-lost)"
            } else {
                ""
            }
        )
    });
    to.shell.alarm.arm_now(to.ctx);
}

/// An address without its port.
fn host(address: &str) -> &str {
    address.rsplit_once(':').map_or(address, |(host, _)| host)
}

/// A reason as messages and the log name it.
fn word(reason: Reason) -> &'static str {
    match reason {
        Reason::Expired => "expired",
        Reason::Forced => "forced",
        Reason::Deleted => "deleted",
        Reason::Evicted => "evicted",
        Reason::Flushed => "flushed",
        Reason::Overwritten => "overwritten",
        Reason::Demoted => "demoted",
        Reason::Moved => "moved",
        Reason::Rebound => "rebound",
        Reason::Released => "released",
    }
}

/// `word tag rest`, with one space between.
fn send(to: &Replication<'_>, address: Address, (word, rest): (&str, &str), unheard: Unheard) {
    let mut message = [word.as_bytes(), &address.tag].join(&b' ');
    if !rest.is_empty() {
        message.push(b' ');
        message.extend_from_slice(rest.as_bytes());
    }
    if is_put_off(to) {
        to.shell.outbox.put(Letter {
            to: address,
            message,
            unheard,
        });
        to.shell.alarm.keep_awake();
    } else {
        publish(to, &address, &message, unheard);
    }
}

/// Whether a message has to wait until the loop's turn ends. None overtakes another.
fn is_put_off(to: &Replication<'_>) -> bool {
    match to.shell.server.publishing {
        Publishing::Always => false,
        Publishing::AtTurnsEnd => true,
        Publishing::OutsideExec => {
            let alone = to.by == By::Command && to.ctx.stands_alone();
            !alone || to.shell.outbox.has_messages()
        }
    }
}

/// At the end of the loop's turn: sends what was put off until then. Whoever has stopped
/// listening meanwhile hears nothing of it.
pub fn deliver(shell: &Shell, ctx: Ctx<'_>) {
    let by = By::Ourselves;
    let to = Replication { shell, ctx, by };
    let mut heard = Heard::default();
    for letter in shell.outbox.take() {
        if heard.is_by(&to, &letter.to) {
            publish(&to, &letter.to, &letter.message, letter.unheard);
            continue;
        }
        match letter.unheard {
            Unheard::Nothing => {}
            Unheard::Lost(waiter) => answers::lost(shell, ctx, waiter),
            Unheard::Close(client) => {
                closes::close_soon(shell, ctx, client);
            }
        }
    }
}

/// The grant that it tells of, if it tells of one, can still be lost in this turn of the loop.
fn publish(to: &Replication<'_>, address: &Address, message: &[u8], unheard: Unheard) {
    if let Unheard::Lost(waiter) = unheard {
        to.shell.clients.told(address.client, waiter);
    }
    let texts = Text::new(&address.channel).zip(Text::new(message));
    if let Some((channel, message)) = texts {
        sys::publish(to.ctx, to.shell.server.cluster, &channel, &message);
    }
}

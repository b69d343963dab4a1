//! Messages to the clients of sessions (NOTIFY): how a wait ended, that a hold is lost.
//!
//! The server has no way to write to one client, but a message to a channel reaches a
//! connection that subscribes to it, in RESP3 also while it asks for other things. Not on
//! every server may it leave at once ([`Publishing`]).

use super::replication::{By, Replication};
use super::{answers, closes, reach};
use crate::error::{self, shown};
use crate::lock::{Address, Loss, Outcome, Reason, WaiterId};
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
        to.shell.clients.told(address.client, waiter);
        to.shell.alarm.keep_awake();
        unheard = Unheard::Lost(waiter);
    }
    send(to, address, (word, &rest), unheard);
}

/// A hold is lost: its address is told, or else the connection that watched it is closed.
pub fn lost(to: &Replication<'_>, loss: Loss) {
    let Loss {
        key,
        owner,
        watcher,
        address,
        reason,
    } = loss;
    let told = address.filter(|address| reach::hears(to, address));
    let by_close = watcher.filter(|_| told.is_none());
    let client = watcher.or(told.as_ref().map(|address| address.client));
    let from = client.and_then(sys::address_of);
    let gone = "gone".to_owned();
    let line = format!(
        "rlock: lost: key {}, owner {}, client {}, {}",
        shown(&key.name),
        shown(&owner),
        from.as_ref().unwrap_or(&gone),
        word(reason)
    );
    if let Some(address) = told {
        let unheard = match (reason, watcher) {
            (Reason::Released | Reason::Rebound, _) | (_, None) => Unheard::Nothing,
            (_, Some(client)) => Unheard::Close(client),
        };
        send(to, address, ("lost", word(reason)), unheard);
    }
    match reason {
        Reason::Released => {}
        // The same program has it, by another connection.
        Reason::Rebound if from.is_some() && from.map(host) == here(to.ctx).map(host) => {}
        Reason::Rebound => log(to, line),
        _ => {
            let closing =
                by_close.is_some_and(|client| closes::close_soon(to.shell, to.ctx, client));
            let then = if closing {
                "; closing its connection (rlock.watchdog-lost)"
            } else {
                ""
            };
            log(to, line + then);
        }
    }
}

fn log(to: &Replication<'_>, line: String) {
    to.shell.outbox.put_line(line);
    to.shell.alarm.arm_now(to.ctx);
}

/// Where the connection is whose command runs.
fn here(ctx: Ctx<'_>) -> Option<String> {
    sys::address_of(ctx.client()?)
}

/// An address without its port.
fn host(address: String) -> String {
    let host = address.rsplit_once(':').map(|(host, _)| host.to_owned());
    host.unwrap_or(address)
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
        publish(to.shell, to.ctx, &address, &message);
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
    // As a rule the next one goes the same way: nothing runs in between.
    let mut heard: Option<Address> = None;
    for letter in shell.outbox.take() {
        let address = &letter.to;
        let same =
            |known: &Address| (known.client, &known.channel) == (address.client, &address.channel);
        if heard.as_ref().is_some_and(same) || reach::hears(&to, address) {
            publish(shell, ctx, address, &letter.message);
            heard = Some(letter.to);
            continue;
        }
        match letter.unheard {
            Unheard::Nothing => {}
            Unheard::Lost(waiter) => {
                shell.clients.untold(address.client, waiter);
                answers::lost(shell, ctx, waiter);
            }
            Unheard::Close(client) => {
                closes::close_soon(shell, ctx, client);
            }
        }
    }
}

fn publish(shell: &Shell, ctx: Ctx<'_>, address: &Address, message: &[u8]) {
    let texts = Text::new(&address.channel).zip(Text::new(message));
    if let Some((channel, message)) = texts {
        sys::publish(ctx, shell.server.cluster, &channel, &message);
    }
}

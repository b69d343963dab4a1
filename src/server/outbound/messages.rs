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
use crate::server::shell::ServerShell;
use crate::server::state::{IfUndelivered, Letter, Publishing};
use crate::server::sys::{self, Ctx, Text};

/// A request that waited gets its reply. A grant is known to be out when the turn of the
/// event loop is over.
/// `wanted`: somebody waits already whom it keeps out then, and it wants to know.
pub fn settle(
    to: &Replication<'_>,
    waiter: WaiterId,
    address: Address,
    (outcome, wanted): (&Outcome, bool),
) {
    let (word, rest) = match outcome {
        Outcome::Granted(token) if wanted => ("granted", format!("{} wanted", token.0)),
        Outcome::Granted(token) => ("granted", token.0.to_string()),
        Outcome::TimedOut => ("timeout", String::new()),
        Outcome::Refused(refusal) => ("error", error::of(refusal).line().to_owned()),
        // Only a request that carries on is answered so.
        Outcome::Done(number) => ("done", number.to_string()),
    };
    let mut if_undelivered = IfUndelivered::Nothing;
    if matches!(outcome, Outcome::Granted(_)) {
        to.shell.alarm.keep_awake();
        if_undelivered = IfUndelivered::LoseGrant(waiter);
    }
    send(to, address, (word, &rest), if_undelivered);
}

/// What was found out about connections that are notified of losses. As a rule very many are
/// notified at once, and nothing runs in between that could change it.
#[derive(Default)]
pub struct ConnectionCache {
    /// The last address that was found to be reachable.
    last_reachable: Option<Address>,
    /// The network address of each; `None`: it is gone.
    peers: BTreeMap<ClientId, Option<Rc<str>>>,
}

impl ConnectionCache {
    fn peer(&mut self, ctx: Ctx<'_>, client: Option<ClientId>) -> Option<Rc<str>> {
        let client = client?;
        let peer = self.peers.entry(client);
        peer.or_insert_with(|| sys::address_of(ctx, client).map(Rc::from))
            .clone()
    }

    /// Whether a message to an address would reach its client.
    fn reaches(&mut self, to: &Replication<'_>, address: &Address) -> bool {
        let same = |known: &Address| known.listener == address.listener;
        let is_last = self.last_reachable.as_ref().is_some_and(same);
        let reaches = is_last || reach::reaches(to, address);
        if reaches && !is_last {
            self.last_reachable = Some(address.clone());
        }
        reaches
    }
}

/// Somebody waits for what is held. Where that does not reach its client, its connection is closed if
/// it watches the hold, as with a loss.
pub fn wanted(
    to: &Replication<'_>,
    address: Address,
    closes: bool,
    connections: &mut ConnectionCache,
) {
    let client = address.client;
    if connections.reaches(to, &address) {
        let if_undelivered = match closes {
            true => IfUndelivered::Close(client),
            false => IfUndelivered::Nothing,
        };
        send(to, address, ("wanted", ""), if_undelivered);
    } else if closes {
        closes::close_soon(to.shell, to.ctx, client);
    }
}

/// A hold is lost: its address is notified. Where that does not reach its client, the connection
/// that watched it is closed.
pub fn lost(to: &Replication<'_>, loss: Loss, connections: &mut ConnectionCache) {
    let (reason, watcher) = (loss.reason, loss.watcher);
    let notified = loss
        .address
        .filter(|address| connections.reaches(to, address));
    let client = watcher.or(notified.as_ref().map(|address| address.client));
    // By its owner's will nobody is closed.
    let by_owner = matches!(reason, Reason::Released | Reason::Rebound);
    let closes = watcher.filter(|_| !by_owner);
    let at_once = closes.filter(|_| notified.is_none());
    if let Some(address) = notified {
        let if_undelivered = closes.map_or(IfUndelivered::Nothing, IfUndelivered::Close);
        send(to, address, ("lost", word(reason)), if_undelivered);
    }
    if reason == Reason::Released {
        return;
    }
    // The same program has it, by another connection.
    if let Some(heir) = connections.peer(to.ctx, loss.heir) {
        let loser = connections.peer(to.ctx, client);
        if loser.as_deref().map(host) == Some(host(&heir)) {
            return;
        }
    }
    let closing = at_once.is_some_and(|client| closes::close_soon(to.shell, to.ctx, client));
    to.shell.outbox.put_line(|| {
        format!(
            "rlock: lost: key {}, owner {}, client {}, {}{}",
            shown(&loss.key.name),
            shown(&loss.owner),
            connections
                .peer(to.ctx, client)
                .as_deref()
                .unwrap_or("gone"),
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
        Reason::Silent => "silent",
    }
}

/// `word tag rest`, with one space between.
fn send(
    to: &Replication<'_>,
    address: Address,
    (word, rest): (&str, &str),
    if_undelivered: IfUndelivered,
) {
    let mut message = [word.as_bytes(), &address.tag].join(&b' ');
    if !rest.is_empty() {
        message.push(b' ');
        message.extend_from_slice(rest.as_bytes());
    }
    if is_put_off(to) {
        to.shell.outbox.put(Letter {
            to: address,
            message,
            if_undelivered,
        });
        to.shell.alarm.keep_awake();
    } else {
        publish(to, &address, &message, if_undelivered);
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
/// listening meanwhile gets none of it.
pub fn deliver(shell: &ServerShell, ctx: Ctx<'_>) {
    let by = By::Ourselves;
    let to = Replication { shell, ctx, by };
    let mut connections = ConnectionCache::default();
    for letter in shell.outbox.take() {
        if connections.reaches(&to, &letter.to) {
            publish(&to, &letter.to, &letter.message, letter.if_undelivered);
            continue;
        }
        match letter.if_undelivered {
            IfUndelivered::Nothing => {}
            IfUndelivered::LoseGrant(waiter) => answers::lost(shell, ctx, waiter),
            IfUndelivered::Close(client) => {
                closes::close_soon(shell, ctx, client);
            }
        }
    }
}

/// If the message announces a grant, that can still be lost in this turn of the loop.
fn publish(to: &Replication<'_>, address: &Address, message: &[u8], if_undelivered: IfUndelivered) {
    if let IfUndelivered::LoseGrant(waiter) = if_undelivered {
        to.shell.clients.messaged(address.client, waiter);
    }
    let texts = Text::new(&address.channel).zip(Text::new(message));
    if let Some((channel, message)) = texts {
        sys::publish(to.ctx, to.shell.server.cluster, &channel, &message);
    }
}

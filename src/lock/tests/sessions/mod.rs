//! Many waits and holds of one connection: QUEUE, NOTIFY, CANCEL, and ONCE said again.

mod again;
mod kept;
mod losses;
mod waits;

use super::shell::*;
use crate::lock::{self, Cause, ClientId, Loss, Mode, Note, Notice, Outcome, Reason, Refusal};
use crate::lock::{Due, Ended, Renewal, Slot, Verdict};

/// Connections, beside those that each request has for its own.
const ONE: u64 = 1_000_001;
const OTHER: u64 = 1_000_002;

fn client(number: u64) -> ClientId {
    ClientId::new(number).unwrap()
}

/// Whether requests are to be sent away, or what is known of some keys is void.
fn lets_go(s: &Shell) -> bool {
    let mut of = [Due::SentAway, Due::Void].into_iter();
    of.any(|due| due.next(&s.core).is_some())
}

/// What connections were told since somebody last asked, each with its number from 1.
fn said(s: &mut Shell) -> Vec<String> {
    let told = std::mem::take(&mut s.told).into_iter();
    let text = |to: lock::Address, word: &str, rest: &str| {
        let tag = String::from_utf8(to.tag.to_vec()).unwrap();
        let number = to.client.get() - 1_000_000;
        format!("{number}: {word} {tag} {rest}")
            .trim_end()
            .to_owned()
    };
    let message = |notice| match notice {
        Notice::Answer {
            to: Some(to),
            outcome,
            ..
        } => Some(match outcome {
            Outcome::Granted(_) => text(to, "granted", ""),
            Outcome::TimedOut => text(to, "timeout", ""),
            Outcome::Refused(refusal) => text(to, "error", &format!("{refusal:?}")),
            other => panic!("{other:?}"),
        }),
        Notice::Lost(Loss {
            address: Some(to),
            reason,
            ..
        }) => Some(text(to, "lost", &format!("{reason:?}"))),
        _ => None,
    };
    told.filter_map(message).collect()
}

/// The connections that have lost watched holds.
fn watchers(told: &[Notice]) -> Vec<ClientId> {
    let watcher = |notice: &Notice| match notice {
        Notice::Lost(loss) => loss.watcher,
        _ => None,
    };
    told.iter().filter_map(watcher).collect()
}

fn release_by(s: &mut Shell, owner: &str, by: u64) -> i64 {
    let ended = Ended {
        db: 0,
        owner: owner.as_bytes(),
        client: Some(client(by)),
        mode: Mode::Exclusive,
        count: Some(1),
        only: None,
    };
    s.asks(|with| lock::release(with, b"k", &ended)).unwrap()
}

fn cancel(s: &mut Shell, owner: &str, mode: Option<Mode>) -> i64 {
    let cancelled = s.note(|d| lock::cancel(d, 0, b"k", owner.as_bytes(), mode));
    s.read_notes();
    cancelled
}

fn close(s: &mut Shell, number: u64) {
    s.notes.push(Note::Closed(client(number)));
    s.read_notes();
}

/// `a` holds `k`.
fn held() -> Shell {
    let mut s = Shell::new();
    s.get(by("a"));
    s.told.clear();
    s
}

fn queued(owner: &str) -> Request<'_> {
    by(owner).queue(0).from(ONE)
}

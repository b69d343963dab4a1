//! ACQUIRE: take a free lock, join, nest, be refused, or wait.

use crate::lock::ask::{Ask, Want};
use crate::lock::grant::GrantKind;
use crate::lock::{grant, head, modes, ready, reconcile, subscribers, waiting};
use crate::lock::{Decision, Kind, Refusal, Verdict};

/// Acquires a lock, or waits for it. In order of arrival: a free lock with
/// waiters goes to the first of them, not to the request.
pub fn acquire(d: &mut Decision<'_>, name: &[u8], ask: &Ask<'_>) -> Result<Verdict, Refusal> {
    match try_to_acquire(d, name, ask) {
        Err(Refusal::Vanished { .. }) => try_to_acquire(d, name, ask),
        done => done,
    }
}

fn try_to_acquire(d: &mut Decision<'_>, name: &[u8], ask: &Ask<'_>) -> Result<Verdict, Refusal> {
    let key = d.core.locks.key(ask.db, name);
    let mut look = ready::look(d, &key, ask.owner);
    let how = grant::admit(d, &key, ask.owner, ask.mode, ask.once, &mut look)?;
    match how.filter(|how| how.is_holders() || !head::is_waited_for(d.core, &key)) {
        Some(how) => {
            let want = Want::of(ask);
            let token = grant::give(d, &key, &want, how, look, None)?;
            if how == GrantKind::Join {
                subscribers::passed(d, &key, true);
            }
            Ok(Verdict::Granted(token))
        }
        None if how.is_none() && modes::is_half(d.core, &key) => Err(Refusal::OnItsWay { key }),
        None => {
            if look.kind == Kind::Plain {
                reconcile::learn_plain(d, &key, &look);
            }
            if how == Some(GrantKind::Join) {
                subscribers::keeps_out(d, &key);
            }
            waiting::wait_for(d, [key], ask)
        }
    }
}

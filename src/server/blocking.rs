//! Blocked clients: how a request waits in the server, and how its reply gets out.
//!
//! A waiter is a client blocked on the lock's key, without a time-out of the
//! server's: our own timer is exact, the server's is not. However a wait ends by
//! our doing (granted, timed out, refused), the client is woken the same way, and
//! its time-out callback writes the reply that was settled. The server itself ends
//! a wait when the client goes, is unblocked by hand, or is redirected; then the
//! handle is dead and is never touched again.
//!
//! A grant ends answered or lost, exactly one of them:
//! - lost, when the server ends the wait before the reply is written
//!   (`on_disconnect`), when the reply was written to a client that was gone by
//!   then (`on_free`), or when the client is closed in the very turn of the event
//!   loop in which its reply should leave (`client_closed`);
//! - answered, when the loop's turn is over and none of that happened.

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::ptr;

use redis_module::raw;

use super::ffi::{api, guarded, Ctx, Text};
use super::reply::Responder;
use super::shell::{shell, Shell};
use super::timer;
use super::version::Wakeup;
use crate::lock::{Note, Outcome, WaiterId};

#[derive(Debug)]
enum State {
    /// In the queue.
    Waiting,
    /// Out of the queue; the reply is on its way.
    Settled(Outcome),
    /// The reply stands in the client's own buffer.
    Answered,
    /// The server ended the wait.
    Gone,
}

#[derive(Debug)]
struct Client {
    handle: *mut raw::RedisModuleBlockedClient,
    id: u64,
    state: State,
}

#[derive(Debug, Default)]
pub struct Blocked {
    clients: HashMap<WaiterId, Client>,
    /// Settled, and to be woken at the end of the loop's turn.
    to_wake: Vec<WaiterId>,
    /// Granted and answered in this turn of the loop, by client id.
    fresh: HashMap<u64, WaiterId>,
}

impl Blocked {
    pub fn is_empty(&self) -> bool {
        self.clients.is_empty() && self.fresh.is_empty()
    }
}

/// Blocks the client whose command runs until its request is settled. `false`:
/// the server does not let it wait.
pub fn block(shell: &Shell, ctx: Ctx, waiter: WaiterId, keys: &[&[u8]]) -> bool {
    let names: Option<Vec<Text>> = keys.iter().map(|key| Text::new(key)).collect();
    let Some(names) = names else {
        return false;
    };
    let mut pointers: Vec<_> = names.iter().map(Text::as_ptr).collect();
    let handle = api!(RedisModule_BlockClientOnKeys(
        ctx.0,
        Some(on_ready),
        Some(on_time_out),
        Some(on_free),
        0,
        pointers.as_mut_ptr(),
        c_int::try_from(pointers.len()).unwrap_or(0),
        waiter as usize as *mut c_void
    ));
    let Some(handle) = handle.filter(|handle| !handle.is_null()) else {
        return false;
    };
    api!(RedisModule_SetDisconnectCallback(
        handle,
        Some(on_disconnect)
    ));
    let client = Client {
        handle,
        id: ctx.client_id(),
        state: State::Waiting,
    };
    if let Ok(mut blocked) = shell.blocked.try_borrow_mut() {
        blocked.clients.insert(waiter, client);
    }
    true
}

/// Gives a waiter its reply.
pub fn settle(shell: &Shell, ctx: Ctx, waiter: WaiterId, outcome: Outcome) {
    let granted = matches!(outcome, Outcome::Granted(_));
    let handle = match shell.blocked.try_borrow_mut() {
        Ok(mut blocked) => match blocked.clients.get_mut(&waiter) {
            Some(client) if matches!(client.state, State::Waiting) => {
                client.state = State::Settled(outcome);
                let handle = client.handle;
                if shell.server.wakeup != Wakeup::AtOnce {
                    blocked.to_wake.push(waiter);
                }
                Some(handle)
            }
            _ => None,
        },
        Err(_) => None,
    };
    match handle {
        None if granted => lost(shell, ctx, waiter),
        None => {}
        Some(handle) => match shell.server.wakeup {
            Wakeup::AtOnce => {
                api!(RedisModule_UnblockClient(handle, ptr::null_mut()));
            }
            // At the end of this turn, or of the next one.
            Wakeup::BeforeSleep => timer::keep_awake(shell),
            Wakeup::ByTimer => timer::arm_now(shell, ctx),
        },
    }
}

/// Wakes those whose waking was left to the end of the loop's turn.
pub fn deliver(shell: &Shell) {
    let waiters = match shell.blocked.try_borrow_mut() {
        Ok(mut blocked) => std::mem::take(&mut blocked.to_wake),
        Err(_) => return,
    };
    for waiter in waiters {
        let handle = shell.blocked.try_borrow().ok().and_then(|blocked| {
            let client = blocked.clients.get(&waiter)?;
            matches!(client.state, State::Settled(_)).then_some(client.handle)
        });
        if let Some(handle) = handle {
            api!(RedisModule_UnblockClient(handle, ptr::null_mut()));
        }
    }
}

/// The loop's turn is over: the replies written in it are out.
pub fn turn_over(shell: &Shell) {
    let fresh = match shell.blocked.try_borrow_mut() {
        Ok(mut blocked) => std::mem::take(&mut blocked.fresh),
        Err(_) => return,
    };
    if let Ok(mut core) = shell.core.try_borrow_mut() {
        for waiter in fresh.into_values() {
            core.confirm(waiter);
        }
    }
}

/// A connection closes. If a grant was answered to it in this turn of the loop,
/// the reply never left.
pub fn client_closed(shell: &Shell, ctx: Ctx, client: u64) {
    let waiter = match shell.blocked.try_borrow_mut() {
        Ok(mut blocked) => blocked.fresh.remove(&client),
        Err(_) => None,
    };
    if let Some(waiter) = waiter {
        lost(shell, ctx, waiter);
    }
}

fn lost(shell: &Shell, ctx: Ctx, waiter: WaiterId) {
    if let Ok(mut inbox) = shell.inbox.try_borrow_mut() {
        inbox.push(Note::Lost(waiter));
    }
    timer::arm_now(shell, ctx);
}

/// A waiter has left the queue. Whoever that lets in is looked for by the timer.
fn left(shell: &Shell, ctx: Ctx, waiter: WaiterId) {
    let unsettled = match shell.core.try_borrow_mut() {
        Ok(mut core) => {
            core.leave(waiter);
            core.is_unsettled()
        }
        Err(_) => false,
    };
    if unsettled {
        timer::arm_now(shell, ctx);
    }
}

/// The waiter whose callback runs.
fn waiter_of(ctx: Ctx) -> WaiterId {
    api!(RedisModule_GetBlockedClientPrivateData(ctx.0)).map_or(0, |data| data as usize as u64)
}

/// The key became something that the server signals as ready (a list, say): no
/// matter of ours, the client stays blocked.
unsafe extern "C" fn on_ready(
    _ctx: *mut raw::RedisModuleCtx,
    _argv: *mut *mut raw::RedisModuleString,
    _argc: c_int,
) -> c_int {
    raw::REDISMODULE_ERR as c_int
}

/// Writes the reply: ours if the request is settled, or null if the server ends
/// the wait (CLIENT UNBLOCK … TIMEOUT).
unsafe extern "C" fn on_time_out(
    ctx: *mut raw::RedisModuleCtx,
    _argv: *mut *mut raw::RedisModuleString,
    _argc: c_int,
) -> c_int {
    let ctx = Ctx(ctx);
    guarded(ctx, "a reply", (), || {
        let Some(shell) = shell() else {
            return;
        };
        let waiter = waiter_of(ctx);
        match write_reply(shell, ctx, waiter) {
            Some(reply) => reply.send(ctx),
            None => Responder::Null.send(ctx),
        }
    });
    raw::REDISMODULE_OK as c_int
}

/// The reply that is due, with its consequences noted.
fn write_reply(shell: &Shell, ctx: Ctx, waiter: WaiterId) -> Option<Responder> {
    let mut blocked = shell.blocked.try_borrow_mut().ok()?;
    let blocked = &mut *blocked;
    let client = blocked.clients.get_mut(&waiter)?;
    match &client.state {
        State::Settled(outcome) => {
            let reply = Responder::of(outcome);
            if shell.server.wakeup != Wakeup::AtOnce {
                if matches!(outcome, Outcome::Granted(_)) {
                    blocked.fresh.insert(client.id, waiter);
                }
                client.state = State::Answered;
            }
            Some(reply)
        }
        State::Waiting => {
            client.state = State::Gone;
            left(shell, ctx, waiter);
            None
        }
        State::Answered | State::Gone => None,
    }
}

/// The server ends the wait: the client went, was unblocked with an error, or was
/// sent elsewhere.
unsafe extern "C" fn on_disconnect(
    ctx: *mut raw::RedisModuleCtx,
    _handle: *mut raw::RedisModuleBlockedClient,
) {
    let ctx = Ctx(ctx);
    guarded(ctx, "a disconnect", (), || {
        if let Some(shell) = shell() {
            wait_ended(shell, ctx, waiter_of(ctx));
        }
    });
}

fn wait_ended(shell: &Shell, ctx: Ctx, waiter: WaiterId) {
    let was = match shell.blocked.try_borrow_mut() {
        Ok(mut blocked) => match blocked.clients.get_mut(&waiter) {
            Some(client) if !matches!(client.state, State::Answered) => {
                std::mem::replace(&mut client.state, State::Gone)
            }
            _ => return,
        },
        Err(_) => return,
    };
    match was {
        State::Waiting => left(shell, ctx, waiter),
        State::Settled(Outcome::Granted(_)) => lost(shell, ctx, waiter),
        State::Settled(_) | State::Answered | State::Gone => {}
    }
}

/// The server is done with the blocked client.
unsafe extern "C" fn on_free(ctx: *mut raw::RedisModuleCtx, data: *mut c_void) {
    let ctx = Ctx(ctx);
    guarded(ctx, "a blocked client's end", (), || {
        let Some(shell) = shell() else {
            return;
        };
        let waiter = data as usize as u64;
        let gone = api!(RedisModule_BlockedClientDisconnected(ctx.0)).unwrap_or(0) != 0;
        if gone {
            wait_ended(shell, ctx, waiter);
        }
        if let Ok(mut blocked) = shell.blocked.try_borrow_mut() {
            let client = blocked.clients.remove(&waiter);
            if let Some(Client {
                id,
                state: State::Settled(Outcome::Granted(_)),
                ..
            }) = client
            {
                blocked.fresh.insert(id, waiter);
            }
        }
    });
}

//! The gate: whether this server may change a lock on its own, without a request.
//!
//! A server that would refuse a client's write must not grant or expire either: a
//! master that is cut off would hand on a lock that its successor grants too, and
//! while writes are paused a replicated one trips an assertion.

use std::ffi::CString;

use redis_module::ContextFlags;

use crate::lock::Gate;
use crate::server::outbound::replication::ask_for_ack;
use crate::server::state::{Bar, Pulse, Replicas};
use crate::server::sys::{self, Ctx, MachineUs, Scope, ServerInfo};

/// A write that would change nothing: no value is put at the start of a key that nobody has. The
/// server refuses it when it would refuse any write, and does not even run it otherwise, but
/// for Redis 7.0.
const PROBE: &[u8] = b"rlock:gate";

/// Looks at the gate. `asked`: a client's write command is under way, so the server
/// has asked itself already, and what it accepts is done.
pub fn look(pulse: &Pulse, ctx: Ctx<'_>, asked: bool) -> Gate {
    if barred(ctx, asked).is_some() {
        return Gate::Shut;
    }
    if asked {
        return Gate::Open;
    }
    // It may write, so it may ask the replicas.
    let ask = || {
        ask_for_ack(ctx);
    };
    pulse.gate(MachineUs::now(), || replicas(ctx), ask)
}

/// What shuts the gate now, without a change to what it waits for.
pub fn bar(pulse: &Pulse, ctx: Ctx<'_>, now: MachineUs) -> Option<Bar> {
    let stood_still = || (!pulse.is_up_to_date(now)).then_some(Bar::StoodStill);
    barred(ctx, false).or_else(stood_still)
}

/// Why the server would not let a client write, as far as it knows, if it would not.
fn barred(ctx: Ctx<'_>, asked: bool) -> Option<Bar> {
    let flags = ctx.flags();
    if flags.intersects(ContextFlags::LOADING | ContextFlags::ASYNC_LOADING) {
        return Some(Bar::Loading);
    }
    if !flags.contains(ContextFlags::MASTER) {
        return Some(Bar::Replica);
    }
    // Paused or not: a write that runs in a pause stands in the MULTI that began it.
    if asked {
        return None;
    }
    if ctx.avoids_replica_traffic() {
        return Some(Bar::Paused);
    }
    refusal(ctx)
}

/// Why the server would not run a client's write: not enough replicas
/// (min-replicas-to-write), a disk error (MISCONF).
fn refusal(ctx: Ctx<'_>) -> Option<Bar> {
    let probe = sys::call(ctx, c"SETRANGE", Scope::Checked, &[PROBE, b"0", b""]);
    let Some(called) = probe else {
        return Some(Bar::Refused);
    };
    match (called.error, called.errno) {
        // Refused, but not for a reason of ours: another node of the cluster has that
        // key, and the other checks came first; or it ran, and somebody has such a key.
        (None, _) | (_, 0 | libc::EPERM) => None,
        (_, libc::ENETDOWN) => Some(Bar::ClusterDown),
        (Some(code), _) => Some(Bar::of_code(&code)),
    }
}

/// The replicas of this master, as INFO shows them.
fn replicas(ctx: Ctx<'_>) -> Replicas {
    let mut replicas = Replicas::default();
    let Some(info) = ServerInfo::section(ctx, c"replication") else {
        return replicas;
    };
    replicas.offset = info.number(c"master_repl_offset").unwrap_or(0);
    for at in 0.. {
        let name = CString::new(format!("slave{at}")).unwrap_or_default();
        let Some(line) = info.text(&name) else {
            break;
        };
        replicas.acknowledged.extend(acknowledged(line));
    }
    // Shown where min-replicas-to-write is in force.
    if let Some(good) = info.number(c"min_slaves_good_slaves") {
        let needed = sys::number_setting(ctx, "min-replicas-to-write").unwrap_or(good);
        replicas.needed = usize::try_from(needed).unwrap_or(0);
    }
    replicas
}

/// How far a replica has come, if it is online, by its line in INFO:
/// `ip=127.0.0.1,port=6380,state=online,offset=1234,lag=0`.
fn acknowledged(line: &str) -> Option<i64> {
    let mut online = false;
    let mut offset = None;
    for pair in line.split(',') {
        match pair.split_once('=') {
            Some(("state", state)) => online = state == "online",
            Some(("offset", at)) => offset = at.parse().ok(),
            _ => {}
        }
    }
    offset.filter(|_| online)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_replicas_that_are_online_have_acknowledged() {
        let line = "ip=127.0.0.1,port=6380,state=online,offset=1234,lag=0,type=replica";
        assert_eq!(acknowledged(line), Some(1234));
        assert_eq!(
            acknowledged("ip=::1,port=1,state=online,offset=0,lag=9"),
            Some(0)
        );
        assert_eq!(
            acknowledged("ip=::1,port=1,state=send_bulk,offset=7,lag=0"),
            None
        );
        assert_eq!(acknowledged("ip=::1,port=1"), None);
        assert_eq!(acknowledged(""), None);
    }
}

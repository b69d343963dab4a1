//! The settings under which no hold may be held by others at once, whatever is done to the
//! servers: there nothing is excused, and each overlap is a finding. By
//! docs/guarantees.md and docs/reliability.md.

use rlock_torture::history::{Out, Round};

use crate::past::Past;
use crate::request::Verb;

/// Their name, if a round has them.
pub fn settings(round: &Round) -> Option<&'static str> {
    let (strict, always) = (round.strict, round.persistence == "always");
    match round.topology.as_str() {
        "sentinel" if strict && round.wait >= REPLICAS => {
            Some("Sentinel, WAIT for all replicas, no DEL and the like")
        }
        "single" | "cluster" if strict && always => {
            Some("AOF always, no DEL and the like, no step of a clock")
        }
        "replica" if strict && always => {
            Some("AOF always, FAILOVER TO, no DEL and the like, no step of a clock")
        }
        _ => None,
    }
}

const REPLICAS: u32 = 2;

/// When a hold began for its holder, which waits for all replicas behind the request that
/// grants or renews it; none if they did not say in time that they have it.
pub fn begun(past: &Past, at: usize) -> Option<u64> {
    let asked = &past.ops[at];
    let ops = past.by_conn.get(&asked.op.conn)?;
    let nth = ops.iter().position(|one| *one == at)?;
    let next = &past.ops[*ops.get(nth + 1)?];
    let (reply, one_write) = (next.op.reply?, next.op.call == asked.op.call);
    let waited = next.request.verb == Verb::Wait && one_write;
    match next.op.out {
        Out::Int(count) if waited && count >= i64::from(past.round.wait) => Some(reply),
        _ => None,
    }
}

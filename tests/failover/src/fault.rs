//! What is done to the master, and when it is over.

use crate::clock::{now_us, pause, within};
use crate::conn::{ask, Gone};
use crate::resp::Value;
use crate::set::Set;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The process dies; what it had written arrives.
    Kill,
    /// The machine dies: what is under way is lost too.
    Power,
    Stop,
    /// Clients reach the old master, replicas and sentinels do not.
    Partition,
    SentinelFailover,
    Coordinated,
    FailoverTo,
}

pub const FAULTS: [(Fault, &str, &str); 7] = [
    (Fault::Kill, "kill", "kill -9"),
    (Fault::Power, "power", "power cut"),
    (Fault::Stop, "stop", "SIGSTOP, SIGCONT"),
    (Fault::Partition, "partition", "partition"),
    (Fault::SentinelFailover, "sentinel", "SENTINEL FAILOVER"),
    (Fault::Coordinated, "coordinated", "SENTINEL … COORDINATED"),
    (Fault::FailoverTo, "to", "FAILOVER TO"),
];

impl Fault {
    pub fn name(self) -> &'static str {
        let own = FAULTS.iter().find(|(fault, ..)| *fault == self);
        own.map_or("", |(.., name)| name)
    }

    pub fn has_sentinels(self) -> bool {
        self != Self::FailoverTo
    }

    /// Does it, and says from when it counts. None: this server has no such thing.
    pub fn begin(self, set: &Set) -> Option<u64> {
        let mut start = now_us();
        let master = set.master();
        match self {
            Self::Kill => master.signal(libc::SIGKILL),
            Self::Power => {
                set.cut();
                master.signal(libc::SIGKILL);
            }
            Self::Stop => master.signal(libc::SIGSTOP),
            Self::Partition => set.cut(),
            Self::SentinelFailover => start = told(set.sentinels[0].port, "SENTINEL FAILOVER m")?,
            Self::Coordinated => {
                start = told(set.sentinels[0].port, "SENTINEL FAILOVER m COORDINATED")?;
            }
            Self::FailoverTo => {
                // Without TIMEOUT the master pings its replicas meanwhile, and may stay paused
                // for half a minute until one of them has heard all.
                let line = format!(
                    "FAILOVER TO 127.0.0.1 {} TIMEOUT 30000",
                    set.servers[1].port
                );
                start = told(master.port, &line)?;
            }
        }
        Some(start)
    }

    /// Takes it back where it can be, and waits until the old master knows (or is dead) and
    /// a while longer. Whether that came about.
    pub fn finish(self, set: &Set) -> bool {
        let ways = set.ways();
        if !within(40_000, || ways.new_master().is_some()) {
            return false;
        }
        match self {
            Self::Kill | Self::Power => pause(2500),
            Self::Stop => {
                pause(2000);
                set.master().signal(libc::SIGCONT);
            }
            Self::Partition => {
                pause(2500);
                set.heal();
            }
            _ => {}
        }
        let dead = matches!(self, Self::Kill | Self::Power);
        let demoted = || dead || set.master().role() == "slave";
        let known = within(40_000, demoted);
        pause(1000);
        known
    }
}

/// Says it until it is accepted; when that was sent.
fn told(port: u16, line: &str) -> Option<u64> {
    let mut start = now_us();
    let mut refused = None;
    let done = within(30_000, || {
        start = now_us();
        match ask(port, line) {
            Ok(Value::Error(text)) if text.contains("NOGOODSLAVE") => false,
            Ok(Value::Error(text)) => {
                refused = Some(text);
                true
            }
            Err(Gone::Closed) => false,
            // FAILOVER may be so quick that it closes the connection.
            Ok(_) | Err(Gone::Silent) => true,
        }
    });
    (done && refused.is_none()).then_some(start)
}

//! Commands on the server as a whole: rare ones.

use super::{Args, Draw};
use crate::args;

const SETTINGS: [(&str, &[&str]); 12] = [
    ("rlock.max-waiters", &["0", "0", "3", "-1"]),
    ("rlock.max-waiters-per-key", &["0", "0", "2"]),
    ("rlock.max-waiters-per-client", &["0", "0", "1"]),
    ("rlock.watchdog-lost", &["close", "keep", "x"]),
    ("rlock.fencing", &["clock", "counter"]),
    ("rlock.deadlock-detection", &["yes", "no", "yes"]),
    ("rlock.redisson-compat", &["yes", "no", "yes"]),
    ("rlock.recovery-scan", &["yes", "no", "yes"]),
    ("rlock.recovery-scan-max", &["1", "1000000", "-1"]),
    ("rlock.keep-place", &["0", "1000", "15000"]),
    ("rlock.watchdog-max", &["0", "10", "1000", "60000"]),
    ("rlock.redisson-yield", &["0", "5", "10000", "20"]),
];

impl Draw {
    pub fn of_the_server(&mut self) -> Args {
        match self.rng.u32(0..100) {
            0..20 => {
                let (name, values) = self.pick(&SETTINGS);
                args!["CONFIG", "SET", name, self.pick(values)]
            }
            20..35 => args![
                "CLIENT",
                "UNBLOCK",
                self.id(),
                self.pick(&["TIMEOUT", "ERROR"])
            ],
            35..40 if !self.calm => args!["CLIENT", "KILL", "ID", self.id()],
            40..45 => self.asks_for_keys(),
            45..50 => args![
                "ACL",
                "DRYRUN",
                "default",
                "RLOCK.MACQUIRE",
                self.number(&["1"])
            ],
            50..59 => args!["INFO", self.pick(&["rlock", "modules", "everything"])],
            59..60 => args!["DEBUG", "RELOAD"],
            60..62 => args![self.pick(&["FLUSHALL", "FLUSHDB"])],
            62..64 if !self.calm && !self.is_old => {
                args!["CLIENT", "PAUSE", "3", self.pick(&["WRITE", "ALL"])]
            }
            64..66 => args!["CLIENT", "UNPAUSE"],
            66..68 => args!["DEBUG", "SET-ACTIVE-EXPIRE", self.pick(&["0", "1", "1"])],
            68..72 => args!["CLIENT", "NO-EVICT", self.pick(&["on", "off"])],
            72..78 => args!["COMMAND", "DOCS", "RLOCK.ACQUIRE"],
            78..84 => args!["MEMORY", "USAGE", self.key()],
            84..86 => args!["CONFIG", "SET", "maxmemory", self.pick(&["1", "0", "0"])],
            86..87 if !self.calm => args!["REPLICAOF", "127.0.0.1", "1"],
            87..90 => args!["REPLICAOF", "NO", "ONE"],
            90..94 => args!["OBJECT", "ENCODING", self.key()],
            94..97 => args!["WATCH", self.key()],
            _ => args!["KEYS", "*"],
        }
    }

    fn asks_for_keys(&mut self) -> Args {
        let mut args = args!["COMMAND", self.pick(&["GETKEYS", "GETKEYSANDFLAGS"])];
        args.extend(self.rlock());
        args
    }
}

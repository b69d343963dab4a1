//! The commands of rlock, with arguments that are nearly right.

use super::{Args, Draw};
use crate::args;

impl Draw {
    /// A command of rlock. One of twelve is spoilt.
    pub fn rlock(&mut self) -> Args {
        let mut args = match self.rng.u32(0..100) {
            0..30 => self.acquire(),
            30..47 => self.release(),
            47..57 => self.renew(),
            57..66 => self.macquire(),
            66..70 => self.mrelease(),
            70..74 => self.mrenew(),
            74..79 => self.cancel(),
            79..83 => self.force(),
            83..87 => args![
                "RLOCK.LIMIT",
                self.key(),
                self.number(&["1", "2", "3", "5"])
            ],
            87..91 => self.counted("RLOCK.INFO"),
            91..94 => self.counted("RLOCK.WAITERS"),
            94..96 => self.list(),
            96 => args!["RLOCK.HEARTBEAT", self.number(&["1", "100", "30000"])],
            97 => args!["RLOCK.OWNER"],
            98 => self.top(),
            _ => args!["RLOCK.NONE", self.key()],
        };
        if self.once_in(12) {
            self.spoil(&mut args);
        }
        args
    }

    fn acquire(&mut self) -> Args {
        let mut args = args!["RLOCK.ACQUIRE", self.key(), self.owner(), self.ms()];
        let mut more = match self.rng.u32(0..20) {
            0..9 => vec![],
            9..13 => vec![args!["READ"]],
            13..16 => vec![args!["WRITE"]],
            16 => vec![args!["PERMITS", self.number(&["1", "2"])]],
            17 => vec![args!["LIMIT", self.number(&["1", "3"])]],
            _ => {
                let limit = self.number(&["3", "3", "3", "2", "1000000"]);
                let permits = self.number(&["1", "1", "2", "3", "4"]);
                vec![args!["LIMIT", limit], args!["PERMITS", permits]]
            }
        };
        more.extend(self.ends_of_a_wait());
        self.append(&mut args, more);
        args
    }

    /// BLOCK, QUEUE, NOTIFY, WANTED, WATCHDOG and ONCE.
    fn ends_of_a_wait(&mut self) -> Vec<Args> {
        let mut more = Vec::new();
        match self.rng.u32(0..10) {
            0..3 if !self.calm => {
                let ms = self.number(&["1", "1", "2", "5", "20", "0"]);
                more.push(args!["BLOCK", ms]);
            }
            3..6 if self.channel.is_some() => {
                let ms = if !self.calm {
                    self.number(&["1", "10", "0"])
                } else if self.once_in(16) {
                    self.ms()
                } else {
                    b"0".to_vec()
                };
                more.push(args!["QUEUE", ms]);
                more.push(self.notify());
            }
            6 if self.channel.is_some() || self.once_in(10) => more.push(self.notify()),
            _ => {}
        }
        if self.once_in(6) {
            more.push(args!["WATCHDOG"]);
        }
        if self.once_in(4) {
            more.push(args!["ONCE"]);
        }
        more
    }

    fn notify(&mut self) -> Args {
        let mut args = args!["NOTIFY", self.session_channel(), self.tag()];
        if self.once_in(4) {
            args.extend(args!["WANTED"]);
        }
        args
    }

    fn release(&mut self) -> Args {
        let mut args = args!["RLOCK.RELEASE", self.key(), self.owner()];
        let mut more = self.mode();
        if self.once_in(5) {
            more.push(args!["ALL"]);
        }
        match self.rng.u32(0..6) {
            0 => more.push(args!["IFHELD"]),
            1 => more.push(args!["IFTOKEN", self.token()]),
            _ => {}
        }
        self.append(&mut args, more);
        args
    }

    fn mode(&mut self) -> Vec<Args> {
        match self.rng.u32(0..10) {
            0 | 1 => vec![args!["READ"]],
            2 => vec![args!["WRITE"]],
            3 => vec![args!["PERMITS"]],
            4 => vec![args!["PERMITS", self.number(&["1", "2", "3"])]],
            _ => vec![],
        }
    }

    fn renew(&mut self) -> Args {
        let mut args = args!["RLOCK.RENEW", self.key(), self.owner(), self.ms()];
        let mut more = match self.rng.u32(0..10) {
            0 | 1 => vec![args!["READ"]],
            2 => vec![args!["WRITE"]],
            3 | 4 => vec![args!["PERMITS"]],
            _ => vec![],
        };
        if self.channel.is_some() && self.once_in(4) {
            more.push(self.notify());
        }
        if self.once_in(6) {
            more.push(args!["WATCHDOG"]);
        }
        if self.once_in(8) {
            more.push(args!["FENCE", self.token()]);
        }
        if self.once_in(6) {
            more.push(args!["TOKEN"]);
        }
        self.append(&mut args, more);
        args
    }

    /// A number of keys, and the keys; now and then they do not fit.
    fn keys(&mut self) -> Args {
        let most = if self.once_in(200) { 1030 } else { 4 };
        let count = self.rng.usize(1..=most);
        let mut keys: Args = (0..count).map(|_| self.key()).collect();
        if most > 4 {
            keys = (0..count).map(|at| format!("many:{at}").into()).collect();
        } else if !self.once_in(10) {
            keys.sort();
            keys.dedup();
        }
        let said = match self.rng.u32(0..20) {
            0 => self.pick(&super::words::NUMBERS).to_owned(),
            1 => (keys.len() + 1).to_string(),
            2 => keys.len().saturating_sub(1).to_string(),
            3 => "1024".to_owned(),
            _ => keys.len().to_string(),
        };
        keys.insert(0, said.into());
        keys
    }

    fn macquire(&mut self) -> Args {
        let mut args = args!["RLOCK.MACQUIRE"];
        args.extend(self.keys());
        args.extend(args![self.owner(), self.ms()]);
        let more = self.ends_of_a_wait();
        self.append(&mut args, more);
        args
    }

    fn mrelease(&mut self) -> Args {
        let mut args = args!["RLOCK.MRELEASE"];
        args.extend(self.keys());
        args.push(self.owner());
        args
    }

    fn mrenew(&mut self) -> Args {
        let mut args = args!["RLOCK.MRENEW"];
        args.extend(self.keys());
        args.extend(args![self.owner(), self.ms()]);
        if self.channel.is_some() && self.once_in(4) {
            args.extend(self.notify());
        }
        args
    }

    fn cancel(&mut self) -> Args {
        let mut args = args!["RLOCK.CANCEL", self.key(), self.owner()];
        if self.once_in(2) {
            args.push(self.pick(&["READ", "WRITE", "PERMITS", "ALL"]).into());
        }
        args
    }

    fn force(&mut self) -> Args {
        let mut args = args!["RLOCK.FORCE", self.key()];
        match self.rng.u32(0..4) {
            0 => args.extend(args!["IFOWNER", self.owner()]),
            1 => args.extend(args!["IFTOKEN", self.token()]),
            _ => {}
        }
        args
    }

    fn counted(&mut self, name: &str) -> Args {
        let mut args = args![name, self.key()];
        if self.once_in(3) {
            args.extend(args!["COUNT", self.number(&["1", "2", "1000"])]);
        }
        args
    }

    fn top(&mut self) -> Args {
        let mut args = args!["RLOCK.TOP"];
        if self.once_in(2) {
            args.extend(args!["COUNT", self.number(&["1", "3"])]);
        }
        args
    }

    fn list(&mut self) -> Args {
        let cursors = [
            "0",
            "1",
            "0000000000000012-61-6f31",
            "00",
            "-",
            "ffffffffffffffff-61",
        ];
        let mut more = Vec::new();
        if self.once_in(3) {
            more.push(args!["CURSOR", self.pick(&cursors)]);
        }
        if self.once_in(3) {
            let long = "*".repeat(self.pick(&[30, 1024, 1025]));
            let patterns = ["*", "[a-", "\\", "*a*b*", "?", "", "[^a]", &long];
            let pattern = self.pick(&patterns);
            more.push(args!["MATCH", pattern]);
        }
        if self.once_in(3) {
            more.push(args!["OWNER", self.owner()]);
        }
        if self.once_in(3) {
            more.push(args!["HELD-LONGER", self.number(&["0", "1"])]);
        }
        if self.once_in(3) {
            more.push(args!["COUNT", self.number(&["1", "10", "250", "251"])]);
        }
        let mut args = args!["RLOCK.LIST"];
        self.append(&mut args, more);
        args
    }

    /// Keywords in any order and any case; now and then one comes twice.
    fn append(&mut self, args: &mut Args, mut more: Vec<Args>) {
        if !more.is_empty() && self.once_in(24) {
            let at = self.rng.usize(0..more.len());
            more.push(more[at].clone());
        }
        self.rng.shuffle(&mut more);
        for mut option in more {
            if self.once_in(8) {
                option[0].make_ascii_lowercase();
            }
            args.extend(option);
        }
    }

    /// Something is left out, said twice, put elsewhere or overwritten.
    fn spoil(&mut self, args: &mut Args) {
        let at = self.rng.usize(0..args.len()).max(1);
        let other = self.rng.usize(0..args.len()).max(1);
        let garbage = match self.rng.u32(0..4) {
            0 => self.bytes(40),
            1 => self.number(&["1"]),
            2 => b"x".repeat(self.pick(&[0, 600, 70_000])),
            _ => self
                .pick(&["READ", "ALL", "LIMIT", "BLOCK", "IFTOKEN", "COUNT", "*"])
                .into(),
        };
        match self.rng.u32(0..5) {
            0 => args.truncate(at),
            1 if at < args.len() => drop(args.remove(at)),
            2 if at < args.len() => args[at] = garbage,
            3 if at.max(other) < args.len() => args.swap(at, other),
            _ => args.push(garbage),
        }
    }
}

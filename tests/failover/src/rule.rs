//! What clients and servers are told to do so that no hold is lost.

use crate::server::words;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rule {
    /// Every holder says WAIT for so many replicas after its grant, at the first master;
    /// 0: it does not.
    pub wait: u32,
    /// min-replicas-to-write.
    pub min: u32,
}

pub const RULES: [Rule; 5] = [
    Rule { wait: 0, min: 0 },
    Rule { wait: 1, min: 0 },
    Rule { wait: 0, min: 1 },
    Rule { wait: 1, min: 1 },
    Rule { wait: 2, min: 0 },
];

impl Rule {
    pub fn name(self) -> String {
        match (self.wait, self.min) {
            (0, 0) => "none".to_owned(),
            (0, min) => format!("min-replicas {min}"),
            (wait, 0) => format!("WAIT {wait}"),
            (wait, min) => format!("WAIT {wait} + min-replicas {min}"),
        }
    }

    pub fn options(self) -> Vec<String> {
        match self.min {
            0 => Vec::new(),
            min => words(&format!(
                "--min-replicas-to-write {min} --min-replicas-max-lag 2"
            )),
        }
    }

    /// The new master has one replica, until the old one is back.
    pub fn replicas(self, on_old: bool) -> u32 {
        match on_old {
            true => self.wait,
            false => self.wait.min(1),
        }
    }

    pub fn wait_line(self, on_old: bool) -> Option<String> {
        (self.wait > 0).then(|| format!("WAIT {} 100", self.replicas(on_old)))
    }
}

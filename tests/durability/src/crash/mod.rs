//! Servers that are killed under load, and started again from what they had written.

mod judge;
mod look;
mod round;

pub use round::{run, Outcome};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    Nothing,
    /// BGSAVE, again and again.
    Save,
    /// BGREWRITEAOF, again and again.
    Rewrite,
    /// CONFIG SET appendonly yes, in the middle.
    SwitchOn,
}

/// A way of keeping the state, and of losing the server.
#[derive(Debug)]
pub struct Mode {
    pub name: &'static str,
    options: &'static str,
    act: Act,
    /// What was written and not brought to the disk is lost too.
    pub power: bool,
    /// Nothing acknowledged may be lost.
    strict: bool,
    /// The setting that keeps two from holding after a restart.
    waits: bool,
}

const fn mode(name: &'static str, options: &'static str) -> Mode {
    Mode {
        name,
        options,
        act: Act::Nothing,
        power: false,
        strict: false,
        waits: false,
    }
}

const ALWAYS: &str = "--appendonly yes --appendfsync always";
const EVERYSEC: &str = "--appendonly yes --appendfsync everysec";

pub const MODES: [Mode; 10] = [
    Mode {
        strict: true,
        ..mode("always, kill -9", ALWAYS)
    },
    Mode {
        strict: true,
        power: true,
        ..mode("always, power cut", ALWAYS)
    },
    Mode {
        strict: true,
        act: Act::Rewrite,
        ..mode("always, BGREWRITEAOF, kill -9", ALWAYS)
    },
    Mode {
        strict: true,
        act: Act::SwitchOn,
        ..mode(
            "always, switched on under load, kill -9",
            "--appendfsync always",
        )
    },
    mode("everysec, kill -9", EVERYSEC),
    Mode {
        power: true,
        ..mode("everysec, power cut", EVERYSEC)
    },
    Mode {
        act: Act::Save,
        ..mode("BGSAVE, kill -9", "")
    },
    mode("nothing kept, kill -9", ""),
    Mode {
        waits: true,
        ..mode("nothing kept, rlock.grant-after", "")
    },
    Mode {
        power: true,
        waits: true,
        ..mode("everysec, power cut, rlock.grant-after", EVERYSEC)
    },
];

//! Locks that are held while something else is measured, and their like without the module.

use std::ops::Range;

use crate::load::{command, Connection, Expect, Load, Outcome};

/// So many commands are prepared at a time.
const BATCH: usize = 50_000;

/// Acquires `count` locks for long, with deadlines that differ.
pub fn hold(connection: &mut Connection, count: usize) -> Outcome<()> {
    hold_by("RLOCK.ACQUIRE", connection, count)
}

/// The same by another module's command.
pub fn hold_by(acquire: &str, connection: &mut Connection, count: usize) -> Outcome<()> {
    let acquire = |number: usize| {
        let lease = (600_000 + number * 7).to_string();
        command(&[acquire, &name(number), "holder", &lease])
    };
    for numbers in batches(count) {
        let commands: Vec<Vec<u8>> = numbers.map(acquire).collect();
        Load::new(64, &commands, &[Expect::Integer]).run_once(connection)?;
    }
    Ok(())
}

/// The keys that held locks are, made without the module.
pub fn hashes(connection: &mut Connection, count: usize) -> Outcome<()> {
    let pair = |number| {
        let key = name(number);
        [
            command(&["HSET", &key, "holder", "1"]),
            command(&["PEXPIRE", &key, "600000"]),
        ]
    };
    for numbers in batches(count) {
        let commands: Vec<Vec<u8>> = numbers.flat_map(pair).collect();
        Load::new(64, &commands, &[Expect::Integer]).run_once(connection)?;
    }
    Ok(())
}

/// The name of one of the locks.
pub fn name(number: usize) -> String {
    format!("held:{number}")
}

fn batches(count: usize) -> impl Iterator<Item = Range<usize>> {
    let starts = (0..count).step_by(BATCH);
    starts.map(move |start| start..count.min(start + BATCH))
}

//! Locks that are held while something else is measured.

use crate::load::{command, Connection, Expect, Load, Outcome};

/// Acquires `count` locks for long, with deadlines that differ.
pub fn hold(connection: &mut Connection, count: usize) -> Outcome<()> {
    let acquire = |number: usize| {
        let lease = (600_000 + number * 7).to_string();
        command(&["RLOCK.ACQUIRE", &name(number), "holder", &lease])
    };
    let commands: Vec<Vec<u8>> = (0..count).map(acquire).collect();
    Load::new(64, &commands, &[Expect::Integer]).run_once(connection)?;
    Ok(())
}

/// The name of one of the locks.
pub fn name(number: usize) -> String {
    format!("held:{number}")
}

//! `rlock.recovery-scan` and `rlock.recovery-scan-max`.

use super::{late, loaded_after, plain, presumed};
use crate::support::Ask;

fn locks(count: usize) -> Vec<String> {
    (0..count)
        .flat_map(|n| plain(&format!("k{n}"), late()))
        .collect()
}

#[test]
fn it_can_be_left_out() {
    let server = loaded_after(&[], &locks(20));
    let mut control = server.raw();
    let path = control.module_path();
    presumed(&mut control, 20);
    // A lease that is known keeps the module from being unloaded.
    assert_eq!(control.code("MODULE UNLOAD rlock"), "ERR");
    assert!(control.refused("RLOCK.ACQUIRE k7 b 1000"));
    control.ok("CONFIG SET rlock.recovery-scan no");
    presumed(&mut control, 0);
    control.ok("DEBUG RELOAD");
    presumed(&mut control, 0);
    control.ok("CONFIG SET rlock.recovery-scan yes");
    presumed(&mut control, 19);
    control.ok("CONFIG SET rlock.recovery-scan no");
    presumed(&mut control, 0);
    control.int("RLOCK.FORCE k7");
    control.unload_module();
    control.ok(&format!("MODULE LOAD {path} recovery-scan no"));
    presumed(&mut control, 0);
    assert_eq!(control.counter("rlock_recovery_scanned"), 0);
    server.unharmed();
}

#[test]
fn no_more_are_remembered_than_is_set() {
    let server = loaded_after(&["--rlock.recovery-scan-max", "1000000"], &locks(200));
    let mut control = server.raw();
    presumed(&mut control, 200);
    let says = |server: &crate::support::Server| {
        let log = server.log();
        log.lines()
            .filter(|line| line.contains("rlock.recovery-scan-max"))
            .count()
    };
    assert_eq!(says(&server), 0);
    control.ok("CONFIG SET rlock.recovery-scan-max 10");
    control.ok("CONFIG SET rlock.recovery-scan no");
    presumed(&mut control, 0);
    control.ok("CONFIG SET rlock.recovery-scan yes");
    presumed(&mut control, 10);
    assert_eq!(says(&server), 1);
    let line = control.error("CONFIG SET rlock.recovery-scan-max -1");
    assert!(line.starts_with("ERR "), "{line}");
}

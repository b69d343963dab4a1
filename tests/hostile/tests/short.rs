//! The short form, as part of `cargo test`.

use std::process::Command;

#[test]
fn some_seconds_of_hostile_commands() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hostile"));
    let output = command
        .args(["--seed=8", "--seconds=6"])
        .output()
        .expect("run it");
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{text}");
    assert!(output.status.success(), "see above; SEED=8 repeats it");
}

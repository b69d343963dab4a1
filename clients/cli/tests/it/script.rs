//! Ctrl-c where a shell script runs `rlock`: who was interrupted ends the script too.

use std::process::Command;

use crate::server::{Server, dies_with_us, until};
use crate::terminal::Screen;

/// A script in which `rlock run` is a line, with this command.
fn script(server: &Server, shell: &str, words: &str) -> Screen {
    let own = env!("CARGO_BIN_EXE_rlock");
    let text = format!("{own} run {words}\nsaid=$?\necho \"next after $said\"\nexit 3");
    shown(server, shell, &text)
}

fn shown(server: &Server, shell: &str, text: &str) -> Screen {
    let mut script = Command::new(shell);
    script.args(["-c", text]).env("RLOCK_URL", server.address());
    dies_with_us(&mut script);
    Screen::show(script)
}

/// Those that there are here.
fn shells() -> Vec<&'static str> {
    let is_there = |shell: &&str| Command::new(shell).args(["-c", ":"]).status().is_ok();
    let shells: Vec<_> = ["sh", "bash", "dash", "zsh"]
        .into_iter()
        .filter(is_there)
        .collect();
    assert!(!shells.is_empty());
    shells
}

#[test]
fn the_script_ends_with_a_command_that_is_interrupted() {
    let server = Server::start();
    for shell in shells() {
        for (key, signal) in [("\x03", libc::SIGINT), ("\x1c", libc::SIGQUIT)] {
            let words = "jobs -- sh -c 'sleep 600; echo on'";
            let mut screen = script(&server, shell, words);
            screen.runs("sleep");
            screen.press(key);
            if shell == "bash" && signal == libc::SIGQUIT {
                // It ignores QUIT in all cases.
                screen.see("next after 131");
                assert_eq!(screen.end(), 3);
                continue;
            }
            assert_eq!(screen.end(), 128 + signal, "{shell}");
            assert!(
                !screen.text().contains("next"),
                "{shell}: {}",
                screen.text()
            );
            assert!(server.is_free("jobs"));
        }
    }
}

#[test]
fn it_ends_with_one_that_waits() {
    let server = Server::start();
    server.ask::<i64>("RLOCK.ACQUIRE jobs ann 60000");
    for shell in shells() {
        let mut screen = script(&server, shell, "--wait 1h jobs -- true");
        screen.see("in the queue");
        screen.press("\x03");
        assert_eq!(screen.end(), 128 + libc::SIGINT, "{shell}");
        assert!(
            !screen.text().contains("next"),
            "{shell}: {}",
            screen.text()
        );
        until(|| server.waiters("jobs") == 0);
    }
}

#[test]
fn it_goes_on_after_a_command_that_takes_the_key_for_its_own() {
    let server = Server::start();
    for shell in shells() {
        let trap = "trap \"echo had; exit 5\" INT; echo ready; while :; do sleep 0.05; done";
        let mut screen = script(&server, shell, &format!("jobs -- sh -c '{trap}'"));
        screen.see("ready");
        screen.press("\x03");
        screen.see("next after 5");
        assert_eq!(screen.end(), 3, "{shell}");
    }
}

#[test]
fn it_has_the_terminal_again_after_jobs_that_had_it() {
    let server = Server::start();
    let own = env!("CARGO_BIN_EXE_rlock");
    // An interactive shell gives the terminal to its job, and both are killed.
    let text = format!(
        "{own} run --lease 3s jobs -- bash --norc -i -c 'echo ready; sleep 600'; \
         read line; echo \"got $line\""
    );
    let mut screen = shown(&server, "bash", &text);
    screen.see("ready");
    server.ask::<i64>("DEL jobs");
    screen.see("before the command had ended");
    screen.press("hello\n");
    screen.see("got hello");
    assert_eq!(screen.end(), 0);
}

/// What is said then is said from the background, for the command has the terminal.
#[test]
fn ctrl_z_is_told_of_on_a_terminal_that_stops_who_writes_in_the_background() {
    let server = Server::start();
    let own = env!("CARGO_BIN_EXE_rlock");
    let command = "sh -c 'echo ready; read line; echo \"got $line\"'";
    let text = format!("set -m; stty tostop; {own} run jobs -- {command}; echo next after $?");
    let mut screen = shown(&server, "bash", &text);
    screen.see("ready");
    screen.press("\x1a");
    screen.see("is not stopped by ctrl-z");
    screen.press("hello\n");
    screen.see("got hello");
    screen.see("next after 0");
    assert_eq!(screen.end(), 0);
}

#[test]
fn it_goes_on_after_a_command_that_another_signal_ends() {
    let server = Server::start();
    let own = env!("CARGO_BIN_EXE_rlock");
    let text = format!(
        "{own} run jobs -- sh -c 'echo ready; kill -TERM $$; sleep 600'\necho next after $?"
    );
    let mut screen = shown(&server, "bash", &text);
    screen.see("next after 143");
    assert_eq!(screen.end(), 0);
}

//! Standard error that nobody reads, or can be written to.

use std::fs::File;
use std::io::{Read, Write, pipe};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::server::{Server, until};
use crate::tool::{Notes, end, is_alive, rlock, signal};

#[test]
fn whose_reader_is_gone_or_whose_disk_is_full() {
    let server = Server::start();
    server.ask::<i64>("RLOCK.ACQUIRE taken other 60000");
    let code = |words: &[&str], lost: bool| {
        let errors: [Stdio; 2] = [
            pipe().unwrap().1.into(),
            File::options()
                .write(true)
                .open("/dev/full")
                .unwrap()
                .into(),
        ];
        errors.map(|errors| {
            let run = rlock(&server, words).stderr(errors).spawn().unwrap();
            if lost {
                until(|| !server.is_free("jobs"));
                server.ask::<i64>("RLOCK.FORCE jobs");
            }
            end(run).code
        })
    };
    assert_eq!(code(&["run", "taken", "--", "true"], false), [115; 2]);
    assert_eq!(code(&["run", "jobs", "--", "/none"], false), [127; 2]);
    let said = ["run", "-v", "jobs", "--", "sh", "-c", "exit 7"];
    assert_eq!(code(&said, false), [7; 2]);
    let goes_on = ["run", "jobs", "--", "sh", "-c", "kill -TSTP $$; exit 7"];
    assert_eq!(code(&goes_on, false), [7; 2]);
    assert_eq!(code(&["run", "jobs", "--", "sleep", "60"], true), [116; 2]);
    let gone = rlock(&server, &["man"]).stdout(pipe().unwrap().1).spawn();
    assert_eq!(end(gone.unwrap()).code, 0);
}

#[test]
fn of_a_pipe_that_is_full() {
    let server = Server::start();
    let (mut reader, mut writer) = pipe().unwrap();
    let filler = std::thread::spawn({
        let mut writer = writer.try_clone().unwrap();
        // It waits when the pipe is full, until somebody reads.
        move || _ = writer.write_all(&[b'x'; 1 << 17])
    });
    writer.flush().unwrap();
    let lease = ["run", "--lease", "60s", "jobs", "--", "sleep", "600"];
    let run = rlock(&server, &lease).stderr(writer).spawn().unwrap();
    until(|| !server.is_free("jobs"));
    server.ask::<i64>("RLOCK.FORCE jobs");
    let begun = Instant::now();
    assert_eq!(end(run).code, 116);
    // Without the warning, which nobody reads, TERM comes at once; not after two thirds.
    assert!(begun.elapsed() < Duration::from_secs(30));
    let mut all = Vec::new();
    reader.read_to_end(&mut all).unwrap();
    filler.join().unwrap();
}

#[test]
fn a_command_that_stops_itself_again_and_again_while_rlock_stands_still() {
    let server = Server::start();
    let notes = Notes::new();
    let script = format!(
        "echo $$ > {}; while :; do kill -TSTP $$; done",
        notes.path("ids")
    );
    let words = ["run", "--lease", "6s", "jobs", "--", "sh", "-c", &script];
    let run = rlock(&server, &words)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let command = notes.ids("ids", 1)[0];
    signal(&run, libc::SIGSTOP);
    until(|| !is_alive(command));
    signal(&run, libc::SIGCONT);
    assert_eq!(end(run).code, 116);
}

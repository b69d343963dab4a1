//! Processes of programs in other languages, each of which takes its orders line by line.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use super::{end_with_this_process, Outcome};

/// A process that says nothing for this long has hung.
const PATIENCE: Duration = Duration::from_secs(120);

/// So many of them start at the same time: some languages are slow at first.
const AT_A_TIME: usize = 4;

/// Some processes of one program.
pub struct Crew {
    members: Vec<Member>,
}

impl Crew {
    /// Starts so many of them, and waits until each has said that it is ready.
    pub fn start(count: usize, command: impl Fn() -> Outcome<Command>) -> Outcome<Self> {
        let mut members: Vec<Member> = Vec::new();
        let mut ready = 0;
        while ready < count {
            if members.len() < count.min(ready + AT_A_TIME) {
                members.push(Member::start(command()?)?);
            } else if let Some(member) = members.get_mut(ready) {
                member.hear()?;
                ready += 1;
            }
        }
        Ok(Crew { members })
    }

    /// Tells all of them the same, and gives the sum of the numbers that they reply.
    pub fn tell(&mut self, order: &str) -> Outcome<i64> {
        let replies = self.ask(order)?;
        Ok(replies.iter().map(|reply| reply.parse().unwrap_or(0)).sum())
    }

    /// Tells all of them the same, and gives what each of them replies.
    pub fn ask(&mut self, order: &str) -> Outcome<Vec<String>> {
        for member in &mut self.members {
            member.say(order)?;
        }
        self.members.iter_mut().map(Member::hear).collect()
    }

    /// Tells the last of them alone.
    pub fn tell_one(&mut self, order: &str) -> Outcome<i64> {
        let member = self.members.last_mut().ok_or("nobody is left")?;
        member.say(order)?;
        Ok(member.hear()?.parse()?)
    }

    /// Kills the last of them.
    pub fn kill_one(&mut self) {
        self.members.pop();
    }
}

struct Member {
    process: Child,
    heard: Receiver<String>,
}

impl Member {
    fn start(mut command: Command) -> Outcome<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        end_with_this_process(&mut command);
        let mut process = command.spawn()?;
        let output = process.stdout.take().ok_or("it has no output")?;
        let (tell, heard) = mpsc::channel();
        // So that a process that hangs is noticed.
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Member { process, heard })
    }

    fn say(&mut self, order: &str) -> Outcome<()> {
        let input = self.process.stdin.as_mut().ok_or("it has no input")?;
        // In one piece: a program that reads without waiting would see half a line.
        Ok(input.write_all(format!("{order}\n").as_bytes())?)
    }

    fn hear(&mut self) -> Outcome<String> {
        let heard = self.heard.recv_timeout(PATIENCE);
        heard.map_err(|_| "a process of the benchmark ended, or hangs".into())
    }
}

impl Drop for Member {
    /// By SIGKILL.
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

//! Processes of a Java program whose clients share permits; it is built of the sources of the
//! tests against Redisson, and each process takes its orders line by line.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use crate::load::{end_with_this_process, Outcome, Server};

/// A process that says nothing for this long has hung.
const PATIENCE: Duration = Duration::from_secs(60);

/// The program, built.
pub struct Program {
    folder: PathBuf,
}

impl Program {
    /// Builds it; gives why not, where that cannot be.
    pub fn build() -> Outcome<Result<Self, String>> {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/redisson/build");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("redisson");
        let built = Command::new(sources).arg(&folder).output()?;
        if built.status.success() {
            return Ok(Ok(Program { folder }));
        }
        let said = [built.stdout, built.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        let first = said.lines().next().unwrap_or("it cannot be built");
        Ok(Err(first.to_owned()))
    }

    fn command(&self) -> Outcome<Command> {
        let classes = self.folder.join("classes");
        let libraries = fs::read_to_string(self.folder.join("classpath"))?;
        let mut command = Command::new("java");
        command
            .args(["-XX:+UseSerialGC", "-Xmx512m"])
            .arg("-Dorg.slf4j.simpleLogger.defaultLogLevel=off")
            .arg("-cp")
            .arg(format!("{}:{}", classes.display(), libraries.trim()));
        Ok(command)
    }
}

/// Some processes that share the permits of a server.
pub struct Crew {
    members: Vec<Member>,
}

impl Crew {
    /// Starts them, with so many clients each, and waits until all are connected. `side`: by
    /// what they take permits.
    pub fn start(
        program: &Program,
        server: &Server,
        side: &str,
        [processes, clients]: [usize; 2],
    ) -> Outcome<Self> {
        let mut members = Vec::new();
        for _ in 0..processes {
            let mut command = program.command()?;
            let (port, clients) = (server.port().to_string(), clients.to_string());
            command.args(["interop.bench.Permits", side, &port, &clients]);
            members.push(Member::start(command)?);
        }
        for member in &mut members {
            member.hear()?;
        }
        Ok(Crew { members })
    }

    /// Tells all of them the same, and gives the sum of the numbers that they reply.
    pub fn tell(&mut self, order: &str) -> Outcome<i64> {
        for member in &mut self.members {
            member.say(order)?;
        }
        let mut sum = 0;
        for member in &mut self.members {
            sum += member.hear()?.parse().unwrap_or(0);
        }
        Ok(sum)
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
        Ok(writeln!(input, "{order}")?)
    }

    fn hear(&mut self) -> Outcome<String> {
        let heard = self.heard.recv_timeout(PATIENCE);
        heard.map_err(|_| "a process of Java ended, or hangs".into())
    }
}

impl Drop for Member {
    /// By SIGKILL.
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

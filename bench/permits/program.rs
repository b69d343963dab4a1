//! The Java program whose clients share permits; it is built of the sources of the tests
//! against Redisson.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::load::{Crew, Outcome, Server};

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

    /// Starts some processes, with so many clients each, that share the permits of a server.
    /// `side`: by what they take permits.
    pub fn start(
        &self,
        server: &Server,
        side: &str,
        [processes, clients]: [usize; 2],
    ) -> Outcome<Crew> {
        Crew::start(processes, || {
            let mut command = self.command()?;
            let (port, clients) = (server.port().to_string(), clients.to_string());
            command.args(["interop.bench.Permits", side, &port, &clients]);
            Ok(command)
        })
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

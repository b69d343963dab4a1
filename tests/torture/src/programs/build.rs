//! The drivers of `clients/conformance/drivers`: how one is built and started.

use std::env;
use std::fs::{self, File};
use std::io::{self, Error};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::backend::Servers;
use crate::PROCESSES;

/// What a build ends with whose packages cannot be had.
const NO_PACKAGES: i32 = 75;

pub struct Kind {
    pub name: String,
    /// `module`, `functions`, `script`: those that its client has.
    backends: Vec<String>,
    run: Vec<String>,
    folder: PathBuf,
    built: PathBuf,
}

impl Kind {
    /// Builds it; an error with why, if it is to be skipped.
    pub fn build(
        name: &str,
        (root, target): (&Path, &Path),
        servers: Servers,
    ) -> io::Result<Result<Self, String>> {
        let dir = root.join("clients/conformance/drivers").join(name);
        let text = fs::read_to_string(dir.join("driver.json"))
            .map_err(|error| Error::other(format!("there is no driver {name:?}: {error}")))?;
        let about: Value = serde_json::from_str(&text)?;
        for tool in about["toolchain"].as_object().into_iter().flatten() {
            if !on_path(tool.0) {
                return Ok(Err(format!("there is no {}", tool.0)));
            }
        }
        let built = target.join("conformance").join(name);
        fs::create_dir_all(&built)?;
        let folder = dir.join(about["folder"].as_str().unwrap_or("."));
        let words = |which: &str| -> Vec<String> {
            let words = about[which].as_array().into_iter().flatten();
            let words = words.filter_map(Value::as_str);
            let path = built.display().to_string();
            words
                .map(|word| word.replace("$RLOCK_BUILT", &path))
                .collect()
        };
        let backends = match words("backends") {
            none if none.is_empty() => vec!["module".to_owned()],
            some => some,
        };
        let kind = Self {
            name: name.to_owned(),
            backends,
            run: words("run"),
            folder,
            built: built.clone(),
        };
        for backend in (0..PROCESSES).map(|process| servers.backend(process).name()) {
            if !kind.backends.iter().any(|has| has == backend) {
                return Ok(Err(format!("its client has no backend {backend}")));
            }
        }
        let how = words("build");
        if how.is_empty() {
            return Ok(Ok(kind));
        }
        // Another run may build the same, also that of the scenarios.
        let lock = File::create(built.join("lock"))?;
        lock.lock()?;
        let log = built.join("build.log");
        let out = File::create(&log)?;
        let mut command = kind.command(&how)?;
        command.stdin(Stdio::null());
        let done = command.stdout(out.try_clone()?).stderr(out).status()?;
        let said = || fs::read_to_string(&log).unwrap_or_default();
        match done.code() {
            Some(0) => Ok(Ok(kind)),
            Some(NO_PACKAGES) => Ok(Err("its packages could not be had".to_owned())),
            _ => Err(Error::other(format!("{name} does not build:\n{}", said()))),
        }
    }

    fn command(&self, words: &[String]) -> io::Result<Command> {
        let first = words.first().ok_or_else(|| Error::other("no command"))?;
        let relative = first.contains('/') && !first.starts_with('/');
        let program = match relative {
            true => self.folder.join(first),
            false => PathBuf::from(first),
        };
        let mut command = Command::new(program);
        command.args(&words[1..]).current_dir(&self.folder);
        command.env("RLOCK_BUILT", &self.built);
        Ok(command)
    }

    pub fn start(&self) -> io::Result<Command> {
        self.command(&self.run)
    }
}

fn on_path(tool: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|dir| dir.join(tool).is_file())
}

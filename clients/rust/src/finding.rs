//! Finding out how a server is spoken to. Where it has no module the library is loaded.

use redis::aio::MultiplexedConnection;
use redis::{Cmd, RedisResult, Value, cmd};

use crate::backend::Backend;
use crate::error::Error;
use crate::library::{Speech, TEXT};

/// What has been asked.
enum Asked {
    /// Whether the command is there; not everybody may ask so.
    Command,
    /// The command itself: how many arguments it has is looked at before any right.
    Acquire,
    Version,
    FunctionLoad,
    ScriptLoad,
}

/// What comes next.
pub enum Next {
    Ask(Cmd),
    Found(Speech),
}

/// One command after the other: [`first`], and then what each reply leads to.
pub struct Finding {
    asked: Asked,
    in_cluster: bool,
    needs_module: bool,
}

/// The first question, which can go out with other commands.
pub fn first() -> Cmd {
    cmd("COMMAND").arg("INFO").arg("RLOCK.ACQUIRE").clone()
}

/// The second, where the first is refused.
pub fn second() -> Cmd {
    cmd("RLOCK.ACQUIRE")
}

/// What the reply to the first or the second says, if it says that.
pub fn has_module(reply: &Result<Value, Error>) -> Option<bool> {
    match reply {
        Ok(Value::Array(entries)) => Some(matches!(entries[..], [Value::Array(_)])),
        Err(Error::Refused { text, .. }) if text.contains("wrong number of arguments") => {
            Some(true)
        }
        Err(error) if error.is_unknown_command() => Some(false),
        _ => None,
    }
}

/// A server's reply, or its error, also where that is an element of the reply.
pub fn reply(reply: RedisResult<Value>) -> Result<Value, Error> {
    let reply = reply.and_then(Value::extract_error);
    reply.map_err(|error| Error::from_redis(&error))
}

/// To the end; `answer` is that to the first question.
pub async fn find(
    connection: &mut MultiplexedConnection,
    mut finding: Finding,
    answer: RedisResult<Value>,
) -> Result<Speech, Error> {
    let mut next = finding.next(reply(answer))?;
    loop {
        match next {
            Next::Found(speech) => return Ok(speech),
            Next::Ask(command) => {
                let answer = connection.send_packed_command(&command).await;
                next = finding.next(reply(answer))?;
            }
        }
    }
}

impl Finding {
    /// `needs_module`: nothing else will do.
    pub fn new(in_cluster: bool, needs_module: bool) -> Self {
        Self {
            asked: Asked::Command,
            in_cluster,
            needs_module,
        }
    }

    /// # Errors
    /// With what the requests are refused for, or the connection failed.
    pub fn next(&mut self, reply: Result<Value, Error>) -> Result<Next, Error> {
        // An answer that another attempt would mend.
        if let Err(error) = &reply
            && (!matches!(error, Error::Refused { .. }) || error.is_no_master())
        {
            return Err(error.clone());
        }
        match (&self.asked, has_module(&reply), reply) {
            (Asked::Command | Asked::Acquire, Some(true), _) => self.found(Backend::Module, ""),
            (Asked::Command | Asked::Acquire, Some(false), _) if self.needs_module => {
                Err(Error::no_module())
            }
            (Asked::Command | Asked::Acquire, Some(false), _) => {
                let mut version = cmd("FCALL_RO");
                version.arg("rlock1_version").arg(0);
                self.ask(Asked::Version, version)
            }
            (Asked::Command, None, _) => self.ask(Asked::Acquire, second()),
            (Asked::Version | Asked::FunctionLoad, _, Ok(_)) => self.found(Backend::Functions, ""),
            (Asked::Version, _, Err(error)) if error.is_unknown_function() => {
                let mut load = cmd("FUNCTION");
                // Never with REPLACE: that would forget which hold has which token.
                load.arg("LOAD").arg(TEXT);
                self.ask(Asked::FunctionLoad, load)
            }
            (Asked::FunctionLoad, _, Err(error)) if error.says("already exists") => {
                self.found(Backend::Functions, "")
            }
            (Asked::Version | Asked::FunctionLoad, _, Err(error)) if may_not(&error) => {
                let mut load = cmd("SCRIPT");
                let script = TEXT.split_once('\n').map_or("", |(_, script)| script);
                load.arg("LOAD").arg(script);
                self.ask(Asked::ScriptLoad, load)
            }
            (Asked::ScriptLoad, _, Ok(Value::BulkString(sha))) => {
                self.found(Backend::Script, &String::from_utf8_lossy(&sha))
            }
            (Asked::ScriptLoad, _, Err(Error::Refused { code, text })) => {
                let text = format!("{NO_RIGHT} ({text})");
                Err(Error::Refused { code, text })
            }
            (_, _, Err(error)) => Err(error),
            (_, _, Ok(_)) => Err(Error::Connection("the server replied nonsense".into())),
        }
    }

    fn ask(&mut self, asked: Asked, command: Cmd) -> Result<Next, Error> {
        self.asked = asked;
        Ok(Next::Ask(command))
    }

    fn found(&self, backend: Backend, sha: &str) -> Result<Next, Error> {
        Ok(Next::Found(Speech::new(backend, sha, self.in_cluster)))
    }
}

/// Whether the server does not know a command, or does not let this user say it.
fn may_not(error: &Error) -> bool {
    error.is_denied() || error.is_unknown_command()
}

const NO_RIGHT: &str = "the server has no rlock module, and this user may not FUNCTION LOAD or \
    SCRIPT LOAD: an administrator runs redis-cli -x FUNCTION LOAD <rlock.lua, or gives the user \
    +fcall +fcall_ro +function|load";

//! How a server is spoken to: by the module's commands, or by calls of the library, whose
//! functions have the same arguments, replies and errors.

use std::sync::Arc;

use redis::{Cmd, cmd};

use crate::backend::Backend;

/// The function library: `lua-compat/` of the repository.
pub const TEXT: &str = include_str!("rlock.lua");

/// Which keys of a lock's own a call may touch: some servers refuse keys that are not declared.
pub const QUEUE: &[&str] = &["rlock1_queue", "rlock1_places"];
/// Those, and the counter of tokens.
pub const ALL: &[&str] = &["rlock1_queue", "rlock1_places", "redisson_lock_token"];

/// Beside keys of more bytes than that nothing is declared.
const MOST_DECLARED: usize = 1 << 14;

/// What a server understands.
#[derive(Clone, Debug)]
pub struct Speech {
    pub backend: Backend,
    sha: Arc<str>,
    pub in_cluster: bool,
}

impl Speech {
    pub fn new(backend: Backend, sha: &str, in_cluster: bool) -> Self {
        let sha = sha.into();
        Self {
            backend,
            sha,
            in_cluster,
        }
    }

    pub fn has_module(&self) -> bool {
        self.backend == Backend::Module
    }

    /// The command for one key or for several, as far as the keys. `with`: what is declared beside
    /// them, if it lies in their slot.
    pub fn call(&self, name: &str, keys: &[String], with: &[&str]) -> Cmd {
        let many = if keys.len() > 1 { "m" } else { "" };
        let name = format!("{many}{name}");
        if self.has_module() {
            let mut call = cmd(&format!("RLOCK.{}", name.to_uppercase()));
            if keys.len() > 1 {
                call.arg(keys.len());
            }
            call.arg(keys);
            return call;
        }
        let mut declared = Vec::new();
        // A server may be set to close a connection that sends 1 MB.
        let is_short = keys.iter().map(String::len).sum::<usize>() <= MOST_DECLARED;
        for key in keys.iter().filter(|key| is_short && is_near(key)) {
            declared.extend(with.iter().map(|prefix| prefixed(prefix, key)));
        }
        let count = keys.len() + declared.len();
        let function = format!("rlock1_{name}");
        let mut call;
        if self.backend == Backend::Functions {
            call = cmd(if name == "info" { "FCALL_RO" } else { "FCALL" });
            call.arg(&function).arg(count).arg(keys).arg(declared);
        } else {
            call = cmd("EVALSHA");
            call.arg(&*self.sha).arg(count).arg(keys).arg(declared);
            // A script does not ask where it is.
            call.arg(self.in_cluster.then_some("CLUSTER")).arg(function);
        }
        call
    }
}

/// What is named after a lock; a name with a brace is used as it is.
pub fn prefixed(prefix: &str, key: &str) -> String {
    if key.contains('{') {
        format!("{prefix}:{key}")
    } else {
        format!("{prefix}:{{{key}}}")
    }
}

/// Whether what is named after a lock lies in its slot.
pub fn is_near(key: &str) -> bool {
    match key.split_once('{') {
        Some((_, rest)) => rest.split_once('}').is_some_and(|(tag, _)| !tag.is_empty()),
        None => !key.contains('}'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slots::slot;

    #[test]
    fn what_is_declared_lies_in_the_slot_of_the_lock() {
        for key in ["job", "{job}1", "a{b}c", "a{{b}}c", "{a}{b}"] {
            assert!(is_near(key), "{key}");
            for prefix in ALL {
                assert_eq!(slot(&prefixed(prefix, key)), slot(key), "{key}");
            }
        }
        for key in ["a{b", "{}", "job}", "{}{a}", "a}{b"] {
            assert!(!is_near(key), "{key}");
        }
    }

    #[test]
    fn a_call_names_all_locks_before_what_belongs_to_them() {
        let words = |call: Cmd| {
            let text = |word: redis::Arg<&[u8]>| match word {
                redis::Arg::Simple(word) => String::from_utf8_lossy(word).into_owned(),
                redis::Arg::Cursor => String::new(),
                _ => String::new(),
            };
            call.args_iter().map(text).collect::<Vec<_>>().join(" ")
        };
        let keys = ["a".to_owned(), "}".to_owned()];
        let functions = Speech::new(Backend::Functions, "", false);
        assert_eq!(
            words(functions.call("release", &keys, QUEUE)),
            "FCALL rlock1_mrelease 4 a } rlock1_queue:{a} rlock1_places:{a}"
        );
        assert_eq!(
            words(functions.call("info", &keys[..1], &[])),
            "FCALL_RO rlock1_info 1 a"
        );
        let script = Speech::new(Backend::Script, "5a", true);
        assert_eq!(
            words(script.call("renew", &keys[..1], &[])),
            "EVALSHA 5a 1 a CLUSTER rlock1_renew"
        );
        let module = Speech::new(Backend::Module, "", false);
        assert_eq!(
            words(module.call("renew", &keys, ALL)),
            "RLOCK.MRENEW 2 a }"
        );
    }
}

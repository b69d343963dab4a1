//! What the server is told about a command beside its name: where its keys are, for
//! COMMAND GETKEYS, ACL key patterns and the cluster's routing, and its arguments,
//! for COMMAND DOCS. These are read off the line that says how it is called.

use std::ffi::{c_int, CString};
use std::ptr;

use redis_module::raw;

use super::command::{Command, Keys, Use};
use super::ffi::{api, has, Ctx};

/// Tells the server. `false`: it does not know where the keys are.
pub fn describe<C: Command>(ctx: Ctx, command: *mut raw::RedisModuleCommand) -> bool {
    if !has!(RedisModule_SetCommandInfo) {
        return !matches!(C::KEYS, Keys::Counted(_));
    }
    let version = raw::RedisModuleCommandInfoVersion {
        version: 1,
        sizeof_historyentry: size_of::<raw::RedisModuleCommandHistoryEntry>(),
        sizeof_keyspec: size_of::<raw::RedisModuleCommandKeySpec>(),
        sizeof_arg: size_of::<raw::RedisModuleCommandArg>(),
    };
    // An element of zeros is the end of a list.
    let mut specs: Vec<_> = key_spec(C::KEYS).into_iter().collect();
    // SAFETY: a structure of numbers and pointers.
    specs.push(unsafe { std::mem::zeroed() });
    let docs = parse(C::USAGE);
    let subargs: Vec<Vec<raw::RedisModuleCommandArg>> = docs
        .iter()
        .map(|doc| list(doc.oneof.iter().map(|doc| doc.raw(ptr::null_mut()))))
        .collect();
    let mut args = list(docs.iter().zip(&subargs).map(|(doc, subargs)| {
        doc.raw(if doc.oneof.is_empty() {
            ptr::null_mut()
        } else {
            subargs.as_ptr().cast_mut()
        })
    }));
    let info = raw::RedisModuleCommandInfo {
        version: &raw const version,
        summary: match C::SUMMARY {
            summary if summary.is_empty() => ptr::null(),
            summary => summary.as_ptr(),
        },
        complexity: ptr::null(),
        since: ptr::null(),
        history: ptr::null_mut(),
        tips: ptr::null(),
        arity: least(C::KEYS),
        key_specs: match C::KEYS {
            Keys::None => ptr::null_mut(),
            _ => specs.as_mut_ptr(),
        },
        args: args.as_mut_ptr(),
    };
    // The server copies all of it.
    let status = api!(RedisModule_SetCommandInfo(command, &raw const info));
    if status != Some(raw::REDISMODULE_OK as c_int) {
        ctx.warn(&format!(
            "rlock: the server refused what {:?} says of its keys",
            C::NAME
        ));
        return false;
    }
    true
}

/// How many words a command has at least, negative, as the server counts them; 0: the
/// command sees to that itself. The server reads the number of keys without a look at
/// whether it is there, and crashes where it is not.
fn least(keys: Keys) -> c_int {
    match keys {
        Keys::Counted(_) => -2,
        Keys::None | Keys::One(_) => 0,
    }
}

/// Where the keys are; `None`: there are none.
fn key_spec(keys: Keys) -> Option<raw::RedisModuleCommandKeySpec> {
    let (Keys::One(how) | Keys::Counted(how)) = keys else {
        return None;
    };
    let flags = match how {
        Use::Read => raw::REDISMODULE_CMD_KEY_RO | raw::REDISMODULE_CMD_KEY_ACCESS,
        Use::Write => {
            raw::REDISMODULE_CMD_KEY_RW
                | raw::REDISMODULE_CMD_KEY_ACCESS
                | raw::REDISMODULE_CMD_KEY_UPDATE
        }
    };
    // SAFETY: a structure of numbers and pointers.
    let mut spec: raw::RedisModuleCommandKeySpec = unsafe { std::mem::zeroed() };
    spec.flags = flags.into();
    spec.begin_search_type = raw::RedisModuleKeySpecBeginSearchType_REDISMODULE_KSPEC_BS_INDEX;
    spec.bs.index = raw::RedisModuleCommandKeySpec__bindgen_ty_1__bindgen_ty_1 { pos: 1 };
    if let Keys::Counted(_) = keys {
        // numkeys key [key ...]
        spec.find_keys_type = raw::RedisModuleKeySpecFindKeysType_REDISMODULE_KSPEC_FK_KEYNUM;
        spec.fk.keynum = raw::RedisModuleCommandKeySpec__bindgen_ty_2__bindgen_ty_2 {
            keynumidx: 0,
            firstkey: 1,
            keystep: 1,
        };
    } else {
        spec.find_keys_type = raw::RedisModuleKeySpecFindKeysType_REDISMODULE_KSPEC_FK_RANGE;
        spec.fk.range = raw::RedisModuleCommandKeySpec__bindgen_ty_2__bindgen_ty_1 {
            lastkey: 0,
            keystep: 1,
            limit: 0,
        };
    }
    Some(spec)
}

/// One argument, as COMMAND DOCS tells of it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Doc {
    name: CString,
    token: Option<CString>,
    kind: raw::RedisModuleCommandArgType,
    flags: u32,
    oneof: Vec<Doc>,
}

impl Doc {
    fn new(name: &str, kind: raw::RedisModuleCommandArgType) -> Self {
        Self {
            name: CString::new(name.to_ascii_lowercase()).unwrap_or_default(),
            kind,
            ..Self::default()
        }
    }

    /// A keyword that stands alone.
    fn token(word: &str) -> Self {
        Self {
            token: CString::new(word).ok(),
            ..Self::new(
                word,
                raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_PURE_TOKEN,
            )
        }
    }

    fn value(name: &str) -> Self {
        let kind = match name {
            "key" => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_KEY,
            "owner" => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_STRING,
            _ => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_INTEGER,
        };
        Self::new(name, kind)
    }

    /// What stands in brackets: `WORD`, `WORD name`, `WORD|WORD`.
    fn optional(text: &str) -> Self {
        let doc = match (text.split_once(' '), text.contains('|')) {
            (Some((word, name)), _) => Self {
                token: CString::new(word).ok(),
                ..Self::value(name)
            },
            (None, true) => Self {
                oneof: text.split('|').map(Self::token).collect(),
                ..Self::new(
                    "mode",
                    raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_ONEOF,
                )
            },
            (None, false) => Self::token(text),
        };
        Self {
            flags: raw::REDISMODULE_CMD_ARG_OPTIONAL,
            ..doc
        }
    }

    fn raw(&self, subargs: *mut raw::RedisModuleCommandArg) -> raw::RedisModuleCommandArg {
        let is_key = self.kind == raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_KEY;
        raw::RedisModuleCommandArg {
            name: self.name.as_ptr(),
            type_: self.kind,
            key_spec_index: if is_key { 0 } else { -1 },
            token: self.token.as_ref().map_or(ptr::null(), |t| t.as_ptr()),
            summary: ptr::null(),
            since: ptr::null(),
            flags: self.flags as c_int,
            deprecated_since: ptr::null(),
            subargs,
            display_text: ptr::null(),
        }
    }
}

/// A list that ends with an element of zeros.
fn list(args: impl Iterator<Item = raw::RedisModuleCommandArg>) -> Vec<raw::RedisModuleCommandArg> {
    // SAFETY: a structure of numbers and pointers.
    args.chain([unsafe { std::mem::zeroed() }]).collect()
}

/// The arguments of a usage line: `RLOCK.NAME key owner [WORD name] [WORD|WORD]`.
fn parse(usage: &str) -> Vec<Doc> {
    let mut docs: Vec<Doc> = Vec::new();
    let mut rest = usage.split_once(' ').map_or("", |(_, rest)| rest).trim();
    while !rest.is_empty() {
        let (word, then) = match rest.strip_prefix('[').and_then(|r| r.split_once(']')) {
            Some((inside, then)) => {
                match docs.last_mut() {
                    // `key [key ...]`
                    Some(last) if inside.ends_with("...") => {
                        last.flags |= raw::REDISMODULE_CMD_ARG_MULTIPLE;
                    }
                    _ => docs.push(Doc::optional(inside)),
                }
                rest = then.trim_start();
                continue;
            }
            None => rest.split_once(' ').unwrap_or((rest, "")),
        };
        docs.push(Doc::value(word));
        rest = then.trim_start();
    }
    docs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_off_the_usage_line() {
        let docs = parse("RLOCK.X numkeys key [key ...] owner [READ|WRITE] [BLOCK ms] [ONCE]");
        let names: Vec<&str> = docs.iter().map(|d| d.name.to_str().unwrap()).collect();
        assert_eq!(names, ["numkeys", "key", "owner", "mode", "ms", "once"]);
        let flags: Vec<u32> = docs.iter().map(|doc| doc.flags).collect();
        assert_eq!(flags, [0, 2, 0, 1, 1, 1]);
        let tokens: Vec<Option<&str>> = docs
            .iter()
            .map(|doc| doc.token.as_ref().map(|token| token.to_str().unwrap()))
            .collect();
        let none = None;
        assert_eq!(
            tokens,
            [none, none, none, none, Some("BLOCK"), Some("ONCE")]
        );
        let modes: Vec<&Doc> = docs.iter().flat_map(|doc| &doc.oneof).collect();
        assert_eq!(modes, [&Doc::token("READ"), &Doc::token("WRITE")]);
    }

    #[test]
    fn a_command_may_have_no_arguments() {
        assert_eq!(parse("RLOCK.OWNER"), []);
    }
}

//! What the server is told of a command beside its name: where its keys are, and its
//! arguments.

use std::ffi::{c_int, CStr, CString};
use std::ptr;

use redis_module::raw;

use super::api::api;
use super::command::find;
use super::ctx::Ctx;

/// What is told of a command.
pub struct Shown<'a> {
    pub name: &'a CStr,
    pub summary: &'static CStr,
    /// How many words it has at least, negative; 0: the command sees to that itself.
    pub arity: c_int,
    pub keys: Option<KeySpec>,
    pub args: &'a [Doc],
}

/// Where the keys are, and what becomes of them.
#[derive(Clone, Copy)]
pub struct KeySpec {
    pub writes: bool,
    /// The first argument is a number of keys, and they follow; else it is the key.
    pub counted: bool,
}

/// One argument, as COMMAND DOCS tells of it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Doc {
    pub name: CString,
    pub token: Option<CString>,
    pub kind: DocKind,
    pub optional: bool,
    pub multiple: bool,
    pub oneof: Vec<Doc>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DocKind {
    #[default]
    Integer,
    String,
    Key,
    /// A keyword that stands alone.
    Token,
    OneOf,
}

/// Tells the server. `None`: it does not take such things; else whether it took this.
pub fn describe(ctx: Ctx<'_>, shown: &Shown<'_>) -> Option<bool> {
    let call = api!(RedisModule_SetCommandInfo)?;
    let Some(command) = find(ctx, shown.name) else {
        return Some(false);
    };
    let version = raw::RedisModuleCommandInfoVersion {
        version: 1,
        sizeof_historyentry: size_of::<raw::RedisModuleCommandHistoryEntry>(),
        sizeof_keyspec: size_of::<raw::RedisModuleCommandKeySpec>(),
        sizeof_arg: size_of::<raw::RedisModuleCommandArg>(),
    };
    let mut specs: Vec<_> = shown.keys.map(KeySpec::raw).into_iter().collect();
    // An element of zeros is the end of a list.
    // SAFETY: a structure of numbers and pointers.
    specs.push(unsafe { std::mem::zeroed() });
    let subargs: Vec<Vec<raw::RedisModuleCommandArg>> = shown
        .args
        .iter()
        .map(|doc| list(doc.oneof.iter().map(|doc| doc.raw(&[]))))
        .collect();
    let mut args = list(
        shown
            .args
            .iter()
            .zip(&subargs)
            .map(|(doc, sub)| doc.raw(sub)),
    );
    let info = raw::RedisModuleCommandInfo {
        version: &raw const version,
        summary: match shown.summary {
            summary if summary.is_empty() => ptr::null(),
            summary => summary.as_ptr(),
        },
        complexity: ptr::null(),
        since: ptr::null(),
        history: ptr::null_mut(),
        tips: ptr::null(),
        arity: shown.arity,
        key_specs: match shown.keys {
            None => ptr::null_mut(),
            Some(_) => specs.as_mut_ptr(),
        },
        args: args.as_mut_ptr(),
    };
    // SAFETY: the command is registered; all that the structure points to is alive, lists
    // end with an element of zeros, and the server copies it.
    let status = unsafe { call(command, &raw const info) };
    Some(status == raw::REDISMODULE_OK as c_int)
}

impl KeySpec {
    fn raw(self) -> raw::RedisModuleCommandKeySpec {
        let flags = if self.writes {
            raw::REDISMODULE_CMD_KEY_RW
                | raw::REDISMODULE_CMD_KEY_ACCESS
                | raw::REDISMODULE_CMD_KEY_UPDATE
        } else {
            raw::REDISMODULE_CMD_KEY_RO | raw::REDISMODULE_CMD_KEY_ACCESS
        };
        // SAFETY: a structure of numbers and pointers.
        let mut spec: raw::RedisModuleCommandKeySpec = unsafe { std::mem::zeroed() };
        spec.flags = flags.into();
        spec.begin_search_type = raw::RedisModuleKeySpecBeginSearchType_REDISMODULE_KSPEC_BS_INDEX;
        spec.bs.index = raw::RedisModuleCommandKeySpec__bindgen_ty_1__bindgen_ty_1 { pos: 1 };
        if self.counted {
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
        spec
    }
}

impl DocKind {
    fn raw(self) -> raw::RedisModuleCommandArgType {
        match self {
            Self::Integer => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_INTEGER,
            Self::String => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_STRING,
            Self::Key => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_KEY,
            Self::Token => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_PURE_TOKEN,
            Self::OneOf => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_ONEOF,
        }
    }
}

impl Doc {
    /// `subargs`: those of `oneof`, as a list that outlives what is returned.
    fn raw(&self, subargs: &[raw::RedisModuleCommandArg]) -> raw::RedisModuleCommandArg {
        let flag = |is: bool, flag: u32| if is { flag } else { 0 };
        let flags = flag(self.optional, raw::REDISMODULE_CMD_ARG_OPTIONAL)
            | flag(self.multiple, raw::REDISMODULE_CMD_ARG_MULTIPLE);
        raw::RedisModuleCommandArg {
            name: self.name.as_ptr(),
            type_: self.kind.raw(),
            key_spec_index: if self.kind == DocKind::Key { 0 } else { -1 },
            token: self.token.as_ref().map_or(ptr::null(), |t| t.as_ptr()),
            summary: ptr::null(),
            since: ptr::null(),
            flags: flags as c_int,
            deprecated_since: ptr::null(),
            subargs: match self.oneof.is_empty() {
                true => ptr::null_mut(),
                false => subargs.as_ptr().cast_mut(),
            },
            display_text: ptr::null(),
        }
    }
}

/// A list that ends with an element of zeros.
fn list(args: impl Iterator<Item = raw::RedisModuleCommandArg>) -> Vec<raw::RedisModuleCommandArg> {
    // SAFETY: a structure of numbers and pointers.
    args.chain([unsafe { std::mem::zeroed() }]).collect()
}

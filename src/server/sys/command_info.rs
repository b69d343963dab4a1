//! What we tell the server of a command, apart from its name: where its keys are, for COMMAND
//! GETKEYS, ACL key patterns and the cluster's routing, and its arguments, for COMMAND DOCS.

use std::ffi::{c_int, CStr, CString};
use std::ptr;

use redis_module::commands::{get_redis_key_spec, BeginSearch, FindKeys, KeySpec, KeySpecFlags};
use redis_module::raw;

use super::api::{api, OK};
use super::command::{find, KeyArgs, Spec, Use, FIRST_COUNTED};
use super::ctx::Ctx;

/// One argument, as COMMAND DOCS shows it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Doc {
    pub name: CString,
    pub token: Option<CString>,
    pub kind: DocKind,
    pub optional: bool,
    pub multiple: bool,
    /// Of a choice, or of a keyword with several values.
    pub parts: Vec<Doc>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum DocKind {
    #[default]
    Integer = raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_INTEGER,
    String = raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_STRING,
    Key = raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_KEY,
    /// A keyword that stands alone.
    Token = raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_PURE_TOKEN,
    Block = raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_BLOCK,
    OneOf = raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_ONEOF,
}

/// The version in which the commands came; one that comes later says so itself.
const SINCE: &CStr = c"0.9.0";

/// Describes a command to the server. `false`: it refused.
pub fn describe(ctx: Ctx<'_>, spec: &Spec, docs: &[Doc]) -> bool {
    let (Some(call), Some(command)) = (api!(RedisModule_SetCommandInfo), find(ctx, spec.name))
    else {
        return false;
    };
    let version = raw::RedisModuleCommandInfoVersion {
        version: 1,
        sizeof_historyentry: size_of::<raw::RedisModuleCommandHistoryEntry>(),
        sizeof_keyspec: size_of::<raw::RedisModuleCommandKeySpec>(),
        sizeof_arg: size_of::<raw::RedisModuleCommandArg>(),
    };
    let key_specs = key_specs(spec.keys);
    let mut key_specs = (!key_specs.is_empty()).then(|| get_redis_key_spec(key_specs));
    let mut args = ArgLists::of(docs);
    let info = raw::RedisModuleCommandInfo {
        version: &raw const version,
        summary: spec.summary.as_ptr(),
        complexity: spec.complexity.as_ptr(),
        since: SINCE.as_ptr(),
        history: ptr::null_mut(),
        tips: ptr::null(),
        // How many words it has at least, negative; 0: the command sees to that itself.
        // The server reads a number of keys without a look at whether it is there, and
        // crashes where it is not.
        arity: match spec.keys {
            KeyArgs::Counted(_) => -2,
            KeyArgs::None | KeyArgs::One(_) => 0,
        },
        key_specs: key_specs.as_mut().map_or(ptr::null_mut(), Vec::as_mut_ptr),
        args: args.list.as_mut_ptr(),
    };
    // SAFETY: the command is registered; all that the structure points to is alive, lists
    // end with an element of zeros, and the server copies it.
    unsafe { call(command, &raw const info) == OK }
}

/// Where the keys are, and what becomes of them: the first covers all.
fn key_specs(keys: KeyArgs) -> Vec<KeySpec> {
    let flags = |how| match how {
        Use::Read => KeySpecFlags::READ_ONLY | KeySpecFlags::ACCESS,
        Use::Write => KeySpecFlags::READ_WRITE | KeySpecFlags::ACCESS | KeySpecFlags::UPDATE,
    };
    let spec = |flags, first, find| KeySpec::new(None, flags, BeginSearch::new_index(first), find);
    let one = FindKeys::new_range(0, 1, 0);
    match keys {
        KeyArgs::None => vec![],
        KeyArgs::One(how) => vec![spec(flags(how), 1, one)],
        // numkeys key [key ...]. A cluster routes by what is at a fixed place alone.
        KeyArgs::Counted(how) => vec![
            spec(flags(how), 1, FindKeys::new_keys_num(0, 1, 1)),
            spec(flags(how) | KeySpecFlags::NOT_KEY, FIRST_COUNTED, one),
        ],
    }
}

/// Arguments as the server takes them: a list that ends with an element of zeros, and what
/// its elements point to.
struct ArgLists {
    list: Vec<raw::RedisModuleCommandArg>,
    _parts: Vec<ArgLists>,
}

impl ArgLists {
    fn of(docs: &[Doc]) -> Self {
        let parts: Vec<ArgLists> = docs.iter().map(|doc| Self::of(&doc.parts)).collect();
        let all = docs.iter().zip(&parts);
        let all = all.map(|(doc, parts)| doc.raw(&parts.list));
        // SAFETY: a structure of numbers and pointers.
        let end = unsafe { std::mem::zeroed() };
        Self {
            list: all.chain([end]).collect(),
            _parts: parts,
        }
    }
}

impl Doc {
    /// `subargs`: those of `parts`, as a list that outlives what is returned.
    fn raw(&self, subargs: &[raw::RedisModuleCommandArg]) -> raw::RedisModuleCommandArg {
        let flag = |is: bool, flag: u32| if is { flag } else { 0 };
        let flags = flag(self.optional, raw::REDISMODULE_CMD_ARG_OPTIONAL)
            | flag(self.multiple, raw::REDISMODULE_CMD_ARG_MULTIPLE);
        raw::RedisModuleCommandArg {
            name: self.name.as_ptr(),
            type_: self.kind as raw::RedisModuleCommandArgType,
            key_spec_index: if self.kind == DocKind::Key { 0 } else { -1 },
            token: self.token.as_ref().map_or(ptr::null(), |t| t.as_ptr()),
            summary: ptr::null(),
            since: ptr::null(),
            flags: flags as c_int,
            deprecated_since: ptr::null(),
            subargs: match self.parts.is_empty() {
                true => ptr::null_mut(),
                false => subargs.as_ptr().cast_mut(),
            },
            display_text: ptr::null(),
        }
    }
}

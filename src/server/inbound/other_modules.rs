//! Whether another module is loaded that could get a key event, or act on one.

use redis_module::RedisValue;

use crate::server::shell::ServerShell;
use crate::server::sys::{ask, bytes, Ctx};

/// What this module is called.
const NAME: &[u8] = b"rlock";

/// Looks which modules there are, at load and when one comes or goes. Where that is not sure
/// there counts as one.
pub fn look(shell: &ServerShell, ctx: Ctx<'_>) {
    let alone = match ask(ctx, "MODULE", &[b"LIST"]) {
        Some(RedisValue::Array(modules)) => !modules.iter().any(is_another),
        _ => false,
    };
    shell.situation.alone.set(alone);
    let for_whom = if alone { "only" } else { "and other modules" };
    ctx.log(
        c"verbose",
        &format!("rlock: key events are for clients {for_whom}"),
    );
}

/// A module is shown as names of fields and their values.
fn is_another(module: &RedisValue) -> bool {
    let RedisValue::Array(fields) = module else {
        return true;
    };
    let value = |name: &[u8]| {
        let mut pairs = fields.chunks_exact(2);
        let pair = pairs.find(|pair| pair.first().and_then(bytes) == Some(name));
        pair.and_then(|pair| bytes(pair.last()?))
    };
    match (value(b"name"), value(b"path")) {
        (Some(name), Some(path)) => name != NAME && !is_built_in(name, path),
        _ => true,
    }
}

/// Whether the server brought it along: Redis 8 shows `vectorset` without a path, Valkey
/// 9.1 `lua` with its name as its path. They listen to no keys.
fn is_built_in(name: &[u8], path: &[u8]) -> bool {
    path.is_empty() || path == name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(name: &str, path: &str) -> RedisValue {
        let fields = ["name", name, "ver", "1", "path", path];
        RedisValue::Array(
            fields
                .map(|text| RedisValue::BulkString(text.into()))
                .into(),
        )
    }

    #[test]
    fn what_the_server_brought_along_does_not_count() {
        for (name, path) in [
            ("vectorset", ""),
            ("lua", "lua"),
            ("rlock", "/x/librlock.so"),
        ] {
            assert!(!is_another(&module(name, path)), "{name}");
        }
        for (name, path) in [
            ("search", "/x/redisearch.so"),
            ("lua", "/x/lua.so"),
            ("x", "x.so"),
        ] {
            assert!(is_another(&module(name, path)), "{name}");
        }
        assert!(is_another(&RedisValue::Integer(1)));
        assert!(is_another(&RedisValue::Array(Vec::new())));
    }
}

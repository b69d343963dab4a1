//! Where the server loads and unloads the module.

use std::ffi::c_int;

use redis_module::{decode_args, raw, Context, MODULE_CONTEXT};

use super::guard::callback;

const OK: c_int = raw::REDISMODULE_OK as c_int;
const REFUSED: c_int = raw::REDISMODULE_ERR as c_int;

/// # Safety
/// For the server: `argv` is `argc` strings, what stands behind the module's path.
#[no_mangle]
#[allow(non_snake_case)]
unsafe extern "C" fn RedisModule_OnLoad(
    ctx: *mut raw::RedisModuleCtx,
    argv: *mut *mut raw::RedisModuleString,
    argc: c_int,
) -> c_int {
    let version = raw::REDISMODULE_APIVER_1 as c_int;
    // SAFETY: the server passes the context to this callback, and reads the C string. No memory
    // is to be had before this.
    let known = unsafe {
        raw::Export_RedisModule_Init(ctx, crate::NAME.as_ptr(), crate::version::NUMBER, version)
    };
    if known != OK {
        let why =
            "rlock: it is loaded already: give `loadmodule` once, in redis.conf or valkey.conf \
                   itself, and not by an included file or the command line as well";
        // SAFETY: as above.
        unsafe { callback(ctx, "loading", |ctx| ctx.warn(why)) };
        return REFUSED;
    }
    // For what redis-module logs by itself.
    _ = MODULE_CONTEXT.set_context(&Context::new(ctx));
    let args = decode_args(ctx, argv, argc);
    // SAFETY: as above.
    let loaded = unsafe { callback(ctx, "loading", |ctx| crate::load(ctx, &args)) };
    if loaded == Some(true) {
        OK
    } else {
        REFUSED
    }
}

/// # Safety
/// For the server.
#[no_mangle]
#[allow(non_snake_case)]
unsafe extern "C" fn RedisModule_OnUnload(ctx: *mut raw::RedisModuleCtx) -> c_int {
    // SAFETY: the server passes the context to this callback.
    let unloaded = unsafe { callback(ctx, "unloading", crate::unload) };
    if unloaded == Some(true) {
        OK
    } else {
        REFUSED
    }
}

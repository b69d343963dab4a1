//! Replies to clients, in the protocol that each of them speaks.

use std::ffi::{c_long, CString};

use super::ffi::{api, Ctx};
use crate::error;
use crate::lock::Outcome;

/// A reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Responder {
    Integer(i64),
    /// The null bulk (`$-1`; RESP3 `_`).
    Null,
    Text(Vec<u8>),
    Array(Vec<Responder>),
    /// In RESP2 a flat array.
    Map(Vec<(&'static str, Responder)>),
    /// A line that starts with the error's code.
    Error(String),
    /// None now: the client is blocked, and gets its reply later.
    Later,
}

impl Responder {
    /// The reply of a request that waited.
    pub fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Granted(number) | Outcome::Done(number) => Self::Integer(*number),
            Outcome::TimedOut => Self::Null,
            Outcome::Refused(refusal) => Self::Error(error::of(refusal)),
        }
    }

    /// A client's id.
    pub fn id(client: u64) -> Self {
        i64::try_from(client).map_or(Self::Null, Self::Integer)
    }

    pub fn send(&self, ctx: Ctx) {
        match self {
            Self::Integer(value) => {
                api!(RedisModule_ReplyWithLongLong(ctx.0, *value));
            }
            Self::Null => {
                api!(RedisModule_ReplyWithNull(ctx.0));
            }
            Self::Text(bytes) => text(ctx, bytes),
            Self::Array(items) => {
                api!(RedisModule_ReplyWithArray(ctx.0, items.len() as c_long));
                for item in items {
                    item.send(ctx);
                }
            }
            Self::Map(fields) => {
                let len = fields.len() as c_long;
                if api!(RedisModule_ReplyWithMap(ctx.0, len)).is_none() {
                    api!(RedisModule_ReplyWithArray(ctx.0, len.saturating_mul(2)));
                }
                for (name, value) in fields {
                    text(ctx, name.as_bytes());
                    value.send(ctx);
                }
            }
            Self::Error(line) => {
                // The texts hold no NUL: binary names are escaped.
                let line = CString::new(line.as_str()).unwrap_or_default();
                api!(RedisModule_ReplyWithError(ctx.0, line.as_ptr()));
            }
            Self::Later => {}
        }
    }
}

fn text(ctx: Ctx, bytes: &[u8]) {
    api!(RedisModule_ReplyWithStringBuffer(
        ctx.0,
        bytes.as_ptr().cast(),
        bytes.len()
    ));
}

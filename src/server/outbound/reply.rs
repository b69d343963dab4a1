//! Replies to clients, in the protocol that each of them speaks.

use std::ffi::CStr;

use crate::error::{self, Error};
use crate::lock::{ClientId, Outcome};
use crate::server::sys::{reply, Ctx};

/// A reply.
pub enum Responder {
    Integer(i64),
    Null,
    Text(Vec<u8>),
    /// A word that is no data.
    Status(&'static CStr),
    Array(Vec<Responder>),
    Map(Vec<(&'static str, Responder)>),
    Error(Error),
    /// None now: the client is blocked, and gets its reply later.
    Later,
}

impl Responder {
    /// The reply of a request that waited.
    pub fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Granted(token) => Self::Integer(token.0),
            Outcome::Done(number) => Self::Integer(*number),
            Outcome::TimedOut => Self::Null,
            Outcome::Refused(refusal) => Self::Error(error::of(refusal)),
        }
    }

    /// A client's id.
    pub fn id(client: Option<ClientId>) -> Self {
        let id = client.and_then(|id| i64::try_from(id.get()).ok());
        id.map_or(Self::Null, Self::Integer)
    }

    pub fn send(&self, ctx: Ctx<'_>) {
        match self {
            Self::Integer(value) => reply::integer(ctx, *value),
            Self::Null => reply::null(ctx),
            Self::Text(bytes) => reply::text(ctx, bytes),
            Self::Status(word) => reply::status(ctx, word),
            Self::Array(items) => {
                reply::array(ctx, items.len());
                for item in items {
                    item.send(ctx);
                }
            }
            Self::Map(fields) => {
                reply::map(ctx, fields.len());
                for (name, value) in fields {
                    reply::text(ctx, name.as_bytes());
                    value.send(ctx);
                }
            }
            // The texts hold no NUL: binary names are escaped.
            Self::Error(error) => reply::error(ctx, error.line()),
            Self::Later => {}
        }
    }
}

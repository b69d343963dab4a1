use std::ffi::CStr;

use super::args::{self, Owner};
use crate::error::Error;
use crate::lock::{Ask, Verdict, Wait};
use crate::server::{Call, Command, Responder};

/// `RLOCK.ACQUIRE key owner lease [BLOCK ms] [ONCE]`
///
/// Acquires the lock for `lease` ms. Replies with the fencing token, or null when
/// somebody else has the lock (and still has it after `BLOCK` ms; 0 waits for
/// ever). An owner that has it already acquires it once more, at once, and gets
/// the token of the hold under way; with `ONCE`, and for the owner `*`, that is
/// the error HELD. In MULTI, in a script or a function, BLOCK tries once.
pub struct Acquire;

struct Request<'a> {
    key: &'a [u8],
    owner: Owner<'a>,
    lease: i64,
    block: Option<i64>,
    once: bool,
}

impl<'a> Request<'a> {
    fn parse(call: &Call<'a>) -> Result<Self, Error> {
        let mut args = args::of::<Acquire>(call);
        let mut request = Self {
            key: args.next()?,
            owner: args.owner()?,
            lease: args.lease()?,
            block: None,
            once: false,
        };
        while let Some((word, given)) = args.keyword() {
            match word.as_slice() {
                b"BLOCK" if request.block.is_none() => request.block = Some(args.block()?),
                b"ONCE" if !request.once => request.once = true,
                _ => return Err(args.syntax(given)),
            }
        }
        Ok(request)
    }
}

impl Command for Acquire {
    const NAME: &'static CStr = c"rlock.acquire";
    const FLAGS: &'static CStr = c"write deny-oom fast";
    const ACL: &'static CStr = c"write fast blocking";
    const KEYED: bool = true;
    const USAGE: &'static str = "RLOCK.ACQUIRE key owner lease [BLOCK ms] [ONCE]";

    fn run(call: &Call<'_>) -> Result<Responder, Error> {
        let request = Request::parse(call)?;
        let owner = request.owner.id(call)?;
        let block = request.block.filter(|_| call.may_block());
        let ask = Ask {
            db: call.db(),
            name: request.key,
            owner: &owner,
            lease: request.lease,
            once: request.once || request.owner == Owner::Connection,
            wait: block.map(|ms| Wait { ms }),
        };
        let verdict = call.decide(block.is_some(), |core, ks, now, out| {
            core.acquire(ks, now, &ask, out)
        })?;
        Ok(match verdict {
            Verdict::Granted(token) => Responder::Integer(token),
            Verdict::Refused => Responder::Null,
            Verdict::Waits(waiter) => call.block(waiter, request.key),
        })
    }
}

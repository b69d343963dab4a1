//! RLOCK.WAITERS: who waits for a lock.

use super::args;
use super::info::{mode_name, text};
use crate::error::Error;
use crate::lock::{Key, Mode};
use crate::server::{Command, CommandCall, KeyArgs, Responder, Spec, Use};

/// `RLOCK.WAITERS key [COUNT n]`
///
/// Those who wait for a lock, first to last, at most `n`: each a map of `owner`,
/// `mode`, `waited-ms`, `client-id`, and of permits how many `permits` it wants. A key that
/// is no lock is the error WRONGTYPE, unless somebody waits for its name. Changes nothing.
pub struct WaitersCommand;

impl Command for WaitersCommand {
    const SPEC: Spec = Spec {
        name: c"rlock.waiters",
        flags: "readonly",
        acl: "read slow",
        keys: KeyArgs::One(Use::Read),
        summary: c"Lists those who wait for a lock",
        complexity: c"O(N) with N the waiters that are listed, at most COUNT",
        usage: "RLOCK.WAITERS key [COUNT n]",
    };

    fn run(call: &CommandCall<'_>) -> Result<Responder, Error> {
        let mut args = args::of::<Self>(call);
        let name = args.next()?;
        let most = args.options(&["COUNT"])?.count.unwrap_or(usize::MAX);
        let key = Key::new(call.db(), name);
        let waiters = call.inspect(|core, ks, now| {
            let waiters = core.waiters_of(now, &key, most);
            // With nobody waiting it is to be a lock; its holders matter no more than that.
            if waiters.is_empty() {
                core.holders_of(ks, now, &key, 1)?;
            }
            Ok::<_, Error>(waiters)
        })??;
        let describe = |waiter: &crate::lock::Waiting| {
            let mut fields = vec![
                ("owner", Responder::Text(waiter.owner.to_vec())),
                ("mode", text(mode_name(waiter.mode))),
                ("waited-ms", Responder::Integer(waiter.waited_ms)),
                ("client-id", Responder::id(waiter.client)),
            ];
            if waiter.mode == Mode::Permits {
                fields.push(("permits", Responder::Integer(waiter.share.count())));
            }
            Responder::Map(fields)
        };
        Ok(Responder::Array(waiters.iter().map(describe).collect()))
    }
}

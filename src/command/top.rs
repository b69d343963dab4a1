//! RLOCK.TOP: the locks with the most waiters.

use super::args;
use super::info::integer;
use crate::error::Error;
use crate::lock::Contended;
use crate::server::{Command, CommandCall, KeyArgs, Responder, Spec};

/// How many locks are listed unless COUNT says otherwise.
const USUAL: usize = 10;

/// `RLOCK.TOP [COUNT n]`
///
/// The locks that most requests wait for now, of all databases, at most `n` (10):
/// each a map of `db`, `key`, `waiters` and `oldest-wait-ms`. For operators.
pub struct TopCommand;

impl Command for TopCommand {
    const SPEC: Spec = Spec {
        name: c"rlock.top",
        flags: "readonly",
        acl: "admin slow dangerous",
        keys: KeyArgs::None,
        summary: c"Lists the locks that most requests wait for",
        complexity: c"O(N) with N the locks that somebody waits for",
        usage: "RLOCK.TOP [COUNT n]",
    };

    fn run(call: &CommandCall<'_>) -> Result<Responder, Error> {
        let options = args::of::<Self>(call).options(&["COUNT"])?;
        let most = options.count.unwrap_or(USUAL);
        let locks = call.inspect(|core, _, now| core.most_contended(now, most))?;
        let describe = |lock: &Contended| {
            Responder::Map(vec![
                ("db", Responder::Integer(lock.key.db.into())),
                ("key", Responder::Text(lock.key.name.to_vec())),
                ("waiters", integer(i64::try_from(lock.queue.waiters).ok())),
                ("oldest-wait-ms", integer(lock.queue.oldest_wait_ms)),
            ])
        };
        Ok(Responder::Array(locks.iter().map(describe).collect()))
    }
}

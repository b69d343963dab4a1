//! The fencing counter of a lock, `redisson_lock_token:{lock}`: a string that holds
//! the last token. Looked up for every hold that begins, so that it must be cheap
//! where there is none.

use crate::lock::{Counter, Key, Token};
use crate::redisson;
use crate::server::shell::ServerShell;
use crate::server::sys::{Access, Ctx, OpenKey, Selected, Text};

/// Reads it.
pub fn read(shell: &ServerShell, ctx: Ctx<'_>, lock: &Key) -> Counter {
    if shell.server.cluster && !redisson::counter_fits(&lock.name) {
        return Counter::Elsewhere;
    }
    let names = &shell.counter_names;
    let found = names.with(&lock.name, |name| look(ctx, lock.db, name));
    found.unwrap_or(Counter::Unusable)
}

fn look(ctx: Ctx<'_>, db: i32, name: &Text<'_>) -> Counter {
    let _db = Selected::new(ctx, db);
    // For writing: such a look counts as no miss, and deletes one that has run out.
    let Some(open) = OpenKey::new(ctx, name, Access::Write) else {
        return Counter::Absent;
    };
    match open.kind() {
        None => Counter::Absent,
        Some(_) => match open.string(value) {
            Some(Some(token)) => Counter::At(Token(token)),
            _ => Counter::Unusable,
        },
    }
}

fn value(bytes: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(bytes).ok()?;
    // As the server writes it: INCR takes nothing else.
    text.parse().ok().filter(|n: &i64| n.to_string() == text)
}

//! The border between the server's callbacks and our code: no panic crosses it.

use super::count::Count;
use super::ctx::{log, Ctx};

/// Callbacks of ours that are under way, one in the other.
static UNDER_WAY: Count = Count::zero();

/// How many callbacks of ours are under way, one in the other.
pub fn under_way() -> u32 {
    UNDER_WAY.get()
}

/// Runs a callback so that no panic crosses into the server, where it would take
/// everybody's data down. There is none that we know of. `None`: there was one.
pub(super) fn guarded<T>(ctx: Option<Ctx<'_>>, what: &str, run: impl FnOnce() -> T) -> Option<T> {
    UNDER_WAY.more();
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
    UNDER_WAY.less();
    if result.is_err() {
        let text = format!("rlock: a fault in {what}; please report it");
        log(ctx, c"warning", &text);
    }
    result.ok()
}

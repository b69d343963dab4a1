//! How the source of rlock is put together: eight rules, and where they are broken.
//!
//! `cycle`: the modules depend on each other without a cycle. A module depends on
//! what its imports and paths name; a `pub use` is followed to the module that
//! defines the thing, and is no dependency of the module that it stands in. Code
//! for tests is left out.
//!
//! `floor`: a module uses what stands on its own floor ([`FLOORS`]) or below it.
//!
//! `impl`: methods stand with their type, in its module or below it; a trait's with
//! the trait or with a type that it is for or about. A method in the type's own module can be called only
//! by one who has the type from a module that names it, so such calls add nothing to
//! the cycles. A call of a method that stands below the module of its type is
//! counted as a dependency, where its receiver is `self` or no other type has a
//! method with the same name, the common ones of the standard library included.
//!
//! `function`: no function is over 70 lines but plain tables: one expression that
//! branches nowhere, or one `match` with such arms.
//!
//! `unsafe`: only under `server/sys/`; a macro that holds `unsafe` is used only there.
//!
//! `opening`: a file begins with a `//!` line.
//!
//! `length`: no file is over 400 lines.
//!
//! `name`: one name is one type. In `lock/` types may still share a name with each other.
//!
//! Beside the rules there are counts of what is to become less, each with a limit ([`counts()`]).

mod counts;
mod cover;
mod cycles;
mod floors;
mod homes;
mod names;
mod size;
mod tree;
mod types;
mod unsafety;
mod uses;

use std::collections::BTreeMap;
use std::fmt;

pub use counts::{counts, Count, Limit};

/// The floors of `src/` from the lowest on, as docs/architecture.md describes them. A room
/// whose parts stand on several floors has some of them named apart.
#[rustfmt::skip]
pub const FLOORS: &[&[&str]] = &[
    // Values.
    &[
        "lock::types", "lock::key", "lock::found", "lock::write",
        "lock::address",
        "lock::ask", "lock::refusal", "lock::notice", "lock::kind", "lock::keyspace",
        "lock::kind::plain::fields", "lock::kind::read_write::fields", "lock::kind::permits::fields",
        "lock::deadlines",
        "lock::moments", "lock::durations", "lock::fifo",
    ],
    // Owners of state.
    &[
        "lock::table", "lock::queue", "lock::watchdog::hints", "lock::watchdog::index",
        "lock::watchdog::losses",
        "lock::subscribers::state", "lock::in_flight",
        "lock::sessions", "lock::heartbeats", "lock::heard", "lock::work",
        "lock::away", "lock::pools", "lock::tokens", "lock::counters", "lock::reconcile::cause",
        "lock::reconcile::change", "lock::reconcile::judge", "lock::deadlock::inquiry",
        "lock::deadlock::node", "lock::deadlock::steps", "lock::kind::read_write::known",
        "lock::kind::read_write::merge",
    ],
    // The core as one, and questions to it.
    &[
        "lock::core", "lock::agenda", "lock::head", "lock::modes", "lock::leaving", "lock::wanted",
        "lock::grant::kind",
        "lock::deadlock::graph", "lock::deadlock::search", "lock::deadlock::cycles",
        "lock::deadlock::pass", "lock::kind::permits::hoards", "lock::kind::lock_kind",
        "lock::kind::holders", "lock::reconcile::diff",
    ],
    // The decision.
    &["lock::decision"],
    // What happens to a key.
    &[
        "lock::reconcile", "lock::leases", "lock::timeouts", "lock::moved", "lock::watchdog",
        "lock::subscribers", "lock::grant::token", "lock::deadlock", "lock::request::end_holds",
        "lock::closed", "lock::silence", "lock::take_back", "lock::ours", "lock::kind::read_write::expire",
        "lock::kind::read_write::learn_one", "lock::kind::read_write::lease_keys",
        "lock::kind::permits::learn",
    ],
    // Who gets it.
    &[
        "lock::grant", "lock::deadlock::way_out", "lock::deadlock::inquire", "lock::waiting",
        "lock::kind::plain", "lock::kind::read_write", "lock::kind::permits", "lock::kind::all",
    ],
    // The ways in.
    &[
        "lock::decide", "lock::ready", "lock::waiting::wait", "lock::request", "lock::renewals",
        "lock::run", "lock::kind::permits::limit",
    ],
    &["lock"],
    // The shell.
    &["server::sys"],
    &["server::state"],
    &["server::shell"],
    &["server::keys"],
    &["server::outbound"],
    &["server::run"],
    &["server::inbound"],
    &["server"],
    &["command"],
    // Where the server comes in.
    &["server::sys::entry"],
];

/// The text of each file by its path below the folder that has `lib.rs`.
pub type Sources = BTreeMap<String, String>;

/// What is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    Cycle,
    Floor,
    Impl,
    Function,
    Unsafe,
    Opening,
    Length,
    Name,
}

/// A place where a rule is broken.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Breach {
    pub rule: Rule,
    pub file: String,
    pub line: usize,
    pub what: String,
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.what)
    }
}

/// Holds the crate whose files these are against all rules. An error is a file that
/// cannot be read as Rust, or a module without a file.
pub fn check(sources: &Sources, floors: &[&[&str]]) -> Result<Vec<Breach>, String> {
    let tree = tree::Tree::of(sources)?;
    let methods = homes::Methods::of(&tree);
    let uses = uses::all(&tree, &methods);
    let mut breaches = cycles::breaches(&tree, &uses);
    breaches.extend(floors::breaches(&tree, &uses, floors));
    breaches.extend(homes::breaches(&tree));
    breaches.extend(size::breaches(sources)?);
    breaches.extend(unsafety::breaches(sources)?);
    breaches.extend(types::breaches(sources)?);
    breaches.sort();
    Ok(breaches)
}

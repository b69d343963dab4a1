//! Tests of the core, outside a server: cases of the specification one by one, and
//! (in `family`) random runs and a model checker against a model of it.

mod away;
mod crowds;
mod cycles;
mod exchanged;
mod family;
mod fence;
mod foreign;
mod grants;
mod holders;
#[path = "../../../tests/hostile/fuzz/hash.rs"]
mod hostile_hashes;
#[path = "../../../tests/hostile/fuzz/notes.rs"]
mod hostile_notes;
mod inquiry;
mod keys;
mod new_tokens;
mod no_ttl;
mod parts;
mod permits;
mod plain;
mod request;
mod rights;
mod run;
mod sent_away;
mod server;
mod sessions;
mod shared;
mod shell;
mod short;
mod silence;
mod stock;
mod time;
mod tokens;
mod told;
mod turns;
mod vanishing;
mod waiting;
mod wanted;

/// How many random runs: of so many a handful under Miri, which is a thousand times slower.
const fn runs(all: u32) -> u32 {
    if cfg!(miri) {
        3
    } else {
        all
    }
}

//! What each part of the report is about, in plain words.

use crate::options::Measurement;

/// The title of a part, and what it measures.
pub fn of(measurement: Measurement) -> [&'static str; 2] {
    match measurement {
        Measurement::Pairs => [
            "A free lock",
            "Acquire and release of a lock that nobody else wants, by one client, beside the same\n\
             lock as Lua scripts, and beside `SET NX PX` with `DEL`, which neither nests nor looks\n\
             who releases, and with a compare-and-delete where the server has one. How far that is\n\
             from what any module must pay, the least module shows.",
        ],
        Measurement::Contention => [
            "A lock that many want",
            "A crowd contends for one lock, and each lets go of it at once: how often it changes\n\
             hands, how long that takes, and who gets it, blocked and queued, beside the round\n\
             trips of PING, beside the least module, and beside other ways to lock.",
        ],
        Measurement::Permits => ["Permits", "Locks that several may hold at a time."],
        Measurement::Expiry => [
            "Leases that end",
            "How late a lock is free whose holder did nothing until its lease was over.",
        ],
        Measurement::Others => [
            "What others pay: time",
            "What commands that have nothing to do with locks lose on a server with the module.\n\
             Time is noise here; [instructions](#what-others-pay-and-a-pair-instructions) have the\n\
             targets.",
        ],
        Measurement::Deadlock => [
            "Deadlocks",
            "What it costs a request that blocks to look for a cycle.",
        ],
        Measurement::Growth => [
            "How cost grows",
            "The server's time for a pair, a hand-over and the end of a lease, beside more and more\n\
             locks and waiters.",
        ],
        Measurement::Memory => ["Memory", "What a held lock and a waiter take."],
        Measurement::Stalls => [
            "Long pieces of work",
            "How long others wait while the server is at one.",
        ],
        Measurement::Floods => [
            "Floods",
            "How long others wait when something happens to very many locks or waiters.",
        ],
        Measurement::Sessions => [
            "Very many waits of one connection",
            "How long others wait meanwhile.",
        ],
        Measurement::Crowds => [
            "Crowds",
            "n of something on one owner, key, connection or lock, against each thing that can happen\n\
             to it: what a piece of that takes as n grows, and how long others wait meanwhile.",
        ],
        Measurement::List => [
            "A listing of very many locks",
            "How long others wait meanwhile.",
        ],
        Measurement::Recovery => [
            "Recovery scan",
            "How long others wait while a server that has been given very many hashes looks which\n\
             of them are locks.",
        ],
        Measurement::Clients => [
            "Clients",
            "The clients of each language beside what its users have now.",
        ],
        Measurement::Plain => [
            "Clients without the module",
            "The same on a server that loads no module, by the function library.",
        ],
        Measurement::Sticky => [
            "Sticky locks",
            "Locks that stay with a process between their uses, by the clients of each language.",
        ],
        Measurement::Costs => [
            "What others pay, and a pair: instructions",
            "All that the server carries out for one of something, its own share too, by\n\
             valgrind's count: what time cannot tell.",
        ],
    }
}

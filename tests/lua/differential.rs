//! The function library does what the module does: random steps on two servers, and
//! after each the replies, the messages and all keys are equal. RLOCK_DIFF_SEED and
//! RLOCK_DIFF_STEPS say where to begin and how far to go.

use crate::differential::{agree, differ, library, words, Language, Length, Step};
use crate::support::{Ask, Server, Wire};

const MODULE: Language = Language::Module;
const LIBRARY: Language = Language::Library;

/// A few seconds.
const STEPS: usize = 2000;

/// What so many steps meet with, or else they say little.
const MET: [&str; 28] = [
    "RLOCK.ACQUIRE number",
    "RLOCK.ACQUIRE null",
    "RLOCK.ACQUIRE ERR",
    "RLOCK.ACQUIRE WRONGMODE",
    "RLOCK.ACQUIRE WRONGTYPE",
    "RLOCK.ACQUIRE WRONGLIMIT",
    "RLOCK.ACQUIRE HELD",
    "RLOCK.LIMIT 2",
    "RLOCK.LIMIT NOTHELD",
    "RLOCK.LIMIT WRONGMODE",
    "RLOCK.RELEASE 0",
    "RLOCK.RELEASE 1",
    "RLOCK.RELEASE NOTHELD",
    "RLOCK.RENEW 1",
    "RLOCK.RENEW number",
    "RLOCK.RENEW NOTHELD",
    "RLOCK.RENEW HELD",
    "RLOCK.MACQUIRE number",
    "RLOCK.MACQUIRE null",
    "RLOCK.MACQUIRE WRONGMODE",
    "RLOCK.MRELEASE 0",
    "RLOCK.MRELEASE 1",
    "RLOCK.MRENEW 1",
    "RLOCK.MRENEW NOTHELD",
    "RLOCK.FORCE 0",
    "RLOCK.FORCE 1",
    "message 0",
    "message 1",
];

#[test]
fn the_library_does_what_the_module_does() {
    let length = Length::given(1, STEPS);
    let is_whole = length.steps >= STEPS;
    agree([MODULE, LIBRARY], length, if is_whole { &MET } else { &[] });
}

/// What is found between the two is not the comparison's doing.
#[test]
fn two_servers_with_the_module_do_the_same() {
    agree(
        [MODULE; 2],
        Length {
            seed: 1,
            steps: 500,
        },
        &[],
    );
}

fn lock(line: &str) -> Step {
    Step::Lock(words(line))
}

fn aside(line: &str) -> Step {
    Step::Aside(words(line))
}

#[test]
fn every_kind_of_difference_is_seen() {
    let take = || lock("RLOCK.ACQUIRE job o 100000");
    let read = || lock("RLOCK.ACQUIRE job o 100000 READ");
    // The module hears of a hand on permits at once, and puts right what is out of them.
    let some = || lock("RLOCK.ACQUIRE job o 100000 LIMIT 2");
    let pool = |mode: &str| Step::Aside(["HSET", "job", "mode", mode].map(Into::into).into());
    for (steps, told) in [
        (vec![aside("SET other value")], "other"),
        (vec![some(), pool("permits 2 3 1")], "job: hash"),
        (
            vec![some(), aside("HSET job o 1@99999999999999")],
            "job: hash",
        ),
        (vec![take(), aside("HSET job o 2")], "job: hash"),
        (vec![take(), aside("PEXPIRE job 101000")], "job: hash"),
        (vec![take(), aside("PERSIST job")], "for ever"),
        (vec![take(), aside("DEL job")], "nothing"),
        (
            vec![read(), aside("SET {job}:o:rwlock_timeout:1 1 KEEPTTL")],
            "{job}:o",
        ),
        (
            vec![aside("SET redisson_lock_token:{job} 5"), take()],
            "redisson_lock_token",
        ),
        (vec![aside("PUBLISH channel text")], "message text"),
        (
            vec![
                aside("CONFIG SET rlock.redisson-compat no"),
                take(),
                lock("RLOCK.FORCE job"),
            ],
            "message 0",
        ),
        (vec![aside("CONFIG SET maxmemory 1"), take()], "OOM"),
    ] {
        let found = differ([MODULE; 2], &steps).expect("a difference");
        assert!(found.what.contains(told), "{told}: {found:?}");
    }
}

/// The lines of a reply, its numbers aside, in any order: that of a map's fields is
/// Lua's.
fn form(reply: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = reply.lines().collect();
    for line in &mut lines {
        *line = line.strip_prefix(':').map_or(*line, |_| ":");
    }
    lines.sort_unstable();
    lines
}

/// Of nulls and maps there are several on the wire.
#[test]
fn replies_have_the_same_form() {
    let servers = [Server::start(), Server::start_bare(&[])];
    let code = std::fs::read(library()).expect("the library");
    servers[1]
        .raw()
        .ask(&[b"FUNCTION".as_slice(), b"LOAD", &code]);
    for connect in [Wire::connect, Wire::connect_resp3] {
        let [mut module, mut library] = [0, 1].map(|at| connect(&servers[at]));
        for request in [
            "acquire k o 100000",
            "acquire k p 100000",
            "info k",
            "renew k o 100000",
            "release k o",
            "release k o",
            "acquire k o 100000 read",
            "info k",
            "force k",
            "info k",
            "acquire k o 100000 limit 2",
            "acquire k p 100000 limit 2",
            "info k",
            "limit k 3",
            "release k o permits",
            "force k",
        ] {
            let (name, args) = request.split_once(' ').expect("a command");
            let one = module.exact_text(&format!("RLOCK.{name} {args}"));
            let other = library.exact_text(&format!("FCALL rlock1_{name} 1 {args}"));
            assert_eq!(form(&one), form(&other), "{request}");
        }
    }
}

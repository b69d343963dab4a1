//! Histories made by hand: faulty ones that must be found so, by the right check, and
//! sound ones that look much alike and must pass.

use std::collections::BTreeMap;

use rlock_torture::history::{
    Conn, Copies, Crash, End, Entry, Fault, Op, Out, Ping, Record, Rest, Run, Sample, Stall, Stray,
};

use crate::judge;
use crate::past::Past;

const MS: u64 = 1000;
/// A token, and greater ones.
const T: i64 = 1_800_000_000_000_000;

#[derive(Default)]
struct Story(Vec<Record>);

fn ok(number: i64) -> Out {
    Out::Int(number)
}

fn error(text: &str) -> Out {
    Out::Error(text.to_owned())
}

impl Story {
    /// Connections 1 to 9 are open all the time.
    fn new() -> Self {
        (1..10).fold(Self::default(), |story, conn| {
            story.conn(conn, 100_000, End::Open)
        })
    }

    fn conn(mut self, conn: u32, closed: u64, end: End) -> Self {
        let known = |record: &Record| matches!(record, Record::Conn(other) if other.conn == conn);
        self.0.retain(|record| !known(record));
        self.0.push(Record::Conn(Conn {
            conn,
            server: 1,
            db: 0,
            client_id: Some(conn.into()),
            owner: Some(format!("own{conn}")),
            opened: 0,
            closed: closed * MS,
            last: closed * MS,
            end,
        }));
        self
    }

    /// A request with the times of call and reply, ms.
    fn op(mut self, conn: u32, line: &str, (call, reply): (u64, u64), out: Out) -> Self {
        let lost = matches!(out, Out::Lost | Out::Unanswered);
        self.0.push(Record::Op(Op {
            conn,
            args: line.split(' ').map(str::to_owned).collect(),
            call: call * MS,
            sent: call * MS + 1,
            reply: (!lost).then_some(reply * MS),
            out,
            multi: false,
            behind: false,
        }));
        self
    }

    fn fault(mut self, kind: &str, keys: &[&str], (begin, end): (u64, u64), note: &str) -> Self {
        self.0.push(Record::Fault(Fault {
            kind: kind.to_owned(),
            server: 1,
            begin: begin * MS,
            end: end * MS,
            keys: keys.iter().map(ToString::to_string).collect(),
            db: 0,
            ms: 0,
            note: note.to_owned(),
        }));
        self
    }

    fn ping(mut self, call: u64, reply: u64) -> Self {
        self.0.push(Record::Ping(Ping {
            server: 1,
            call: call * MS,
            reply: reply * MS,
        }));
        self
    }

    fn with(mut self, record: Record) -> Self {
        self.0.push(record);
        self
    }

    /// Which checks find something.
    fn found(self) -> Vec<&'static str> {
        let found = judge(&Past::new(self.0));
        let mut checks: Vec<&str> = found.all.iter().map(|finding| finding.check).collect();
        checks.sort_unstable();
        checks.dedup();
        checks
    }
}

fn acquire(owner: &str, words: &str) -> String {
    format!("RLOCK.ACQUIRE k {owner} 60000 {words}")
        .trim_end()
        .to_owned()
}

fn counts(pairs: &[(&str, i64)]) -> BTreeMap<String, i64> {
    pairs
        .iter()
        .map(|(name, count)| ((*name).to_owned(), *count))
        .collect()
}

#[test]
fn two_owners_at_once_are_found() {
    let story = Story::new().op(1, &acquire("a", ""), (10, 11), ok(T)).op(
        2,
        &acquire("b", ""),
        (20, 21),
        ok(T + 1),
    );
    assert_eq!(story.found(), ["exclusion"]);
}

#[test]
fn readers_go_together_and_a_writer_does_not() {
    let read = |story: Story| {
        story.op(1, &acquire("a", "READ"), (10, 11), ok(T)).op(
            2,
            &acquire("b", "READ"),
            (20, 21),
            ok(T + 1),
        )
    };
    assert!(read(Story::new()).found().is_empty());
    let story = read(Story::new()).op(3, &acquire("c", "WRITE"), (30, 31), ok(T + 2));
    assert_eq!(story.found(), ["exclusion"]);
}

#[test]
fn a_hold_ends_when_its_release_is_sent() {
    let story = |call| {
        Story::new()
            .op(1, &acquire("a", ""), (10, 11), ok(T))
            .op(1, "RLOCK.RELEASE k a", (call, 40), ok(0))
            .op(2, &acquire("b", "BLOCK 0"), (5, 35), ok(T + 1))
    };
    assert!(story(30).found().is_empty());
    assert_eq!(story(36).found(), ["exclusion"]);
}

#[test]
fn a_nested_hold_that_is_left_still_excludes() {
    let story = |left| {
        Story::new()
            .op(1, &acquire("a", ""), (10, 11), ok(T))
            .op(1, &acquire("a", ""), (12, 13), ok(T))
            .op(1, "RLOCK.RELEASE k a", (20, 21), ok(left))
            .op(2, &acquire("b", ""), (30, 31), ok(T + 1))
    };
    assert_eq!(story(1).found(), ["exclusion"]);
    assert!(story(0).found().is_empty());
}

#[test]
fn a_lease_is_counted_from_before_it_was_asked_for() {
    let story = |at| {
        Story::new()
            .op(1, "RLOCK.ACQUIRE k a 100", (0, 50), ok(T))
            .op(2, &acquire("b", ""), (at, at + 1), ok(T + 1))
    };
    assert_eq!(story(80).found(), ["exclusion"]);
    assert!(story(97).found().is_empty());
}

#[test]
fn a_renewal_may_shorten_a_lease_and_lengthen_it() {
    let story = |lease: u32| {
        Story::new()
            .op(1, "RLOCK.ACQUIRE k a 300", (0, 1), ok(T))
            .op(1, &format!("RLOCK.RENEW k a {lease}"), (10, 11), ok(1))
            .op(2, &acquire("b", ""), (250, 251), ok(T + 1))
    };
    assert!(story(100).found().is_empty());
    assert_eq!(story(400).found(), ["exclusion"]);
}

#[test]
fn a_watchdog_hold_lasts_as_long_as_its_connection() {
    let story = |closed| {
        Story::new()
            .conn(1, closed, End::Client)
            .op(1, "RLOCK.ACQUIRE k a 2000 WATCHDOG", (0, 1), ok(T))
            .op(2, &acquire("b", ""), (5000, 5001), ok(T + 1))
    };
    assert_eq!(story(8000).found(), ["exclusion"]);
    assert!(story(4999).found().is_empty());
}

#[test]
fn a_watchdog_is_not_relied_on_where_the_server_stood_still() {
    let story = Story::new()
        .op(1, "RLOCK.ACQUIRE k a 2000 WATCHDOG", (0, 1), ok(T))
        .fault("stop", &[], (1000, 4000), "")
        .op(2, &acquire("b", ""), (5000, 5001), ok(T + 1));
    assert!(story.found().is_empty());
}

#[test]
fn what_the_documentation_says_ends_holds() {
    let story = |kind, keys: &[&str]| {
        Story::new()
            .op(1, &acquire("a", ""), (0, 1), ok(T))
            .fault(kind, keys, (10, 12), "")
            .op(2, &acquire("b", ""), (20, 21), ok(T + 1))
    };
    for kind in ["del", "force", "rename"] {
        assert!(story(kind, &["k"]).found().is_empty(), "{kind}");
        assert_eq!(story(kind, &["other"]).found(), ["exclusion"], "{kind}");
    }
    for kind in ["flushall", "swapdb", "demote", "restart-empty"] {
        assert!(story(kind, &[]).found().is_empty(), "{kind}");
    }
    // With an AOF a restart forgets nothing; nor do these.
    for kind in [
        "restart",
        "stop",
        "reload",
        "failover",
        "pause",
        "move-slot",
    ] {
        assert_eq!(story(kind, &[]).found(), ["exclusion"], "{kind}");
    }
}

#[test]
fn a_lost_release_may_have_been_done() {
    let story = Story::new()
        .conn(1, 25, End::Client)
        .op(1, &acquire("a", ""), (0, 1), ok(T))
        .op(1, "RLOCK.RELEASE k a", (20, 0), Out::Lost)
        .op(2, &acquire("b", ""), (22, 23), ok(T + 1));
    assert!(story.found().is_empty());
}

#[test]
fn an_owner_that_holds_is_not_told_otherwise() {
    let story = |end: u64| {
        Story::new()
            .op(1, &format!("RLOCK.ACQUIRE k a {end}"), (0, 1), ok(T))
            .op(1, "RLOCK.RELEASE k a", (500, 501), error("NOTHELD owner"))
    };
    assert_eq!(story(60_000).found(), ["held"]);
    assert!(story(400).found().is_empty());
}

#[test]
fn star_is_another_owner_on_each_connection() {
    let story = Story::new().op(1, &acquire("*", ""), (0, 1), ok(T)).op(
        2,
        &acquire("*", ""),
        (10, 11),
        ok(T + 1),
    );
    assert_eq!(story.found(), ["exclusion"]);
}

/// `a` holds; `b` and then `c` wait; they get these tokens.
fn queue(b: i64, c: i64, seen: bool) -> Story {
    let story = Story::new()
        .op(1, &acquire("a", ""), (0, 1), ok(T))
        .op(1, "RLOCK.RELEASE k a", (100, 101), ok(0))
        .op(2, "RLOCK.ACQUIRE k b 1 BLOCK 0", (10, 110), ok(T + b))
        .op(3, "RLOCK.ACQUIRE k c 1 BLOCK 0", (20, 111), ok(T + c));
    match seen {
        true => story.ping(12, 14),
        false => story.ping(12, 24),
    }
}

#[test]
fn whoever_came_first_is_served_first() {
    assert_eq!(queue(9, 5, true).found(), ["order"]);
    assert!(queue(5, 9, true).found().is_empty());
    // It is not certain that the server had read the first one by then.
    assert!(queue(9, 5, false).found().is_empty());
}

#[test]
fn a_try_does_not_overtake() {
    let story = Story::new()
        .op(1, "RLOCK.ACQUIRE k a 50", (0, 1), ok(T))
        .op(2, "RLOCK.ACQUIRE k b 1 BLOCK 0", (10, 120), ok(T + 9))
        .ping(12, 14)
        .op(3, "RLOCK.ACQUIRE k c 1", (100, 101), ok(T + 5));
    assert_eq!(story.found(), ["order"]);
}

#[test]
fn order_is_not_asked_for_where_others_stand_in_several_queues() {
    let story = queue(9, 5, true).op(4, "RLOCK.MACQUIRE 2 k l m 1", (30, 31), Out::Null);
    assert!(story.found().is_empty());
}

#[test]
fn tokens_rise_and_nested_holds_keep_theirs() {
    let story = |second: i64, nested: i64| {
        Story::new()
            .op(1, &acquire("a", ""), (0, 1), ok(T))
            .op(1, &acquire("a", ""), (2, 3), ok(T + nested))
            .op(2, "RLOCK.ACQUIRE l b 100", (10, 11), ok(T + second))
    };
    assert!(story(1, 0).found().is_empty());
    assert_eq!(story(-1, 0).found(), ["tokens"]);
    assert_eq!(story(0, 0).found(), ["tokens"]);
    assert_eq!(story(9, 5).found(), ["tokens"]);
}

#[test]
fn requests_at_the_same_time_may_get_tokens_in_any_order() {
    let story = Story::new()
        .op(1, "RLOCK.ACQUIRE k a 9", (0, 5), ok(T + 1))
        .op(2, "RLOCK.ACQUIRE l b 9", (1, 4), ok(T));
    assert!(story.found().is_empty());
}

#[test]
fn each_request_is_answered_once_by_what_it_may() {
    let one = |line: &str, out| Story::new().op(1, line, (0, 1), out).found();
    assert_eq!(one("RLOCK.ACQUIRE k a 9", ok(1)), ["answers"]);
    assert_eq!(one("RLOCK.RELEASE k a", ok(T)), ["answers"]);
    assert_eq!(one("RLOCK.RENEW k a 9", ok(0)), ["answers"]);
    assert_eq!(one("ECHO x", Out::Text("y".to_owned())), ["answers"]);
    assert_eq!(
        one("RLOCK.ACQUIRE k a 9", error("ERR rlock: internal")),
        ["answers"]
    );
    assert_eq!(one("RLOCK.ACQUIRE k bad -1", ok(T)), ["answers"]);
    assert_eq!(
        one("RLOCK.ACQUIRE k a 9 BLOCK 0", Out::Unanswered),
        ["answers"]
    );
    assert!(one("RLOCK.ACQUIRE k bad -1", error("ERR the lease")).is_empty());
    assert!(one("ECHO x", Out::Text("x".to_owned())).is_empty());
    let stray = Stray {
        conn: 1,
        at: 5,
        text: "Int(1)".to_owned(),
    };
    assert_eq!(Story::new().with(Record::Stray(stray)).found(), ["answers"]);
}

#[test]
fn a_connection_whose_replies_do_not_fit_tells_nothing_else() {
    let story = Story::new()
        .op(1, &acquire("a", ""), (0, 1), ok(T))
        .op(1, "ECHO x", (2, 3), ok(T))
        .op(1, "RLOCK.RELEASE k a", (4, 5), error("NOTHELD owner"))
        .op(2, &acquire("b", ""), (6, 7), ok(T + 1));
    assert_eq!(story.found(), ["answers"]);
}

#[test]
fn a_wait_ends_when_it_should() {
    let wait = |reply| {
        Story::new().op(1, &acquire("a", ""), (0, 1), ok(T)).op(
            2,
            "RLOCK.ACQUIRE k b 9 BLOCK 500",
            (10, reply),
            Out::Null,
        )
    };
    assert!(wait(510).found().is_empty());
    assert!(wait(1400).found().is_empty());
    assert_eq!(wait(400).found(), ["time-outs"]);
    assert_eq!(wait(1600).found(), ["time-outs"]);
    assert!(wait(400)
        .fault("unblock", &[], (399, 401), "7,2")
        .found()
        .is_empty());
    assert!(wait(1600)
        .fault("stop", &[], (300, 1500), "")
        .found()
        .is_empty());
    let stall = Stall {
        who: "server 1".to_owned(),
        from: 300 * MS,
        to: 1500 * MS,
    };
    assert!(wait(1600).with(Record::Stall(stall)).found().is_empty());
}

/// `a` holds by these words until it ends in some way; `b` waits from 100 ms on and
/// gets it at `at`.
fn left(words: &str, conn: (u64, End), at: u64) -> Story {
    Story::new()
        .conn(1, conn.0, conn.1)
        .op(1, &format!("RLOCK.ACQUIRE k a {words}"), (0, 1), ok(T))
        .op(2, "RLOCK.ACQUIRE k b 9 BLOCK 0", (100, at), ok(T + 1))
}

#[test]
fn a_lease_does_not_outlive_its_deadline() {
    let open = (100_000, End::Open);
    assert_eq!(left("1000", open, 2050).found(), ["idle"]);
    assert!(left("1000", open, 1050).found().is_empty());
    let stopped = left("1000", open, 2050).fault("stop", &[], (900, 2040), "");
    assert!(stopped.found().is_empty());
    let renewed = left("1000", open, 2050).op(1, "RLOCK.RENEW k a 1000", (900, 901), ok(1));
    assert!(renewed.found().is_empty());
    let by_hand = left("1000", open, 2050).fault("pexpire", &["k"], (900, 901), "");
    assert!(by_hand.found().is_empty());
}

#[test]
fn a_watchdog_hold_does_not_outlive_its_connection() {
    let words = "9000 WATCHDOG";
    assert_eq!(left(words, (1000, End::Client), 3000).found(), ["idle"]);
    assert!(left(words, (1000, End::Client), 1010).found().is_empty());
    assert!(left(words, (100_000, End::Open), 3000)
        .op(1, "RLOCK.RELEASE k a", (2990, 2991), ok(0))
        .found()
        .is_empty());
}

#[test]
fn a_release_hands_on() {
    let story =
        |at| left("60000", (100_000, End::Open), at).op(1, "RLOCK.RELEASE k a", (500, 501), ok(0));
    assert_eq!(story(1500).found(), ["idle"]);
    assert!(story(510).found().is_empty());
}

#[test]
fn a_request_that_was_lost_may_hold() {
    let story = Story::new()
        .conn(3, 1600, End::Client)
        .op(1, "RLOCK.ACQUIRE k a 1000", (0, 1), ok(T))
        .op(2, "RLOCK.ACQUIRE k b 9 BLOCK 0", (100, 2500), ok(T + 1))
        .op(3, "RLOCK.ACQUIRE k c 900 BLOCK 0", (50, 0), Out::Lost);
    assert!(story.found().is_empty());
}

#[test]
fn nobody_is_refused_a_lock_that_is_free() {
    let story = |at| {
        Story::new()
            .op(1, "RLOCK.ACQUIRE k a 100", (0, 1), ok(T))
            .op(2, "RLOCK.ACQUIRE k b 100", (at, at + 1), Out::Null)
    };
    assert_eq!(story(900).found(), ["refused"]);
    assert!(story(300).found().is_empty());
}

#[test]
fn locks_that_are_asked_for_together_may_be_kept_idle_but_not_all_of_them() {
    let story = |until: u64| {
        Story::new()
            .op(1, "RLOCK.ACQUIRE k a 100", (0, 1), ok(T))
            .op(2, &format!("RLOCK.ACQUIRE l b {until}"), (0, 1), ok(T + 1))
            .op(3, "RLOCK.MACQUIRE 2 k l c 9 BLOCK 0", (10, 3010), ok(T + 2))
            .op(4, "RLOCK.ACQUIRE k d 9 BLOCK 0", (20, 3020), ok(T + 3))
    };
    assert!(story(3000).found().is_empty());
    assert_eq!(story(1000).found(), ["idle"]);
}

#[test]
fn events_and_counters_grow_alike() {
    let sample = |at, acquired, heard| {
        Record::Sample(Sample {
            server: 1,
            stream: 0,
            at,
            counters: counts(&[("acquired", acquired)]),
            events: counts(&[("acquired", heard)]),
        })
    };
    let story = |heard| Story::new().with(sample(1, 5, 0)).with(sample(2, 9, heard));
    assert!(story(4).found().is_empty());
    assert_eq!(story(3).found(), ["counters"]);
}

#[test]
fn counters_are_what_clients_were_told() {
    let story = |acquired, waiting| {
        Story::new()
            .op(1, "RLOCK.MACQUIRE 2 k l a 100", (0, 1), ok(T))
            .op(2, "RLOCK.ACQUIRE m b 100", (5, 0), Out::Lost)
            .with(Record::Run(Run {
                server: 1,
                from: 0,
                to: None,
            }))
            .with(Record::Rest(Rest {
                server: 1,
                at: 50 * MS,
                counters: counts(&[
                    ("acquired", acquired),
                    ("waiting", waiting),
                    ("watchdog_holds", 0),
                    ("forced", 0),
                ]),
                top: String::new(),
            }))
    };
    assert!(story(2, 0).found().is_empty());
    assert!(story(3, 0).found().is_empty());
    assert_eq!(story(1, 0).found(), ["counters"]);
    assert_eq!(story(4, 0).found(), ["counters"]);
    assert_eq!(story(2, 1).found(), ["counters"]);
}

#[test]
fn copies_are_equal_but_for_what_was_due() {
    let entry = |holds: &str, expires| Entry {
        value: BTreeMap::from([("a".to_owned(), holds.to_owned())]),
        expires,
    };
    let story = |copy: Option<Entry>| {
        Story::new().with(Record::Copies(Copies {
            server: 1,
            what: "replica".to_owned(),
            at: 1,
            due: 1000,
            original: BTreeMap::from([("0 k".to_owned(), entry("1", 5000))]),
            copy: copy
                .map(|copy| ("0 k".to_owned(), copy))
                .into_iter()
                .collect(),
        }))
    };
    assert!(story(Some(entry("1", 5000))).found().is_empty());
    assert_eq!(story(Some(entry("2", 5000))).found(), ["copies"]);
    assert_eq!(story(Some(entry("1", 5001))).found(), ["copies"]);
    assert_eq!(story(Some(entry("1", -1))).found(), ["copies"]);
    assert_eq!(story(None).found(), ["copies"]);
    assert!(story(Some(entry("1", 900))).found().is_empty());
}

#[test]
fn a_crash_is_found() {
    let crash = Crash {
        server: 1,
        at: 5,
        text: "signal 11".to_owned(),
    };
    assert_eq!(Story::new().with(Record::Crash(crash)).found(), ["crashes"]);
}

//! Who holds a lock and wants to know (WANTED) is told that somebody waits.

mod somebody;

use super::shell::{by, key, Request, Shell};
use crate::lock::{
    self, ClientId, Due, Ended, Mode, Note, Notice, Outcome, Reason, Renewal, Slot, Verdict,
    WaiterId,
};

const ONE: u64 = 1001;
const OTHER: u64 = 1002;

fn client(number: u64) -> ClientId {
    ClientId::new(number).unwrap()
}

/// What was told since somebody last asked: `wanted` with the tag, and grants.
fn hints(s: &mut Shell) -> Vec<String> {
    let told = std::mem::take(&mut s.told).into_iter();
    let hint = |notice| match notice {
        Notice::Wanted { address, .. } => Some(format!("wanted {}", text(&address.tag))),
        Notice::Answer {
            to: Some(to),
            outcome: Outcome::Granted(_),
            wanted,
            ..
        } => {
            let word = if wanted { " wanted" } else { "" };
            Some(format!("granted {}{word}", text(&to.tag)))
        }
        _ => None,
    };
    told.filter_map(hint).collect()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[track_caller]
fn are_hinted<const N: usize>(s: &mut Shell, expected: [&str; N]) {
    assert_eq!(hints(s), expected);
}

/// As `a` asks for `k` to hold it for 300 ms and to know at `t`.
fn asks<'a>() -> Request<'a> {
    by("a").lease(300).from(ONE).tag("t").wants_hints()
}

/// It holds it.
fn held() -> Shell {
    let mut s = Shell::new();
    s.get(asks());
    s.told.clear();
    s
}

fn renew(s: &mut Shell, notify: Option<(u64, &str, bool)>, lease: i64) {
    let notify = notify.map(|(number, tag, hints)| {
        let tag = tag.as_bytes();
        s.core.address(client(number), b"channel", tag, hints)
    });
    let renewal = Renewal {
        db: 0,
        owner: b"a",
        mode: Mode::Exclusive,
        lease,
        watch: None,
        notify: notify.as_ref(),
        fence: None,
    };
    s.step(|d| lock::renew(d, b"k", &renewal)).unwrap();
}

fn leave(s: &mut Shell, id: WaiterId) {
    lock::leave(&mut s.core, id);
    s.read_notes();
}

fn wanted_ms(s: &Shell, owner: &str) -> Option<i64> {
    let known = s
        .core
        .hold_of(s.now, &key(0, "k"), owner.as_bytes(), Mode::Exclusive);
    known.wanted_ms
}

#[test]
fn it_is_told_when_somebody_begins_to_wait_and_for_each_who_comes_to_be_first() {
    let mut s = held();
    are_hinted(&mut s, []);
    let b = s.wait(by("b"));
    are_hinted(&mut s, ["wanted t"]);
    let c = s.wait(by("c"));
    s.wait(by("b"));
    are_hinted(&mut s, []);
    leave(&mut s, b);
    are_hinted(&mut s, ["wanted t"]);
    leave(&mut s, c);
    are_hinted(&mut s, ["wanted t"]);
    assert_eq!(s.release("a"), Ok(0));
    are_hinted(&mut s, []);
}

#[test]
fn who_does_not_ask_is_not_told() {
    let mut s = Shell::new();
    s.get(by("a").lease(300).from(ONE).tag("t"));
    s.wait(by("b"));
    s.pass_and_tick(200);
    are_hinted(&mut s, []);
    assert!(s.core.watchdogs.hints.is_empty());
    assert_eq!(Due::Hints.next(&s.core), None);
}

#[test]
fn it_is_told_again_every_third_of_the_lease_as_long_as_somebody_waits() {
    let mut s = Shell::new();
    s.get(asks().watched());
    s.pass_and_tick(1000);
    are_hinted(&mut s, []);
    assert_eq!(wanted_ms(&s, "a"), None);
    let b = s.wait(by("b"));
    are_hinted(&mut s, ["wanted t"]);
    for ms in 1..=5 {
        s.pass_and_tick(99);
        are_hinted(&mut s, []);
        s.pass_and_tick(1);
        are_hinted(&mut s, ["wanted t"]);
        assert_eq!(wanted_ms(&s, "a"), Some(100 * ms));
    }
    leave(&mut s, b);
    s.pass_and_tick(1000);
    are_hinted(&mut s, []);
    assert_eq!(wanted_ms(&s, "a"), None);
}

#[test]
fn the_lease_is_the_one_that_was_asked_for_last() {
    let mut s = held();
    renew(&mut s, None, 3000);
    s.wait(by("b"));
    s.pass_and_tick(999);
    are_hinted(&mut s, ["wanted t"]);
    s.pass_and_tick(1);
    are_hinted(&mut s, ["wanted t"]);
    // Nested it is lengthened, and not shortened.
    s.get(asks().lease(300).tag("u"));
    are_hinted(&mut s, ["wanted u", "wanted t"]);
    s.pass_and_tick(999);
    are_hinted(&mut s, []);
    s.pass_and_tick(1);
    are_hinted(&mut s, ["wanted u", "wanted t"]);
    // By a renewal it is, and told again sooner.
    renew(&mut s, None, 300);
    s.pass_and_tick(100);
    are_hinted(&mut s, ["wanted u", "wanted t"]);
}

#[test]
fn a_grant_says_so_if_somebody_waits_behind_it() {
    for short in [false, true] {
        let mut s = Shell::new();
        s.core.rules.emits_events = !short;
        s.get(by("x"));
        s.wait(asks().queue(0));
        s.release("x").unwrap();
        are_hinted(&mut s, ["granted t"]);
        s.release("a").unwrap();
        s.get(by("x"));
        s.wait(asks().queue(0));
        s.wait(by("b"));
        are_hinted(&mut s, []);
        s.release("x").unwrap();
        are_hinted(&mut s, ["granted t wanted"]);
        assert_eq!(wanted_ms(&s, "a"), Some(0));
        s.tick();
        are_hinted(&mut s, []);
        s.pass_and_tick(100);
        are_hinted(&mut s, ["wanted t"]);
        assert!(!s.core.watchdogs.hints.is_stirred());
    }
}

#[test]
fn a_grant_that_says_so_is_told_to_the_other_tags_of_its_owner() {
    let mut s = Shell::new();
    s.get(asks().read());
    s.get(by("x").read());
    s.wait(asks().write().tag("u").queue(0));
    s.wait(by("c").read());
    s.told.clear();
    s.release_as(&key(0, "k"), "x", Mode::Read, false).unwrap();
    are_hinted(&mut s, ["granted u wanted", "wanted t"]);
}

#[test]
fn what_is_granted_by_a_reply_is_told_by_a_message_if_somebody_waits_already() {
    let mut s = Shell::new();
    s.get(by("a"));
    s.wait(by("b"));
    s.get(asks());
    are_hinted(&mut s, ["wanted t"]);
    let mut s = Shell::new();
    s.get(by("x"));
    s.wait(asks().block(0));
    s.wait(by("b"));
    s.release("x").unwrap();
    are_hinted(&mut s, ["wanted t"]);
}

#[test]
fn a_renewal_and_once_ask_for_it_and_without_the_word_it_is_told_no_more() {
    let mut s = Shell::new();
    s.get(by("a").from(ONE).tag("t"));
    s.wait(by("b"));
    renew(&mut s, Some((ONE, "t", true)), 300);
    are_hinted(&mut s, ["wanted t"]);
    renew(&mut s, Some((OTHER, "u", true)), 300);
    are_hinted(&mut s, ["wanted u"]);
    renew(&mut s, None, 300);
    s.pass_and_tick(100);
    are_hinted(&mut s, ["wanted u"]);
    s.get(asks().once());
    are_hinted(&mut s, ["wanted t"]);
    renew(&mut s, Some((ONE, "t", false)), 300);
    s.pass_and_tick(100);
    are_hinted(&mut s, []);
    assert!(s.core.watchdogs.hints.is_empty());
}

#[test]
fn who_only_tries_or_has_a_place_that_is_kept_is_nobody() {
    let mut s = held();
    s.core.rules.keep_place = Some(60_000);
    assert_eq!(s.acquire(by("b")), Ok(Verdict::Refused));
    are_hinted(&mut s, []);
    s.wait(by("c").once().from(OTHER));
    are_hinted(&mut s, ["wanted t"]);
    s.notes.push(Note::Closed(client(OTHER)));
    s.read_notes();
    s.pass_and_tick(200);
    are_hinted(&mut s, []);
    assert_eq!(wanted_ms(&s, "a"), None);
    // It is back.
    s.wait(by("c").once());
    are_hinted(&mut s, ["wanted t"]);
}

#[test]
fn nested_holds_are_told_each_by_its_tag_and_of_one_address_once() {
    let mut s = held();
    s.get(asks().from(OTHER).tag("u"));
    s.get(by("a").from(ONE).tag("v"));
    s.wait(by("b"));
    are_hinted(&mut s, ["wanted u", "wanted t"]);
    s.pass_and_tick(100);
    are_hinted(&mut s, ["wanted u", "wanted t"]);
}

#[test]
fn a_hold_that_has_ended_is_not_wanted() {
    type End = fn(&mut Shell);
    let ends: [End; 4] = [
        |s| assert_eq!(s.release("a"), Ok(0)),
        |s| s.pass_and_tick(301),
        |s| assert!(s.force().unwrap()),
        |s| {
            s.notes.push(Note::Closed(client(ONE)));
            s.read_notes();
        },
    ];
    for end in ends {
        let mut s = Shell::new();
        s.get(asks());
        s.wait(by("b").lease(10_000));
        s.told.clear();
        end(&mut s);
        s.pass_and_tick(1000);
        are_hinted(&mut s, []);
        assert!(s.core.watchdogs.hints.is_empty());
        s.core.check();
    }
}

#[test]
fn a_connection_that_cannot_be_told_is_to_be_closed_if_it_watches() {
    for watches in [false, true] {
        let mut s = Shell::new();
        s.get(if watches { asks().watched() } else { asks() });
        s.wait(by("b"));
        let closing = |notice: &Notice| match notice {
            Notice::Wanted { closes, .. } => Some(*closes),
            _ => None,
        };
        let told: Vec<bool> = s.told.iter().filter_map(closing).collect();
        assert_eq!(told, [watches]);
    }
}

#[test]
fn a_demotion_and_a_slot_that_moves_away_end_it() {
    let mut s = held();
    s.wait(by("b"));
    s.told.clear();
    s.demoted();
    s.pass_and_tick(100);
    are_hinted(&mut s, []);
    assert!(s.core.watchdogs.hints.is_empty());
    let mut s = held();
    s.wait(by("b"));
    s.ks.slot = Slot::Others;
    s.told.clear();
    s.pass_and_tick(100);
    let is_moved =
        |notice: &Notice| matches!(notice, Notice::Lost(loss) if loss.reason == Reason::Moved);
    assert!(s.told.iter().any(is_moved));
    are_hinted(&mut s, []);
    assert!(s.core.watchdogs.hints.is_empty());
}

#[test]
fn of_very_many_readers_some_are_told_at_once_and_all_in_the_end() {
    let mut s = Shell::new();
    let names: Vec<String> = (0..2000).map(|n| format!("r{n:04}")).collect();
    for (number, name) in (10_000..).zip(&names) {
        let reads = by(name).read().lease(100_000);
        s.get(reads.from(number).tag(name).wants_hints());
    }
    s.told.clear();
    s.wait(by("w").write());
    let mut told = hints(&mut s);
    assert_eq!(told.len(), 512);
    for _ in 0..10 {
        s.tick();
        told.extend(hints(&mut s));
    }
    let all: Vec<String> = names.iter().map(|name| format!("wanted {name}")).collect();
    assert_eq!(told, all);
    // One leaves: those who know are not looked at again.
    let ended = Ended {
        db: 0,
        owner: b"r0000",
        client: None,
        mode: Mode::Read,
        count: Some(1),
        only: None,
    };
    s.asks(|with| lock::release(with, b"k", &ended)).unwrap();
    are_hinted(&mut s, []);
    assert!(!s.core.watchdogs.hints.is_stirred());
}

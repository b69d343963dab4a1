//! Who wants to know that somebody waits.

use super::*;

const HOLDS: &str = "RLOCK.ACQUIRE k a 3000 WATCHDOG NOTIFY c t WANTED";
const WAITS: &str = "RLOCK.ACQUIRE k b 3000 BLOCK 8000";

/// `a` holds `k` from 1000 on, and `b` waits from 1500 to 9500.
fn waits() -> Story {
    Story::new()
        .op(1, HOLDS, (1000, 1001), ok(T))
        .op(2, WAITS, (1500, 9500), Out::Null)
}

fn told(story: Story, times: impl IntoIterator<Item = u64>) -> Story {
    let mut times = times.into_iter();
    times
        .try_fold(story, |story, at| Some(story.told(1, at, "wanted t")))
        .unwrap_or_default()
}

#[test]
fn who_holds_is_told_of_who_waits_every_third_of_its_lease() {
    assert_eq!(told(waits(), (1501..9500).step_by(1000)).found(), [""; 0]);
    assert_eq!(waits().found(), ["wanted"]);
    assert_eq!(told(waits(), [1501]).found(), ["wanted"]);
    assert_eq!(told(waits(), [4000, 4500]).found(), ["wanted"]);
    // It may be told of another one who waited before.
    let before = waits().op(
        3,
        "RLOCK.ACQUIRE k c 3000 BLOCK 300",
        (1100, 1400),
        Out::Null,
    );
    let times = [1101].into_iter().chain((2101..9500).step_by(1000));
    assert_eq!(told(before, times).found(), [""; 0]);
}

#[test]
fn of_nobody_it_is_not_told() {
    let alone = || Story::new().op(1, HOLDS, (1000, 1001), ok(T));
    assert_eq!(told(alone(), [3000]).found(), ["messages"]);
    let tries = alone().op(2, "RLOCK.ACQUIRE k b 3000", (2900, 2901), Out::Null);
    assert_eq!(told(tries, [3000]).found(), ["messages"]);
    let left = alone().op(
        2,
        "RLOCK.ACQUIRE k b 3000 BLOCK 300",
        (1500, 1800),
        Out::Null,
    );
    assert_eq!(told(left, [1501, 3000]).found(), ["messages"]);
}

#[test]
fn who_did_not_ask_is_not_told() {
    let silent = |words: &str| {
        Story::new()
            .op(
                1,
                &format!("RLOCK.ACQUIRE k a 3000 WATCHDOG NOTIFY c t{words}"),
                (1000, 1001),
                ok(T),
            )
            .op(2, WAITS, (1500, 9500), Out::Null)
    };
    assert_eq!(silent("").found(), [""; 0]);
    assert_eq!(told(silent(""), [1501]).found(), ["messages"]);
    let later = silent("").op(
        1,
        "RLOCK.RENEW k a 3000 NOTIFY c t WANTED",
        (1600, 1601),
        ok(1),
    );
    assert_eq!(told(later, [1602]).found(), [""; 0]);
}

#[test]
fn a_grant_says_it_too() {
    let queued = Out::Text("QUEUED".to_owned());
    let granted = |text: &str| {
        Story::new()
            .op(3, "RLOCK.ACQUIRE k c 3000", (0, 1), ok(T - 1))
            .op(
                1,
                "RLOCK.ACQUIRE k a 3000 QUEUE 0 WATCHDOG NOTIFY c t WANTED",
                (10, 11),
                queued.clone(),
            )
            .op(
                2,
                "RLOCK.ACQUIRE k b 3000 BLOCK 3880",
                (20, 3900),
                Out::Null,
            )
            .op(3, "RLOCK.RELEASE k c", (1000, 1001), ok(0))
            .told(1, 1001, &format!("granted t {T}{text}"))
    };
    assert_eq!(told(granted(" wanted"), [2001, 3001]).found(), [""; 0]);
    assert_eq!(granted("").found(), ["wanted"]);
}

#[test]
fn where_nobody_can_be_sure_nothing_is_found() {
    let is_found = |story: Story| story.found().contains(&"wanted");
    assert!(!is_found(waits().conn(1, 1600, End::Client)));
    let faults = [("stop-client", 9000), ("pause", 9000), ("swapdb", 1401)];
    for (kind, end) in faults {
        assert!(!is_found(waits().fault(kind, &[], (1400, end), "0")));
    }
    assert!(!is_found(waits().fault("rename", &["k"], (1400, 1401), "")));
    assert!(is_found(waits().fault("rename", &["l"], (1400, 1401), "")));
    let many = "RLOCK.MACQUIRE 2 k l c 3000 BLOCK 8000";
    assert!(!is_found(waits().op(3, many, (1200, 9200), Out::Null)));
    // The place of one that has gone keeps nobody from being the first.
    let queues = "RLOCK.ACQUIRE k c 3000 QUEUE 0 NOTIFY d u ONCE";
    let queued = Out::Text("QUEUED".to_owned());
    let gone = waits().op(3, queues, (1100, 1101), queued);
    assert!(is_found(gone.conn(3, 1300, End::Client)));
}

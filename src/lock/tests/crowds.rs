//! Where very many wait or hold, a request costs no more than what it asks for: eight
//! times as many cost about eight times as much, and sixty-four times if the cost grows
//! with the square.

use std::time::{Duration, Instant};

use super::shell::{by, key, Shell};

const FEW: usize = 1_000;
const MANY: usize = 8 * FEW;

/// Asserts that the cost grows as the number does. The least of some runs counts: a
/// machine that is busy with something else makes single ones longer.
fn grows_no_faster(run: impl Fn(usize) -> Duration) {
    let least = |count| (0..3).map(|_| run(count)).min().unwrap();
    let (few, many) = (least(FEW), least(MANY));
    assert!(many < few * 24, "{few:?} for {FEW}, {many:?} for {MANY}");
}

fn names(count: usize) -> Vec<String> {
    (0..=count).map(|number| format!("k{number}")).collect()
}

/// Somebody else holds all of them.
fn held(names: &[String]) -> Shell {
    let mut s = Shell::new();
    for name in names {
        s.get(by("other").on(name));
    }
    s
}

#[test]
fn of_an_owner_with_many_requests_one_is_granted_at_once() {
    grows_no_faster(|count| {
        let names = names(count);
        let mut s = held(&names);
        let began = Instant::now();
        for name in &names {
            s.wait(by("process").on(name));
        }
        let middle = &names[count / 2];
        s.wait(by("next").on(middle));
        s.told.clear();
        s.release_on(&key(0, middle), "other", false).unwrap();
        assert_eq!(s.answers().len(), 1);
        began.elapsed()
    });
}

#[test]
fn the_many_requests_of_an_owner_leave_at_once() {
    grows_no_faster(|count| {
        let names = names(count);
        let mut s = held(&names);
        let began = Instant::now();
        let pairs = names.windows(2).map(|pair| pair.join(" "));
        let ids: Vec<_> = pairs.map(|pair| s.wait(by("process").on(&pair))).collect();
        for id in ids {
            s.core.leave(id);
        }
        s.tick();
        began.elapsed()
    });
}

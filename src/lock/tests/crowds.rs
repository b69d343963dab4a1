//! Where very many wait or hold, a request costs no more than what it asks for. The
//! bound of each test is far from what it takes, and farther from what it took when
//! the cost grew with the square.

use std::time::{Duration, Instant};

use super::shell::{by, key, Shell};

const BOUND: Duration = Duration::from_secs(20);

#[test]
fn of_an_owner_with_many_requests_one_is_granted_at_once() {
    const MANY: usize = 20_000;
    let names: Vec<String> = (0..MANY).map(|number| format!("k{number}")).collect();
    let mut s = Shell::new();
    for name in &names {
        s.get(by("other").on(name));
    }
    let began = Instant::now();
    for name in &names {
        s.wait(by("process").on(name));
    }
    s.wait(by("next").on(&names[MANY / 2]));
    s.told.clear();
    s.release_on(&key(0, &names[MANY / 2]), "other", false)
        .unwrap();
    assert_eq!(s.answers().len(), 1);
    let took = began.elapsed();
    assert!(took < BOUND, "{took:?}");
}

#[test]
fn the_many_requests_of_an_owner_leave_at_once() {
    const MANY: usize = 40_000;
    let names: Vec<String> = (0..=MANY).map(|number| format!("k{number}")).collect();
    let mut s = Shell::new();
    for name in &names {
        s.get(by("other").on(name));
    }
    let began = Instant::now();
    let pairs = names.windows(2).map(|pair| pair.join(" "));
    let ids: Vec<_> = pairs.map(|pair| s.wait(by("process").on(&pair))).collect();
    for id in ids {
        s.core.leave(id);
    }
    s.tick();
    let took = began.elapsed();
    assert!(took < BOUND, "{took:?}");
}

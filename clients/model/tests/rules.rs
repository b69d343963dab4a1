//! All rules: no promise is broken. Each rule away: a promise is broken, or the README says why
//! not.

use std::sync::Mutex;

use rlock_quorum_model::rules::Goal;
use rlock_quorum_model::runs::{self, Expect, Run};
use rlock_quorum_model::walk::walk;

/// More states than this fit in no small machine.
const MOST: usize = 40_000_000;

fn check(run: &Run) {
    let seen = walk(&run.world, MOST);
    let name = run.name;
    let found = seen
        .broken
        .as_ref()
        .map(|broken| Expect::Broken(broken.promise));
    let way = seen
        .broken
        .map(|broken| broken.way.join("\n"))
        .unwrap_or_default();
    assert_eq!(found.unwrap_or(Expect::Kept), run.expect, "{name}\n{way}");
    println!("{name}: {} states, {:?}", seen.states, run.expect);
    if run.expect == Expect::Kept {
        assert!(seen.whole, "{name}: not all states were walked");
        assert!(
            seen.goals.contains(&Goal::Held) && seen.goals.contains(&Goal::Second),
            "{name}"
        );
        let rejoins = seen.goals.contains(&Goal::Rejoined);
        assert!(rejoins || !run.world.is_timed(), "{name}");
    }
}

fn check_all(runs: Vec<Run>) {
    let left = Mutex::new(runs);
    let work = || {
        loop {
            let Some(run) = left.lock().unwrap().pop() else {
                return;
            };
            check(&run);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
}

#[test]
fn with_all_rules_the_promises_are_kept() {
    check_all(runs::kept_short());
}

#[test]
fn without_a_rule_a_promise_is_broken() {
    check_all(runs::without());
}

#[test]
fn without_these_none_is_broken() {
    check_all(runs::not_needed());
}

#[test]
#[ignore = "takes minutes"]
fn with_all_rules_in_greater_worlds() {
    for run in runs::kept_long() {
        check(&run);
    }
}

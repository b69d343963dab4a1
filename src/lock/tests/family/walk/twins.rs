//! Whether states that are taken for the same are: whatever is done in either, what
//! comes of it is the same too. A walk goes on from one of them only.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::page::fingerprint;
use super::step;
use super::universe::Universe;
use crate::lock::tests::family::random::Run;
use crate::lock::Rules;

/// Goes through the nearest states of a walk, and looks at one of `among` of those that
/// were there before by another way.
pub fn check(universe: &Universe, rules: Rules, most: usize, among: u64) -> usize {
    let labels = universe.labels();
    let print = |run: &Run| fingerprint(&run.world, &run.promises, &labels);
    let next = |run: &Run| -> Vec<(u64, Run)> {
        let actions = 0..universe.actions.len();
        let next = actions.filter_map(|number| step(universe, run, number));
        next.map(|run| (print(&run), run)).collect()
    };
    let start = Run::start(rules, &universe.places);
    let mut known = BTreeMap::from([(print(&start), None)]);
    let mut states = VecDeque::from([start]);
    let (mut twins, mut checked) = (Vec::new(), 0);
    while let Some(run) = states.pop_front() {
        let all = next(&run);
        let prints: BTreeSet<u64> = all.iter().map(|(print, _)| *print).collect();
        known.insert(print(&run), Some(prints));
        for (print, run) in all {
            if known.contains_key(&print) {
                checked += 1;
                if checked % among == 0 {
                    twins.push((print, run));
                }
            } else if known.len() < most {
                known.insert(print, None);
                states.push_back(run);
            }
        }
    }
    for (print, run) in &twins {
        let prints: BTreeSet<u64> = next(run).iter().map(|(print, _)| *print).collect();
        let other = known[print].as_ref();
        assert_eq!(
            other,
            Some(&prints),
            "{}: {:?}",
            universe.name,
            run.world.model.queue
        );
    }
    println!("{}: {} twins are the same", universe.name, twins.len());
    twins.len()
}

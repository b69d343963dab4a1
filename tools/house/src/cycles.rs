//! The rule that modules do not depend on each other in a cycle.

use std::collections::{BTreeMap, VecDeque};

use crate::tree::{ModuleId, Tree};
use crate::uses::Uses;
use crate::{Breach, Rule};

/// One for each module that depends on itself through others, with the shortest way.
pub fn breaches(tree: &Tree, uses: &Uses) -> Vec<Breach> {
    let modules = 0..tree.modules.len();
    let cycles = modules.filter_map(|module| shortest(uses, module));
    let describe = |cycle: Vec<ModuleId>| {
        let (start, next) = (cycle[0], cycle[1]);
        let names: Vec<&str> = cycle
            .iter()
            .map(|&module| tree.modules[module].path.as_str())
            .collect();
        Breach {
            rule: Rule::Cycle,
            file: tree.modules[start].file.clone(),
            line: uses[start][&next],
            what: format!("a cycle of modules: {}", names.join(" -> ")),
        }
    };
    cycles.map(describe).collect()
}

/// The shortest way from a module back to itself: it, the others, and it again.
fn shortest(uses: &Uses, start: ModuleId) -> Option<Vec<ModuleId>> {
    let mut reached_from: BTreeMap<ModuleId, ModuleId> = BTreeMap::new();
    let mut open = VecDeque::from([start]);
    while let Some(module) = open.pop_front() {
        for &next in uses[module].keys() {
            if next == start {
                let back = |at: &ModuleId| reached_from.get(at).copied();
                let mut cycle: Vec<ModuleId> = std::iter::successors(Some(module), back).collect();
                cycle.reverse();
                cycle.push(start);
                return Some(cycle);
            }
            reached_from.entry(next).or_insert_with(|| {
                open.push_back(next);
                module
            });
        }
    }
    None
}

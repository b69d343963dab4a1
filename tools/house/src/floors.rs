//! The rule that a floor uses only itself and the floors below it.

use crate::tree::{ModuleId, Tree};
use crate::uses::Uses;
use crate::{Breach, Rule};

/// One for each use of a module that stands on a floor above. `floors`: from the lowest
/// on, modules with all that is in them; the longest path that fits a module counts.
pub fn breaches(tree: &Tree, uses: &Uses, floors: &[&[&str]]) -> Vec<Breach> {
    let path = |module: ModuleId| tree.modules[module].path.as_str();
    let floor = |module| floor_of(path(module), floors);
    let mut breaches = Vec::new();
    for (module, used) in uses.iter().enumerate() {
        for (&used, &line) in used {
            let (Some(own), Some(its)) = (floor(module), floor(used)) else {
                continue;
            };
            if its > own {
                breaches.push(Breach {
                    rule: Rule::Floor,
                    file: tree.modules[module].file.clone(),
                    line,
                    what: format!("{} uses {}, a floor above", path(module), path(used)),
                });
            }
        }
    }
    breaches
}

fn floor_of(path: &str, floors: &[&[&str]]) -> Option<usize> {
    let is_in = |name: &str| {
        let rest = path.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    };
    let all = floors.iter().enumerate();
    let fit = all.flat_map(|(floor, names)| names.iter().map(move |name| (floor, name)));
    let fit = fit.filter(|(_, name)| is_in(name));
    fit.max_by_key(|(_, name)| name.len())
        .map(|(floor, _)| floor)
}

//! What was held at once that may not be.

use std::collections::HashMap;

use super::load::LIMIT;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Alone,
    Read,
    Permit,
}

#[derive(Clone, Debug)]
pub struct Held {
    pub key: String,
    pub owner: String,
    pub mode: Mode,
    pub from: u64,
    pub to: u64,
}

/// One line for each moment at which too many held a lock.
pub fn doubles(held: &[Held]) -> Vec<String> {
    let mut keys: HashMap<&str, Vec<&Held>> = HashMap::new();
    for one in held.iter().filter(|one| one.to > one.from) {
        keys.entry(&one.key).or_default().push(one);
    }
    let mut found = Vec::new();
    for held in keys.values_mut() {
        held.sort_by_key(|one| one.from);
        let mut open: Vec<&Held> = Vec::new();
        for one in held.iter() {
            open.retain(|other| other.to > one.from);
            let same = open.iter().filter(|other| other.mode == one.mode).count();
            let bad = match one.mode {
                Mode::Read => open.len() > same,
                Mode::Permit => same as u64 + 1 > LIMIT,
                Mode::Alone => !open.is_empty(),
            };
            if bad {
                let owners: Vec<&str> = open.iter().map(|other| other.owner.as_str()).collect();
                found.push(format!(
                    "{}: {} from {} beside {owners:?}",
                    one.key, one.owner, one.from
                ));
            }
            open.push(one);
        }
    }
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(all: &[(Mode, u64, u64)]) -> usize {
        let held = |(at, (mode, from, to)): (usize, &(Mode, u64, u64))| Held {
            key: "k".to_owned(),
            owner: at.to_string(),
            mode: *mode,
            from: *from,
            to: *to,
        };
        let held: Vec<Held> = all.iter().enumerate().map(held).collect();
        doubles(&held).len()
    }

    #[test]
    fn each_mode_has_its_own_rule() {
        use Mode::{Alone, Permit, Read};
        assert_eq!(found(&[(Alone, 1, 5), (Alone, 5, 9)]), 0);
        assert_eq!(found(&[(Alone, 1, 6), (Alone, 5, 9)]), 1);
        assert_eq!(found(&[(Read, 1, 6), (Read, 5, 9)]), 0);
        assert_eq!(found(&[(Alone, 1, 6), (Read, 5, 9)]), 1);
        assert_eq!(found(&[(Permit, 1, 6), (Permit, 5, 9)]), 0);
        assert_eq!(found(&[(Permit, 1, 6), (Permit, 5, 9), (Permit, 5, 9)]), 1);
    }
}

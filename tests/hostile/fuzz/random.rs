//! Kept inputs, and what becomes of them by chance.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// So long it goes on, and no longer than so many inputs.
const LONGEST: Duration = Duration::from_millis(1500);
const MOST: u32 = 200_000;
const LENGTH: usize = 300;

pub fn run(name: &str, property: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile/fuzz/corpus");
    let files = fs::read_dir(folder.join(name)).expect("the kept inputs");
    let mut paths: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
    paths.sort();
    let kept: Vec<Vec<u8>> = paths
        .iter()
        .map(|path| fs::read(path).expect("it"))
        .collect();
    assert!(!kept.is_empty(), "{name}: nothing is kept");
    kept.iter().for_each(|input| property(input));
    let seed = std::env::var("SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let mut dice = Dice(seed.unwrap_or(8));
    let end = Instant::now() + LONGEST;
    for _ in 0..MOST {
        if Instant::now() > end {
            break;
        }
        let input = changed(&mut dice, &kept);
        let tried = std::panic::catch_unwind(|| property(&input));
        if let Err(what) = tried {
            println!("{name}, by the input {input:?}");
            std::panic::resume_unwind(what);
        }
    }
}

fn changed(dice: &mut Dice, kept: &[Vec<u8>]) -> Vec<u8> {
    let mut input = kept[dice.below(kept.len())].clone();
    for _ in 0..=dice.below(8) {
        let at = dice.below(input.len() + 1);
        match dice.below(5) {
            0 => input.insert(at, dice.byte()),
            1 => input.truncate(at),
            2 => {
                let other = &kept[dice.below(kept.len())];
                let from = dice.below(other.len() + 1);
                input.extend(&other[from..]);
            }
            _ if at < input.len() => input[at] = dice.byte(),
            _ => input.extend((0..dice.below(40)).map(|_| dice.byte())),
        }
    }
    input.truncate(LENGTH);
    input
}

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, most: usize) -> usize {
        (self.next() % most as u64) as usize
    }

    /// Small ones more often: they are choices.
    fn byte(&mut self) -> u8 {
        let byte = self.next() as u8;
        if self.below(2) == 0 {
            byte % 40
        } else {
            byte
        }
    }
}

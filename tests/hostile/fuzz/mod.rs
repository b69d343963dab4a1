//! Hostile input for what is pure: a property is tried with many inputs. In `cargo test` these
//! are kept ones, changed at random, for a second or so; in `make fuzz` libFuzzer makes them,
//! by what code they reach.
// `fuzzing` is set by `make fuzz`.
#![allow(unexpected_cfgs)]

#[cfg(not(fuzzing))]
mod random;

/// Tries a property, whose kept inputs are in the folder of this name.
pub fn run(name: &str, property: fn(&[u8])) {
    #[cfg(not(fuzzing))]
    random::run(name, property);
    #[cfg(fuzzing)]
    {
        println!("{name}:");
        hostile_engine::run(property);
    }
}

/// Takes an input apart: what is missing is 0 or empty.
pub struct Input<'a>(pub &'a [u8]);

impl<'a> Input<'a> {
    pub fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    pub fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((byte, rest)) => {
                self.0 = rest;
                *byte
            }
            None => 0,
        }
    }

    /// One of so many.
    pub fn below(&mut self, most: usize) -> usize {
        usize::from(self.byte()) % most
    }

    pub fn number(&mut self) -> i64 {
        (0..8).fold(0, |number, _| number << 8 | i64::from(self.byte()))
    }

    /// So many bytes as the next one says.
    pub fn bytes(&mut self) -> &'a [u8] {
        let length = usize::from(self.byte()).min(self.0.len());
        let (bytes, rest) = self.0.split_at(length);
        self.0 = rest;
        bytes
    }

    /// One of these words, or any bytes.
    pub fn word(&mut self, words: &[&'a [u8]]) -> &'a [u8] {
        match words.get(usize::from(self.byte())) {
            Some(word) => word,
            None => self.bytes(),
        }
    }
}

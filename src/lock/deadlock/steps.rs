//! How far searches may go in one decision, all of them together.

use std::cell::Cell;

/// So many steps: they take about a ms.
const MOST: usize = 4096;

/// A search was to take so many steps and no more.
#[derive(Debug)]
pub struct TooFar;

#[derive(Clone, Debug)]
pub struct Steps {
    most: usize,
    left: Cell<usize>,
}

impl Default for Steps {
    fn default() -> Self {
        Self::of(MOST)
    }
}

impl Steps {
    pub fn of(most: usize) -> Self {
        let left = Cell::new(most);
        Self { most, left }
    }

    /// One of them.
    pub fn take(&self) -> Result<(), TooFar> {
        let left = self.left.get().checked_sub(1).ok_or(TooFar)?;
        self.left.set(left);
        Ok(())
    }

    /// Another decision begins.
    pub fn begin(&self) {
        self.left.set(self.most);
    }
}

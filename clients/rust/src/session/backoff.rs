//! Whether a sticky lock stays: see "Sticky" in clients/README.md, 10. Where processes alternate, one that stays is
//! called back each time, which costs more than a plain lock.

/// Uses for which it was worth to stay.
const ENOUGH: u64 = 3;
const LEAST: u32 = 4;
const MOST: u32 = 64;

#[derive(Default)]
pub(super) struct Backoff {
    /// So many acquisitions do not stay.
    left: u32,
    last: u32,
}

impl Backoff {
    pub fn is_on(&self) -> bool {
        self.left > 0
    }

    /// After so many uses; `wanted` by somebody else.
    pub fn went_back(&mut self, uses: u64, wanted: bool) {
        if self.left > 0 {
            self.left -= 1;
        } else if wanted && uses < ENOUGH {
            self.last = (2 * self.last).clamp(LEAST, MOST);
            self.left = self.last;
        } else {
            self.last = 0;
        }
    }
}

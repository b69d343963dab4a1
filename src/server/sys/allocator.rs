//! Memory comes from the server, so that `used_memory` counts it; how much of that is
//! rlock's is counted here.

use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that are had now, without what the allocator adds to each piece.
static TAKEN: AtomicUsize = AtomicUsize::new(0);

pub fn taken() -> u64 {
    u64::try_from(TAKEN.load(Ordering::Relaxed)).unwrap_or(u64::MAX)
}

/// An allocator, and what is had from it is counted.
pub struct Counting<A>(pub A);

impl<A> Counting<A> {
    /// Not one atomic step, which would cost more: whoever runs code of ours has the server
    /// to itself. Should that once not be so, a figure of INFO is wrong, and nothing else.
    fn count(more: usize, less: usize) {
        let taken = TAKEN.load(Ordering::Relaxed);
        TAKEN.store(
            taken.wrapping_add(more).wrapping_sub(less),
            Ordering::Relaxed,
        );
    }
}

// SAFETY: it hands each call on unmodified, and counts.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counting<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::count(layout.size(), 0);
        // SAFETY: as the caller says.
        unsafe { self.0.alloc(layout) }
    }

    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        Self::count(0, layout.size());
        // SAFETY: as the caller says.
        unsafe { self.0.dealloc(piece, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Self::count(layout.size(), 0);
        // SAFETY: as the caller says.
        unsafe { self.0.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, piece: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Self::count(size, layout.size());
        // SAFETY: as the caller says.
        unsafe { self.0.realloc(piece, layout, size) }
    }
}

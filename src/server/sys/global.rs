//! A value that lives from load to unload, for callbacks to find.

use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr;

use super::count::Count;
use super::ctx::Ctx;

/// Proof that a callback of the server runs, which it does on its main thread only.
#[derive(Clone, Copy)]
pub struct MainThread<'a>(PhantomData<(&'a (), *mut ())>);

impl MainThread<'_> {
    /// # Safety
    /// The server's main thread, in a callback that does not return before its lifetime.
    pub(super) unsafe fn new() -> Self {
        Self(PhantomData)
    }
}

impl<'a> From<Ctx<'a>> for MainThread<'a> {
    fn from(_: Ctx<'a>) -> Self {
        Self(PhantomData)
    }
}

/// At most one value, which is lent and never copied, and not given back while it is lent.
pub struct Global<T> {
    value: Cell<*const T>,
    lent: Count,
}

// SAFETY: whoever touches the cells or the value shows that this is the main thread.
unsafe impl<T> Sync for Global<T> {}

impl<T: 'static> Global<T> {
    pub const fn empty() -> Self {
        Self {
            value: Cell::new(ptr::null()),
            lent: Count::zero(),
        }
    }

    /// Puts a value in. `false`: there is one.
    pub fn install<'a>(&self, _here: impl Into<MainThread<'a>>, value: T) -> bool {
        if !self.value.get().is_null() {
            return false;
        }
        self.value.set(Box::into_raw(Box::new(value)));
        true
    }

    /// Lends the value. `None`: there is none.
    pub fn with<'a, R>(
        &self,
        _here: impl Into<MainThread<'a>>,
        using: impl FnOnce(&T) -> R,
    ) -> Option<R> {
        // SAFETY: null, or a box of `install`, which `remove` leaves alone while it is lent.
        let value = unsafe { self.value.get().as_ref() }?;
        let _lent = Lent::new(&self.lent);
        Some(using(value))
    }

    /// Drops the value. `false`: it is lent.
    pub fn remove<'a>(&self, _here: impl Into<MainThread<'a>>) -> bool {
        if self.lent.get() > 0 {
            return false;
        }
        let value = self.value.replace(ptr::null());
        if !value.is_null() {
            // SAFETY: it was a box in `install`, and nobody has it: it is not lent.
            drop(unsafe { Box::from_raw(value.cast_mut()) });
        }
        true
    }
}

/// Counts one who uses the value, to the end of it or to a panic.
struct Lent<'a>(&'a Count);

impl<'a> Lent<'a> {
    fn new(count: &'a Count) -> Self {
        count.more();
        Self(count)
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.0.less();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_not_given_back_while_it_is_lent() {
        // SAFETY: one thread uses this value.
        let here = unsafe { MainThread::new() };
        let global = Global::empty();
        assert_eq!(global.with(here, |value: &i32| *value), None);
        assert!(global.install(here, 7));
        assert!(!global.install(here, 8));
        global.with(here, |value| {
            assert!(!global.remove(here));
            assert_eq!(*value, 7);
        });
        assert!(global.remove(here));
        assert_eq!(global.with(here, |value| *value), None);
    }
}

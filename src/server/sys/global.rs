//! A value that lives from load to unload, for callbacks to find.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::rc::Rc;

use super::ctx::Ctx;

/// Proof that a callback of the server runs: nobody else uses the server meanwhile, and no other
/// callback runs but in the middle of this one. As a rule that is the server's main thread; where
/// another module takes the server's lock in a thread of its own it may be that one. [`guard`]
/// looks that no callback comes in the middle of another one by another thread.
///
/// [`guard`]: super::guard
#[derive(Clone, Copy)]
pub struct Callback<'a>(PhantomData<(&'a (), *mut ())>);

impl Callback<'_> {
    /// # Safety
    /// In a callback of the server that does not return before its lifetime.
    pub(super) unsafe fn new() -> Self {
        Self(PhantomData)
    }
}

impl<'a> From<Ctx<'a>> for Callback<'a> {
    fn from(_: Ctx<'a>) -> Self {
        Self(PhantomData)
    }
}

/// At most one value, which is lent and never copied, and not given back while it is lent.
pub struct Global<T>(RefCell<Option<Rc<T>>>);

// SAFETY: whoever touches the cell or the value shows that a callback runs, and callbacks run
// one at a time, however many threads there are.
unsafe impl<T> Sync for Global<T> {}

impl<T: 'static> Global<T> {
    pub const fn empty() -> Self {
        Self(RefCell::new(None))
    }

    /// Puts a value in. `false`: there is one.
    pub fn install<'a>(&self, _here: impl Into<Callback<'a>>, value: T) -> bool {
        if self.0.borrow().is_some() {
            return false;
        }
        self.0.replace(Some(Rc::new(value)));
        true
    }

    /// Lends the value. `None`: there is none.
    pub fn with<'a, R>(
        &self,
        _here: impl Into<Callback<'a>>,
        using: impl FnOnce(&T) -> R,
    ) -> Option<R> {
        let lent = self.0.borrow().clone()?;
        Some(using(&lent))
    }

    /// Drops the value. `false`: it is lent.
    pub fn remove<'a>(&self, _here: impl Into<Callback<'a>>) -> bool {
        let is_lent = |value: &Rc<T>| Rc::strong_count(value) > 1;
        if self.0.borrow().as_ref().is_some_and(is_lent) {
            return false;
        }
        self.0.take();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_not_given_back_while_it_is_lent() {
        // SAFETY: one thread uses this value.
        let here = unsafe { Callback::new() };
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

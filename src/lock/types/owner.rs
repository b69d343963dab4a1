//! An owner of locks, by its name.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;
use std::rc::Rc;

/// An owner's name, shared: cheap to clone, compared by content, any bytes. Whoever only
/// looks an owner up passes the bytes.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Owner(Rc<[u8]>);

impl Deref for Owner {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Borrow<[u8]> for Owner {
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl From<&[u8]> for Owner {
    fn from(name: &[u8]) -> Self {
        Self(Rc::from(name))
    }
}

impl From<Rc<[u8]>> for Owner {
    fn from(name: Rc<[u8]>) -> Self {
        Self(name)
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

//! What of ours is under way in the server, as far as callbacks that come in the middle
//! of it need to know.

use std::cell::Cell;

#[derive(Default)]
pub struct OwnWork {
    /// Our own writes are under way, and the events they cause are known to us.
    pub writing: Cell<bool>,
    /// A key that the core looks at had run out.
    pub ran_out: Cell<bool>,
}

impl OwnWork {
    /// Until the value is dropped, events are of our own doing. A call of ours can be
    /// under way already, of which this one is a part.
    pub fn write(&self) -> Writing<'_> {
        Writing {
            work: self,
            before: self.writing.replace(true),
        }
    }
}

/// Own writes are under way.
pub struct Writing<'a> {
    work: &'a OwnWork,
    before: bool,
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.work.writing.set(self.before);
    }
}

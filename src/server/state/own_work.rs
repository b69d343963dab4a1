//! What of ours is under way in the server, as far as callbacks that come in the middle
//! of it need to know.

use std::cell::{Cell, RefCell};
use std::ffi::CStr;

use crate::lock::Key;
use crate::redisson;

#[derive(Default)]
pub struct OwnWork {
    /// What we are doing, whose events are known to us.
    doing: RefCell<Doing>,
    /// A key that the core looks at had run out.
    pub ran_out: Cell<bool>,
}

/// Other modules may change keys in the middle of it, when they get an event: theirs is news.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Doing {
    #[default]
    Nothing,
    /// There is nobody who could.
    Alone,
    /// A write of this key or of a lease key of its, with whatever that emits about them.
    Write(Key),
    /// This event of a key is emitted. We get it once.
    Emit(Key, &'static CStr),
}

impl OwnWork {
    /// Until the value is dropped, events of the key are of our own doing, or this event alone.
    /// `alone`: no other module gets any. A call of ours can be under way already, of which
    /// this one is a part.
    pub fn begin(&self, key: &Key, event: Option<&'static CStr>, alone: bool) -> UnderWay<'_> {
        let doing = match event {
            _ if alone => Doing::Alone,
            None => Doing::Write(key.clone()),
            Some(event) => Doing::Emit(key.clone(), event),
        };
        UnderWay {
            work: self,
            before: self.doing.replace(doing),
        }
    }

    /// Whether an event is of our own doing.
    pub fn is_own(&self, event: &[u8], db: impl Fn() -> i32, name: &[u8]) -> bool {
        let mut doing = self.doing.borrow_mut();
        let is_of = |key: &Key| key.name[..] == *name && key.db == db();
        match &*doing {
            Doing::Nothing => false,
            Doing::Alone => true,
            Doing::Write(key) => {
                let of_a_reader = |(lock, _): (&[u8], &[u8])| key.name[..] == *lock;
                is_of(key) || key.db == db() && redisson::readers(name).any(of_a_reader)
            }
            Doing::Emit(key, own) => {
                let is_it = own.to_bytes() == event && is_of(key);
                if is_it {
                    *doing = Doing::Nothing;
                }
                is_it
            }
        }
    }

    /// Whether a write of ours is under way, or nobody else can do anything meanwhile.
    pub fn is_any(&self) -> bool {
        matches!(*self.doing.borrow(), Doing::Alone | Doing::Write(_))
    }
}

/// Something of ours is under way.
pub struct UnderWay<'a> {
    work: &'a OwnWork,
    before: Doing,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.work.doing.replace(std::mem::take(&mut self.before));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Key::new(0, name.as_bytes())
    }

    #[test]
    fn while_an_event_is_emitted_it_alone_is_our_own_and_once() {
        let work = OwnWork::default();
        let own = |event: &[u8], db, name: &[u8]| work.is_own(event, || db, name);
        let under_way = work.begin(&key("k"), Some(c"del"), false);
        assert!(!own(b"del", 0, b"other") && !own(b"del", 1, b"k") && !own(b"set", 0, b"k"));
        // A call of ours in the middle of it.
        drop(work.begin(&key("other"), None, false));
        assert!(own(b"del", 0, b"k"));
        assert!(!own(b"del", 0, b"k"));
        drop(under_way);
        assert!(!own(b"del", 0, b"k"));
    }

    #[test]
    fn while_a_key_is_written_what_happens_to_it_is_our_own() {
        let work = OwnWork::default();
        let own = |name: &[u8]| work.is_own(b"expired", || 0, name);
        let under_way = work.begin(&key("k"), None, false);
        assert!(own(b"k") && own(b"k") && !own(b"other"));
        let lease_key = |lock: &str| redisson::lease_key(lock.as_bytes(), b"owner", 1);
        assert!(own(&lease_key("k")) && !own(&lease_key("other")));
        drop(under_way);
        assert!(!own(b"k"));
    }

    #[test]
    fn alone_all_is_our_own() {
        let work = OwnWork::default();
        let under_way = work.begin(&key("k"), Some(c"del"), true);
        assert!(work.is_own(b"set", || 1, b"other"));
        drop(under_way);
    }
}

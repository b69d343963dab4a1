//! The server, as the core's loop asks it.

use std::cell::{Cell, RefCell};

use crate::lock::{Gate, Note, Now, Outside, WallUs};

pub struct Server {
    pub now: Cell<Now>,
    pub gate: Gate,
    pub misses_overwrites: bool,
    /// So long each piece of the work takes, us.
    pub piece_us: i64,
    pub notes: RefCell<Vec<Note>>,
}

impl Outside for Server {
    fn now(&self) -> Now {
        let now = self.now.get();
        self.now.set(Now {
            wall: WallUs(now.wall.0 + self.piece_us),
            mono: now.mono.plus_us(self.piece_us),
            ..now
        });
        self.now.get()
    }

    fn gate(&self) -> Gate {
        self.gate
    }

    fn has_notes(&self) -> bool {
        !self.notes.borrow().is_empty()
    }

    fn take_notes(&self) -> Vec<Note> {
        self.notes.take()
    }

    fn misses_overwrites(&self) -> bool {
        self.misses_overwrites
    }

    fn closes_on_loss(&self) -> bool {
        true
    }
}

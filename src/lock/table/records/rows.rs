//! A list in pieces: no part of it is ever moved for another one to grow.

/// So many stand in a piece.
const PIECE: usize = 1024;

#[derive(Clone, Debug)]
pub struct Rows<T> {
    /// All but the last one are full.
    pieces: Vec<Vec<T>>,
    len: usize,
}

impl<T> Default for Rows<T> {
    fn default() -> Self {
        Self {
            pieces: Vec::new(),
            len: 0,
        }
    }
}

fn place(row: u32) -> (usize, usize) {
    let row = row as usize;
    (row / PIECE, row % PIECE)
}

impl<T> Rows<T> {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where the next one comes to stand.
    pub fn next(&self) -> u32 {
        self.len as u32
    }

    pub fn get(&self, row: u32) -> Option<&T> {
        let (piece, at) = place(row);
        self.pieces.get(piece)?.get(at)
    }

    pub fn get_mut(&mut self, row: u32) -> Option<&mut T> {
        let (piece, at) = place(row);
        self.pieces.get_mut(piece)?.get_mut(at)
    }

    pub fn push(&mut self, new: T) {
        let (piece, _) = place(self.next());
        if piece >= self.pieces.len() {
            self.pieces.push(Vec::new());
        }
        if let Some(last) = self.pieces.get_mut(piece) {
            last.push(new);
            self.len = self.len.saturating_add(1);
        }
    }

    /// Takes one away. The last one stands in its place then.
    pub fn swap_remove(&mut self, row: u32) -> Option<T> {
        self.get(row)?;
        let last = self.len.checked_sub(1)?;
        let piece = self.pieces.get_mut(last / PIECE)?;
        let moved = piece.pop()?;
        self.len = last;
        // The piece behind the last one stays for those who come next, until this is half gone.
        if last % PIECE == PIECE / 2 {
            self.pieces.truncate((last / PIECE).saturating_add(1));
        }
        match self.get_mut(row) {
            Some(gone) => Some(std::mem::replace(gone, moved)),
            None => Some(moved),
        }
    }
}

//! Which record ends first: a heap of rows, by their ends, and by their names where these are
//! alike. Each record knows its place here.

use super::record::Record;
use super::rows::Rows;

#[derive(Clone, Debug, Default)]
pub struct Ends(Vec<u32>);

impl Ends {
    pub fn first(&self) -> Option<u32> {
        self.0.first().copied()
    }

    /// The row has its place from now on.
    pub fn insert(&mut self, rows: &mut Rows<Record>, row: u32) {
        let last = self.0.len();
        self.0.push(row);
        self.rise(rows, last, row);
    }

    /// The row has no place here any more.
    pub fn remove(&mut self, rows: &mut Rows<Record>, row: u32) {
        let place = rows.get(row).map(|known| known.place as usize);
        let Some((place, last)) = place.zip(self.0.pop()) else {
            return;
        };
        if last != row {
            self.put(rows, place, last);
            self.rise(rows, place, last);
            self.sink(rows, last);
        }
        if self.0.capacity() / 8 > self.0.len() {
            self.0.shrink_to(self.0.len().saturating_mul(2));
        }
    }

    /// What has this place stands in another row now.
    pub fn set(&mut self, place: u32, row: u32) {
        if let Some(at) = self.0.get_mut(place as usize) {
            *at = row;
        }
    }

    fn put(&mut self, rows: &mut Rows<Record>, place: usize, row: u32) {
        if let Some(at) = self.0.get_mut(place) {
            *at = row;
        }
        if let Some(known) = rows.get_mut(row) {
            known.place = place as u32;
        }
    }

    /// Moves a row towards the first one, as far as it ends before those on the way.
    fn rise(&mut self, rows: &mut Rows<Record>, mut place: usize, row: u32) {
        while let Some(above) = place.checked_sub(1).map(|below| below / 2) {
            match self.0.get(above).copied() {
                Some(other) if is_before(rows, row, other) => self.put(rows, place, other),
                _ => break,
            }
            place = above;
        }
        self.put(rows, place, row);
    }

    /// Moves a row away from the first one, as far as others on the way end before it.
    fn sink(&mut self, rows: &mut Rows<Record>, row: u32) {
        let Some(mut place) = rows.get(row).map(|known| known.place as usize) else {
            return;
        };
        loop {
            let left = place.saturating_mul(2).saturating_add(1);
            let right = left.saturating_add(1);
            let next = match (self.0.get(left).copied(), self.0.get(right).copied()) {
                (Some(one), Some(other)) if is_before(rows, other, one) => (right, other),
                (Some(one), _) => (left, one),
                (None, _) => break,
            };
            if !is_before(rows, next.1, row) {
                break;
            }
            self.put(rows, place, next.1);
            place = next.0;
        }
        self.put(rows, place, row);
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Asserts that none ends before the one above it, and that each knows its place.
    #[cfg(test)]
    pub fn check(&self, rows: &Rows<Record>) {
        for (place, row) in self.0.iter().copied().enumerate() {
            let known = rows.get(row).expect("it is there");
            assert_eq!(known.place as usize, place);
            if place > 0 {
                assert!(!is_before(rows, row, self.0[(place - 1) / 2]));
            }
        }
    }
}

fn is_before(rows: &Rows<Record>, one: u32, other: u32) -> bool {
    let key = |row| rows.get(row).map(|known| (known.ends, known.name()));
    key(one) < key(other)
}

//! Something for each database that was used. There are few as a rule, and a decision asks
//! for its own very often: in a list it is found at once.

use crate::lock::exchanged;

#[derive(Clone, Debug, Default)]
pub struct Databases<T> {
    all: Vec<(i32, T)>,
    /// And one more, so that there always is one.
    none: T,
}

impl<T> Databases<T> {
    fn place(&self, db: i32) -> Result<usize, usize> {
        self.all.binary_search_by_key(&db, |(db, _)| *db)
    }

    pub fn get(&self, db: i32) -> Option<&T> {
        let place = self.place(db).ok()?;
        self.all.get(place).map(|(_, its)| its)
    }

    pub fn get_mut(&mut self, db: i32) -> Option<&mut T> {
        let place = self.place(db).ok()?;
        self.all.get_mut(place).map(|(_, its)| its)
    }

    /// Two databases were exchanged.
    pub fn swap(&mut self, one: i32, other: i32) {
        for (db, _) in &mut self.all {
            *db = exchanged(*db, one, other);
        }
        self.all.sort_unstable_by_key(|(db, _)| *db);
    }

    /// In order.
    pub fn iter(&self) -> impl Iterator<Item = (i32, &T)> {
        self.all.iter().map(|(db, its)| (*db, its))
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (i32, &mut T)> {
        self.all.iter_mut().map(|(db, its)| (*db, its))
    }

    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.all.iter().map(|(_, its)| its)
    }
}

impl<T: Default> Databases<T> {
    /// There is something from now on.
    pub fn get_or_new(&mut self, db: i32) -> &mut T {
        let place = self.place(db).unwrap_or_else(|place| {
            self.all.insert(place, (db, T::default()));
            place
        });
        let its = self.all.get_mut(place);
        its.map_or(&mut self.none, |(_, its)| its)
    }
}

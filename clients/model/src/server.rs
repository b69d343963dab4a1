//! What one server does with one lock. Also held against the real server, by
//! `tests/server.rs`: so its tokens are of any kind of number, 0 for none.

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Server<T> {
    /// The fencing counter beside the lock.
    pub counter: T,
    /// Who holds the lock; 0: nobody.
    pub owner: u8,
    /// The token of the hold, if this run of the server gave it.
    pub token: T,
    /// For how long the lease has run, in ticks.
    pub age: u8,
    /// For so many ticks more the server grants nothing (`rlock.grant-after`).
    pub shut: u8,
    /// The server's clock is past this token: known of one that lost its data.
    pub clock: T,
}

impl<T: Copy + Ord + Default> Server<T> {
    /// A token that is given now is greater than this. (And greater than the last one that
    /// this run of the server gave. That is left out, for a restart forgets it.)
    pub fn least(&self) -> T {
        self.counter.max(self.clock)
    }

    pub fn is_free(&self) -> bool {
        self.owner == 0
    }

    /// The lock, or a new token for the hold that was found after a restart. `counted`: a
    /// counter is made if there is none.
    pub fn grant(&mut self, owner: u8, token: T, counted: bool) {
        self.owner = owner;
        self.token = token;
        self.age = 0;
        if counted || self.counter != T::default() {
            self.count(token);
        }
    }

    fn count(&mut self, token: T) {
        self.counter = token;
        if self.clock <= token {
            self.clock = T::default();
        }
    }

    /// `RENEW key owner lease FENCE token`; `None`: NOTHELD.
    pub fn fence(&mut self, owner: u8, token: T) -> Option<T> {
        self.renew(owner)?;
        let counter = self.counter.max(self.token).max(token);
        self.count(counter);
        Some(counter)
    }

    pub fn renew(&mut self, owner: u8) -> Option<()> {
        if self.owner != owner {
            return None;
        }
        self.age = 0;
        Some(())
    }

    /// The hold ends.
    pub fn free(&mut self) {
        self.owner = 0;
        self.token = T::default();
        self.age = 0;
    }

    /// With the hold and the counter, which were written before anybody learnt of them.
    pub fn restart(&mut self) {
        self.token = T::default();
    }

    /// With nothing. `shut`: for how long it then grants nothing; `clock`: what its clock is
    /// past by then.
    pub fn lose_all(&mut self, shut: u8, clock: T) {
        *self = Self {
            shut,
            clock,
            ..Self::default()
        };
    }
}

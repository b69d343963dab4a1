//! One state of all servers, clients and letters.

use crate::attempt::{Attempt, Phase};
use crate::rules::{Promise, World};
use crate::server::Server;

pub const SERVERS: usize = 4;
pub const ATTEMPTS: usize = 4;

/// Of tokens nothing matters but which one is greater. Those that clients know are 2, 4, 6 and
/// so on, in their order; 0: none. What else a server has counted stands between them, at an
/// odd number, as low as it can: a smaller counter forbids less.
pub type Token = u8;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct State {
    pub servers: [Server<Token>; SERVERS],
    pub attempts: [Attempt; ATTEMPTS],
    /// The greatest token that the storage has seen.
    pub stored: Token,
    /// What went wrong on the way here, a bit for each promise.
    pub broken: u8,
}

impl State {
    /// The tokens that clients know.
    pub fn known(&self) -> u64 {
        let tokens = self.attempts.iter().map(|a| a.token).chain([self.stored]);
        tokens.fold(0, |known, token| known | 1 << token) & !1
    }

    /// Twice each token: those that are known are at 4, 8, 12 and so on, what is counted between
    /// them at 2, 6 and so on, and above it, at 3, 7 and so on, there is room for a new one. And
    /// the greatest room.
    pub fn spread(mut self) -> (Self, Token) {
        for server in &mut self.servers {
            server.counter *= 2;
            server.token *= 2;
            server.clock *= 2;
        }
        for attempt in &mut self.attempts {
            attempt.token *= 2;
        }
        self.stored *= 2;
        (self, self.known().count_ones() as Token * 4 + 3)
    }

    /// The tokens as they were before they were spread.
    pub fn settled(mut self) -> Self {
        let known = self.known();
        let rank = |token: &mut Token| {
            if *token > 0 {
                let below = (known & ((1 << *token) - 1)).count_ones() as Token;
                let is_known = known & (1 << *token) != 0;
                *token = 2 * below + if is_known { 2 } else { 1 };
            }
        };
        for server in &mut self.servers {
            rank(&mut server.counter);
            rank(&mut server.clock);
            // Beside a counter, which is never smaller, it only matters whether it is known.
            if server.counter > 0 && server.token > 0 {
                server.token = server.counter;
            } else {
                rank(&mut server.token);
            }
        }
        for attempt in &mut self.attempts {
            rank(&mut attempt.token);
        }
        rank(&mut self.stored);
        self
    }

    /// The greatest token that was given to a program.
    pub fn given(&self) -> Token {
        let given = self.attempts.iter().filter(|a| a.given);
        given.map(|a| a.token).max().unwrap_or(0)
    }

    /// Whether the client counts a majority for it.
    pub fn is_valid(&self, world: &World, attempt: usize) -> bool {
        self.attempts[attempt].counts() >= world.client(attempt).quorum
    }

    /// How many programs believe that they hold the lock.
    pub fn believers(&self, world: &World) -> usize {
        let believes =
            |i: &usize| self.attempts[*i].phase == Phase::Held && self.is_valid(world, *i);
        (0..world.tries()).filter(believes).count()
    }

    pub fn breaks(&mut self, promise: Promise) {
        self.broken |= 1 << promise as u8;
    }

    pub fn is_broken(&self, world: &World, promise: Promise) -> bool {
        match promise {
            Promise::Alone => self.believers(world) > 1,
            Promise::Freed => (0..world.servers).any(|s| self.is_forsaken(world, s)),
            _ => self.broken & (1 << promise as u8) != 0,
        }
    }

    /// The server's lock is held by an attempt that is over and has not sent it a RELEASE.
    fn is_forsaken(&self, world: &World, server: usize) -> bool {
        let owner = self.servers[server].owner;
        let holder = (0..world.tries()).find(|i| world.owner(*i) == owner);
        holder.is_some_and(|i| {
            let attempt = &self.attempts[i];
            attempt.phase == Phase::Over && attempt.released & (1 << server) == 0
        })
    }
}

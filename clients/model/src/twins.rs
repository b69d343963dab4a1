//! States that differ only in which server, or which client, has which name are one.

use crate::attempt::Attempt;
use crate::rules::World;
use crate::state::{ATTEMPTS, SERVERS, State};

/// An order of the servers and one of the attempts: what stands in a place, stood in the
/// place that is written there.
struct Names {
    servers: [usize; SERVERS],
    attempts: [usize; ATTEMPTS],
}

pub struct Twins {
    names: Vec<Names>,
}

impl Twins {
    pub fn new(world: &World) -> Self {
        let all = (1u8 << world.servers) - 1;
        // With lists of their own, neither servers nor clients are alike.
        let alike = world
            .clients
            .iter()
            .all(|client| *client == world.clients[0]);
        let whole = alike && world.clients[0].names == all;
        let orders = |count: usize| match whole {
            true => orders(count),
            false => vec![(0..count).collect()],
        };
        let mut names = Vec::new();
        for servers in orders(world.servers) {
            for clients in orders(world.clients.len()) {
                let mut new = Names {
                    servers: [0, 1, 2, 3],
                    attempts: [0, 1, 2, 3],
                };
                new.servers[..world.servers].copy_from_slice(&servers);
                for (to, from) in clients.iter().enumerate() {
                    for attempt in 0..world.attempts {
                        new.attempts[to * world.attempts + attempt] =
                            from * world.attempts + attempt;
                    }
                }
                names.push(new);
            }
        }
        Self { names }
    }

    /// The one of its twins that stands for all.
    pub fn first(&self, state: &State) -> State {
        let renamed = self.names.iter().map(|names| names.rename(state));
        renamed.min().unwrap()
    }
}

impl Names {
    fn rename(&self, state: &State) -> State {
        let mut new = *state;
        for to in 0..SERVERS {
            let mut server = state.servers[self.servers[to]];
            let owner = usize::from(server.owner);
            if owner > 0 {
                let now = self.attempts.iter().position(|from| *from == owner - 1);
                server.owner = now.unwrap() as u8 + 1;
            }
            new.servers[to] = server;
        }
        for to in 0..ATTEMPTS {
            new.attempts[to] = self.reorder(&state.attempts[self.attempts[to]]);
        }
        new
    }

    fn reorder(&self, old: &Attempt) -> Attempt {
        let bits = |old: u8| {
            let bit = |to: usize| (old >> self.servers[to] & 1) << to;
            (0..SERVERS).map(bit).sum()
        };
        let mut new = *old;
        (new.servers, new.released) = (bits(old.servers), bits(old.released));
        for to in 0..SERVERS {
            let from = self.servers[to];
            new.counted[to] = old.counted[from];
            new.sent[to] = old.sent[from];
        }
        new
    }
}

fn orders(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for order in orders(count - 1) {
        for at in 0..count {
            let mut order = order.clone();
            order.insert(at, count - 1);
            all.push(order);
        }
    }
    all
}

//! The steps that can be taken in a state: what servers do.

use crate::action::{Action, Arrival};
use crate::attempt::{NEVER, Phase};
use crate::rules::{Without, World};
use crate::state::{State, Token};

mod client;

/// All of them, with the states that they lead to. Their tokens are not settled.
pub fn steps(world: &World, state: &State, found: &mut Vec<(Action, State)>) {
    let (state, greatest) = state.spread();
    let mut steps = Steps {
        world,
        state,
        greatest,
        found,
    };
    for server in 0..world.servers {
        steps.alone(server);
        for attempt in 0..world.tries() {
            let named = world.client(attempt).names & (1 << server) != 0;
            if named && steps.comes(attempt) {
                steps.acquire(server, attempt);
                steps.renew(server, attempt);
                steps.release(server, attempt);
            }
        }
    }
    for attempt in 0..world.tries() {
        steps.client(attempt);
    }
    if world.is_timed() {
        steps.tick();
    }
}

struct Steps<'a> {
    world: &'a World,
    state: State,
    greatest: Token,
    found: &'a mut Vec<(Action, State)>,
}

impl Steps<'_> {
    fn add(&mut self, action: Action, change: impl FnOnce(&mut State)) {
        let mut next = self.state;
        change(&mut next);
        self.found.push((action, next));
    }

    fn keeps(&self, rule: Without) -> bool {
        self.world.keeps(rule)
    }

    /// Whether what this attempt sent may come to a server.
    fn comes(&self, attempt: usize) -> bool {
        match self.state.attempts[attempt].phase {
            Phase::Idle => false,
            Phase::Over => self.world.late || self.state.attempts[attempt].released != 0,
            _ => true,
        }
    }

    fn is_late(&self, attempt: usize) -> bool {
        self.state.attempts[attempt].phase == Phase::Over
    }

    /// What a server does by itself, or somebody does to it.
    fn alone(&mut self, s: usize) {
        let server = self.state.servers[s];
        let old = server.age >= self.world.lease || !self.keeps(Without::NoStep);
        if !server.is_free() {
            if old {
                self.add(Action::Expire(s), |next| next.servers[s].free());
            }
            if !self.keeps(Without::PlainLease) {
                self.add(Action::Cut(s), |next| next.servers[s].free());
            }
            if !self.keeps(Without::NoForce) {
                self.add(Action::Force(s), |next| next.servers[s].free());
            }
        }
        if self.world.restarts {
            let (hold, counter) = (
                self.keeps(Without::HoldWritten),
                self.keeps(Without::CounterWritten),
            );
            self.add(Action::Restart(s), |next| {
                let server = &mut next.servers[s];
                server.restart();
                if !hold {
                    server.free();
                }
                if !counter {
                    server.counter = 0;
                }
            });
        }
        if self.world.forgets {
            let whole = self.world.lease - u8::from(!self.keeps(Without::GrantAfterWhole));
            let shut = if self.keeps(Without::GrantAfter) {
                whole
            } else {
                0
            };
            let clock = if self.keeps(Without::ClocksAgree) {
                self.greatest - 1
            } else {
                0
            };
            self.add(Action::Forget(s), |next| {
                next.servers[s].lose_all(shut, clock)
            });
        }
        if !self.keeps(Without::NoFailover) {
            self.add(Action::Failover(s), |next| next.servers[s].lose_all(0, 0));
        }
    }

    /// An ACQUIRE … ONCE comes. (Where the hold and its token are known the token is replied
    /// again, which is the same as if the first reply came now.)
    fn acquire(&mut self, s: usize, a: usize) {
        if self.is_late(a) && !self.world.late {
            return;
        }
        let (server, owner) = (self.state.servers[s], self.world.owner(a));
        let held = server.owner == owner;
        let found = held && server.token == 0;
        if held && !found {
            for arrival in self.arrivals(s, a) {
                if matches!(arrival, Arrival::Late | Arrival::Counted) {
                    let action = Action::Grant {
                        by: s,
                        to: a,
                        token: server.token,
                        arrival,
                    };
                    let world = self.world;
                    self.add(action, |next| {
                        if arrival == Arrival::Counted {
                            next.servers[s].age = 0;
                        }
                        take_grant(world, next, s, a, server.token, arrival);
                    });
                }
            }
        }
        if found && self.world.restarts || server.is_free() && server.shut == 0 {
            let above = self.keeps(Without::AboveCounter);
            let least = if above { server.least() } else { 0 };
            let greatest = self.greatest;
            for arrival in self.arrivals(s, a) {
                if self.world.one_clock {
                    self.grant(s, a, greatest, arrival);
                } else if arrival != Arrival::InTime {
                    // The least that it can be.
                    self.grant(
                        s,
                        a,
                        if least % 4 == 0 { least + 2 } else { least },
                        arrival,
                    );
                } else {
                    let room = (least + 1..=greatest).filter(|token| matches!(token % 4, 0 | 3));
                    room.for_each(|token| self.grant(s, a, token, arrival));
                }
            }
        }
    }

    fn grant(&mut self, s: usize, a: usize, token: Token, arrival: Arrival) {
        let world = self.world;
        self.add(
            Action::Grant {
                by: s,
                to: a,
                token,
                arrival,
            },
            |next| {
                next.servers[s].grant(world.owner(a), token, world.counted);
                take_grant(world, next, s, a, token, arrival);
            },
        );
    }

    /// What may become of the reply to an ACQUIRE.
    fn arrivals(&self, s: usize, a: usize) -> Vec<Arrival> {
        let attempt = &self.state.attempts[a];
        let known = attempt.servers & (1 << s) != 0;
        let out = attempt.released & (1 << s) != 0 && self.keeps(Without::ReleasedIsOut);
        let full = attempt.servers.count_ones() as usize >= self.world.client(a).quorum;
        let counts = match attempt.phase {
            Phase::Fixed => !self.keeps(Without::NoLateGrantsUnfenced),
            Phase::Held => !self.keeps(Without::RejoinFenced) && !out,
            _ => false,
        };
        match attempt.phase {
            Phase::Asking if known || !full => vec![Arrival::Never, Arrival::InTime],
            Phase::Held if counts && known => vec![Arrival::Never, Arrival::Counted],
            Phase::Fixed | Phase::Held if known => vec![Arrival::Never],
            Phase::Fixed | Phase::Held if counts => {
                vec![Arrival::Never, Arrival::Late, Arrival::Counted]
            }
            Phase::Fixed | Phase::Held if self.world.is_timed() => {
                vec![Arrival::Never, Arrival::Late]
            }
            _ => vec![Arrival::Never],
        }
    }

    /// A RENEW … FENCE comes.
    fn renew(&mut self, s: usize, a: usize) {
        let world = self.world;
        if !self.is_renewed(s, a) || self.is_late(a) && !world.late {
            return;
        }
        // One that was sent long ago, or whose reply is lost.
        let now = !world.letters && !self.is_late(a);
        for answered in [false, true] {
            if answered && !now {
                continue;
            }
            let mut next = self.state;
            let counts = client::serve(world, &mut next, s, a);
            if counts.is_some() && !answered {
                self.found.push((
                    Action::Fence {
                        by: s,
                        of: a,
                        answered,
                    },
                    next,
                ));
            } else if counts == Some(true) {
                let age = client::age(world, &next, a, 0);
                client::count(world, &mut next, a, s, age);
                self.found.push((
                    Action::Fence {
                        by: s,
                        of: a,
                        answered,
                    },
                    next,
                ));
            }
        }
    }

    /// Whether the client sends this server RENEWs, or did.
    fn is_renewed(&self, s: usize, a: usize) -> bool {
        let attempt = &self.state.attempts[a];
        let (fenced, out) = (
            attempt.servers & (1 << s) != 0,
            attempt.released & (1 << s) != 0,
        );
        let more = match attempt.phase {
            Phase::Idle | Phase::Asking => return false,
            Phase::Fixed => !self.keeps(Without::NoLateGrants),
            Phase::Held => self.world.is_timed() && self.keeps(Without::RejoinFenced),
            _ => false,
        };
        fenced || more && !(out && self.keeps(Without::ReleasedIsOut))
    }

    fn release(&mut self, s: usize, a: usize) {
        let sent = self.state.attempts[a].released & (1 << s) != 0;
        // Without time any lease may end now, which is the same.
        if sent && self.world.is_timed() && self.state.servers[s].owner == self.world.owner(a) {
            self.add(Action::Release { by: s, of: a }, |next| {
                next.servers[s].free()
            });
        }
    }

    fn tick(&mut self) {
        let world = self.world;
        self.add(Action::Tick, |next| client::pass(world, next, None));
        if !self.keeps(Without::ClockThroughSuspend) {
            for still in 0..world.clients.len() {
                let action = Action::TickBut(still);
                self.add(action, |next| client::pass(world, next, Some(still)));
            }
        }
    }

    /// Where answers are letters. (A RENEW that was sent long before it came to the server would
    /// count for less.)
    fn letters(&mut self, s: usize, a: usize) {
        let world = self.world;
        if !self.is_renewed(s, a) {
            return;
        }
        let mut next = self.state;
        if client::serve(world, &mut next, s, a) == Some(true) {
            next.attempts[a].sent[s] = 0;
            self.found.push((Action::Answer { by: s, to: a }, next));
        }
        let sent = self.state.attempts[a].sent[s];
        if sent != NEVER {
            self.add(Action::Hear { from: s, who: a }, |next| {
                let age = client::age(world, next, a, sent);
                next.attempts[a].sent[s] = NEVER;
                client::count(world, next, a, s, age);
            });
        }
    }
}

/// The reply to an ACQUIRE comes.
fn take_grant(world: &World, next: &mut State, s: usize, a: usize, token: Token, arrival: Arrival) {
    let attempt = &mut next.attempts[a];
    match arrival {
        Arrival::Never => {}
        Arrival::InTime => {
            let first = attempt.token != 0 && !world.keeps(Without::Greatest);
            attempt.servers |= 1 << s;
            attempt.token = if first {
                attempt.token
            } else {
                attempt.token.max(token)
            };
        }
        Arrival::Late => attempt.released |= 1 << s,
        Arrival::Counted => {
            let held = attempt.phase == Phase::Held;
            let age = if held { 0 } else { attempt.since };
            client::count(world, next, a, s, age);
        }
    }
}

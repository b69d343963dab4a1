//! The steps that can be taken in a state: what clients do.

use super::Steps;
use crate::action::Action;
use crate::attempt::{Attempt, NEVER, Phase};
use crate::rules::{Promise, Without, World};
use crate::state::{SERVERS, State, Token};

impl Steps<'_> {
    pub(super) fn client(&mut self, a: usize) {
        let world = self.world;
        let attempt = self.state.attempts[a];
        match attempt.phase {
            Phase::Idle => {
                let first = a.is_multiple_of(world.attempts);
                if first || self.state.attempts[a - 1].phase == Phase::Over {
                    self.add(Action::Begin(a), |next| {
                        next.attempts[a].phase = Phase::Asking
                    });
                }
            }
            Phase::Asking => {
                self.fix(a);
                self.add(Action::GiveUp(a), |next| end(world, next, a));
            }
            Phase::Fixed => {
                if self.state.is_valid(world, a) {
                    self.add(Action::Give(a), |next| give(world, next, a));
                }
                self.add(Action::GiveUp(a), |next| end(world, next, a));
            }
            Phase::Held => self.add(Action::Finish(a), |next| end(world, next, a)),
            Phase::Over => {}
        }
        if world.letters && matches!(attempt.phase, Phase::Fixed | Phase::Held) {
            for server in (0..world.servers).filter(|s| world.client(a).names & (1 << s) != 0) {
                self.letters(server, a);
            }
        }
        if world.writes && attempt.given {
            self.write(a, attempt.token);
        }
    }

    fn write(&mut self, a: usize, token: Token) {
        let refused = token < self.state.stored;
        if refused && self.keeps(Without::StorageChecks) {
            return;
        }
        self.add(Action::Write(a), |next| {
            next.stored = next.stored.max(token);
            if refused {
                next.breaks(Promise::Storage);
            }
        });
    }

    /// A majority has granted.
    fn fix(&mut self, a: usize) {
        let world = self.world;
        let attempt = self.state.attempts[a];
        if (attempt.servers.count_ones() as usize) < world.client(a).quorum {
            return;
        }
        let awaited = self.keeps(Without::Fence) && self.keeps(Without::FenceAwaited);
        self.add(Action::Fix(a), |next| {
            let behind = attempt.token <= next.given();
            let fixed = &mut next.attempts[a];
            fixed.phase = Phase::Fixed;
            fixed.behind = behind;
            let age = if world.keeps(Without::CountedFromBefore) {
                attempt.since
            } else {
                0
            };
            for server in (0..SERVERS).filter(|s| !awaited && attempt.servers & (1 << s) != 0) {
                count(world, next, a, server, age);
            }
        });
    }
}

/// A server takes a RENEW; whether the client counts it for its reply. `None`: NOTHELD.
pub fn serve(world: &World, state: &mut State, s: usize, a: usize) -> Option<bool> {
    let (server, owner) = (&mut state.servers[s], world.owner(a));
    let attempt = &state.attempts[a];
    if !world.keeps(Without::Fence) {
        return server.renew(owner).map(|()| true);
    }
    if !world.keeps(Without::FenceByHolder) && server.owner != owner {
        server.counter = server.counter.max(attempt.token);
        return Some(server.counter == attempt.token);
    }
    let before = *server;
    let mut reply = server.fence(owner, attempt.token)?;
    if !world.keeps(Without::NeverLowered) {
        server.counter = attempt.token;
        server.clock = before.clock;
        reply = attempt.token;
    }
    let any = match attempt.phase {
        Phase::Held => !world.keeps(Without::RejoinEqual),
        _ => false,
    };
    Some(reply == attempt.token || any || !world.keeps(Without::Equal))
}

/// From when a server counts whose answer came now, to a RENEW that was sent so long ago.
pub fn age(world: &World, state: &State, a: usize, sent: u8) -> u8 {
    let attempt = &state.attempts[a];
    match attempt.phase {
        _ if !world.keeps(Without::CountedFromBefore) => 0,
        Phase::Fixed if !world.keeps(Without::FromFence) => attempt.since,
        _ => sent,
    }
}

/// The server counts from now on, for what is left.
pub fn count(world: &World, state: &mut State, a: usize, s: usize, age: u8) {
    let timeless = !world.is_timed() && state.attempts[a].phase == Phase::Held;
    if timeless || world.is_timed() && age >= world.validity() {
        return;
    }
    let greater = state.given();
    let attempt = &mut state.attempts[a];
    attempt.servers |= 1 << s;
    // What an older letter says is older.
    let known = attempt.counted[s];
    attempt.counted[s] = if known == NEVER { age } else { known.min(age) };
    if attempt.lapsed && attempt.counts() >= world.client(a).quorum {
        attempt.lapsed = false;
        if attempt.token < greater {
            state.breaks(Promise::Rising);
        }
    }
}

fn give(world: &World, state: &mut State, a: usize) {
    let greatest = state.given();
    let attempt = state.attempts[a];
    let is_given = |other: &Attempt| other.given && other.token == attempt.token;
    if attempt.behind || state.attempts.iter().any(is_given) {
        state.breaks(Promise::Rising);
    }
    if attempt.token <= greatest {
        state.breaks(Promise::RisingAsGiven);
    }
    let attempt = &mut state.attempts[a];
    attempt.phase = Phase::Held;
    attempt.given = true;
    attempt.behind = false;
    attempt.since = 0;
    if !world.is_timed() {
        // What counts is not looked at any more.
        attempt.counted = [NEVER; SERVERS];
        attempt.sent = [NEVER; SERVERS];
    }
}

/// RELEASE is sent.
fn end(world: &World, state: &mut State, a: usize) {
    let attempt = &mut state.attempts[a];
    let all = world.keeps(Without::ReleaseToAll);
    attempt.end(if all {
        world.client(a).names
    } else {
        attempt.servers
    });
    if attempt.token == 0 || !attempt.given && !world.late {
        attempt.token = 0;
        attempt.servers = 0;
    }
}

/// A tick goes by, but for the client whose clock stands still.
pub fn pass(world: &World, state: &mut State, still: Option<usize>) {
    for server in &mut state.servers[..world.servers] {
        if !server.is_free() {
            server.age = (server.age + 1).min(world.lease);
        }
        server.shut = server.shut.saturating_sub(1);
    }
    for a in (0..world.tries()).filter(|a| Some(world.client_of(*a)) != still) {
        state.attempts[a].pass(world.validity(), world.keeps(Without::CountedFromBefore));
        if world.counts_replies() {
            state.attempts[a].since = 0;
        }
        if state.attempts[a].phase != Phase::Held || state.is_valid(world, a) {
            continue;
        }
        if world.keeps(Without::LostForEver) {
            end(world, state, a);
        } else {
            state.attempts[a].lapsed = true;
        }
    }
}

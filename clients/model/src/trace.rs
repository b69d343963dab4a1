//! The way to a state, in words that can be read.

use crate::action::{Action, Arrival};
use crate::rules::World;
use crate::state::{State, Token};
use crate::step::steps;
use crate::twins::Twins;

/// Of each state only one of its twins is known. So the way is gone once more, with the names
/// left as they are.
pub fn words(world: &World, twins: &Twins, way: &[State]) -> Vec<String> {
    let mut state = way[0];
    let mut numbers = Numbers::default();
    let mut lines = Vec::new();
    for next in &way[1..] {
        let mut found = Vec::new();
        steps(world, &state, &mut found);
        let leads = |(_, raw): &&(Action, State)| twins.first(&raw.settled()) == *next;
        let (action, raw) = found.iter().find(leads).unwrap();
        let names = numbers.read(raw, *action);
        lines.push(say(world, *action, &state, raw, |token| {
            names[usize::from(token)].clone()
        }));
        state = raw.settled();
    }
    lines.iter().map(|line| numbers.fill(line)).collect()
}

/// Tokens as numbers that stay the same on the whole way.
#[derive(Default)]
struct Numbers {
    /// All that there were, in their order, each by its own name.
    order: Vec<usize>,
    /// The names of those of the state, by their ranks.
    ranks: Vec<usize>,
}

impl Numbers {
    /// How the tokens of a state are written that is not settled. What is only counted is
    /// `3+`: more than 3, and less than 4.
    fn read(&mut self, raw: &State, action: Action) -> Vec<String> {
        let mut known = raw.known();
        if let Action::Grant { token, .. } = action {
            known |= u64::from(token % 4 == 3) << token;
        }
        let mut names = vec!["0".to_owned()];
        let mut ranks = Vec::new();
        for token in 1..64 {
            let below = (token / 4 > 0)
                .then(|| self.ranks.get(token / 4 - 1).copied())
                .flatten();
            if known & (1 << token) == 0 {
                let below = below.map_or("0".to_owned(), mark);
                names.push(format!("{below}+"));
                continue;
            }
            let name = match token % 4 {
                0 => below.unwrap(),
                _ => self.insert(self.ranks.get(token / 4).copied()),
            };
            if raw.known() & (1 << token) != 0 {
                ranks.push(name);
            }
            names.push(mark(name));
        }
        self.ranks = ranks;
        names
    }

    /// A new one, below this.
    fn insert(&mut self, above: Option<usize>) -> usize {
        let new = self.order.len();
        let above = above.and_then(|above| self.order.iter().position(|name| *name == above));
        self.order.insert(above.unwrap_or(new), new);
        new
    }

    fn fill(&self, line: &str) -> String {
        let mut line = line.to_owned();
        for (place, name) in self.order.iter().enumerate() {
            line = line.replace(&mark(*name), &format!("{}", place + 1));
        }
        line
    }
}

fn mark(name: usize) -> String {
    format!("<{name}>")
}

fn say(
    world: &World,
    action: Action,
    before: &State,
    after: &State,
    token: impl Fn(Token) -> String,
) -> String {
    let own = |a: usize| token(after.attempts[a].token);
    let who = |a: usize| {
        let client = char::from(b'A' + world.client_of(a) as u8);
        format!("{client}{}", a % world.attempts + 1)
    };
    let counter = |s: usize| match after.servers[s].counter {
        0 => "it has no counter".to_owned(),
        counter => format!("its counter is {}", token(counter)),
    };
    match action {
        Action::Begin(a) => format!("{} asks all its servers for the lock", who(a)),
        Action::Grant {
            by,
            to,
            token: new,
            arrival,
        } => {
            let (s, a, new) = (by + 1, who(to), token(new));
            let what = match before.servers[by].owner {
                0 => format!("s{s} grants {a} the lock with token {new}"),
                _ => format!("s{s} tells {a}, who says ONCE, its token {new}"),
            };
            match arrival {
                Arrival::Never => format!("{what}; the reply is lost"),
                Arrival::InTime => format!("{what}; the reply reaches it"),
                Arrival::Late => format!("{what}; the reply comes late: {a} sends a RELEASE"),
                Arrival::Counted => format!("{what}; the reply comes late: {a} counts s{s}"),
            }
        }
        Action::Fix(a) => {
            let servers = after.attempts[a].servers;
            let all = (0..world.servers).filter(|s| servers & (1 << s) != 0);
            let all: Vec<String> = all.map(|s| format!("s{}", s + 1)).collect();
            format!(
                "{} takes {} for its majority: its token is {}",
                who(a),
                all.join(" and "),
                own(a)
            )
        }
        Action::Fence { by, of, answered } => {
            let fence = match world.keeps(crate::rules::Without::Fence) {
                true => format!("FENCE {}", own(of)),
                false => "RENEW".to_owned(),
            };
            let tail = match answered {
                true => format!("{} counts it", who(of)),
                false => format!("{} does not count it, or gets no reply", who(of)),
            };
            format!(
                "s{} takes {}'s {fence}: {}; {tail}",
                by + 1,
                who(of),
                counter(by)
            )
        }
        Action::Answer { by, to } => {
            format!(
                "s{} takes {}'s RENEW: {}; the reply is under way",
                by + 1,
                who(to),
                counter(by)
            )
        }
        Action::Hear { from, who: a } => {
            format!(
                "the reply of s{} reaches {}, which counts it",
                from + 1,
                who(a)
            )
        }
        Action::Give(a) => format!("{} is given to its program, with token {}", who(a), own(a)),
        Action::GiveUp(a) => format!("{} gives up: it sends RELEASE", who(a)),
        Action::Finish(a) => format!("the program of {} is done: it sends RELEASE", who(a)),
        Action::Release { by, of } => format!(
            "a RELEASE of {} comes to s{}, which is free",
            who(of),
            by + 1
        ),
        Action::Write(a) => format!("the program of {} writes, with token {}", who(a), own(a)),
        Action::Tick => "time goes by".to_owned(),
        Action::TickBut(client) => {
            let client = char::from(b'A' + client as u8);
            format!("time goes by, but {client} is suspended and its clock stands still")
        }
        Action::Expire(s) => format!("the lease ends at s{}", s + 1),
        Action::Restart(s) => format!("s{} restarts", s + 1),
        Action::Forget(s) => format!("s{} restarts and has lost everything", s + 1),
        Action::Failover(s) => format!(
            "s{} fails over to a replica that lacks the last writes",
            s + 1
        ),
        Action::Force(s) => format!("somebody frees the lock at s{} by FORCE or DEL", s + 1),
        Action::Cut(s) => format!(
            "the holder's connection to s{} is cut: WATCHDOG frees the lock",
            s + 1
        ),
    }
}

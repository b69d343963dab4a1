//! Kinds of commands, and what a kind comes to on two servers.

use crate::load::{command, Connection, Expect, Load, Outcome, Rate};
use crate::stats::median;

/// Keys that every kind of command goes through.
const KEYS: usize = 10_000;
const VALUE: &str = "0123456789abcdef";

/// One kind of command.
pub struct Kind {
    /// What the report calls it.
    pub name: &'static str,
    load: Load,
    /// Runs unmeasured before each pass through the keys.
    prepare: Option<Load>,
}

impl Kind {
    fn new(name: &'static str, expect: Expect, depth: usize, build: fn(&str) -> Vec<u8>) -> Self {
        let commands: Vec<_> = (0..KEYS).map(|n| build(&n.to_string())).collect();
        Kind {
            name,
            load: Load::new(depth, &commands, &[expect]),
            prepare: None,
        }
    }

    /// All kinds, each with keys of its own; GET reads what SET wrote.
    pub fn all(depth: usize) -> Vec<Kind> {
        let ok = Expect::Exactly("+OK\r\n");
        let set = |n: &str| command(&["SET", &format!("string:{n}"), VALUE]);
        let get = |n: &str| command(&["GET", &format!("string:{n}")]);
        let hset = |n: &str| command(&["HSET", &format!("hash:{n}"), "field", VALUE]);
        let set_px = |n: &str| command(&["SET", &format!("mortal:{n}"), VALUE, "PX", "600000"]);
        let set_doomed = |n: &str| command(&["SET", &format!("doomed:{n}"), VALUE]);
        let del = |n: &str| command(&["DEL", &format!("doomed:{n}")]);
        vec![
            Kind::new("SET", ok, depth, set),
            Kind::new("GET", Expect::Bulk, depth, get),
            Kind::new("HSET", Expect::Integer, depth, hset),
            Kind::new("SET PX", ok, depth, set_px),
            Kind {
                prepare: Some(Kind::new("SET", ok, depth, set_doomed).load),
                ..Kind::new("DEL", Expect::Exactly(":1\r\n"), depth, del)
            },
        ]
    }

    /// Once through the keys; adds what it took to `turn`.
    pub fn pass(&mut self, connection: &mut Connection, turn: &mut Turn) -> Outcome<()> {
        if let Some(prepare) = &mut self.prepare {
            prepare.run_once(connection)?;
        }
        let before = connection.server_cpu()?;
        let rate = self.load.run_once(connection)?;
        turn.cpu += connection.server_cpu()? - before;
        turn.rate.commands += rate.commands;
        turn.rate.time += rate.time;
        Ok(())
    }
}

/// What some passes on one server came to.
#[derive(Default)]
pub struct Turn {
    rate: Rate,
    /// Seconds of the server's processor time.
    cpu: f64,
}

impl Turn {
    fn cpu_per_command(&self) -> f64 {
        self.cpu / self.rate.commands as f64
    }
}

/// The turns of one kind in one state of the module.
#[derive(Default)]
pub struct Figures {
    without: Vec<Turn>,
    with: Vec<Turn>,
}

impl Figures {
    /// One turn on each server. The passes go to and fro as in a b b a, so
    /// that whatever else the machine does falls on both; and either server
    /// comes after itself, with its caches warm, as often as after the other.
    pub fn sample(
        &mut self,
        kind: &mut Kind,
        without: &mut Connection,
        with: &mut Connection,
        times: usize,
    ) -> Outcome<()> {
        let (mut plain, mut loaded) = (Turn::default(), Turn::default());
        kind.pass(with, &mut Turn::default())?;
        kind.pass(without, &mut Turn::default())?;
        for _ in 0..times {
            kind.pass(without, &mut plain)?;
            kind.pass(with, &mut loaded)?;
            kind.pass(with, &mut loaded)?;
            kind.pass(without, &mut plain)?;
        }
        self.without.push(plain);
        self.with.push(loaded);
        Ok(())
    }

    /// The medians of operations per second, without and with.
    pub fn rates(&self) -> [f64; 2] {
        [&self.without, &self.with].map(|turns| {
            let rates: Vec<f64> = turns.iter().map(|turn| turn.rate.per_second()).collect();
            median(&rates)
        })
    }

    /// Percent of the operations per second that were lost, turn by turn.
    pub fn lost(&self) -> Vec<f64> {
        let share = |(without, with): (&Turn, &Turn)| {
            1.0 - with.rate.per_second() / without.rate.per_second()
        };
        self.percent(share)
    }

    /// Percent of processor time that a command took more, turn by turn.
    pub fn more_cpu(&self) -> Vec<f64> {
        let share = |(without, with): (&Turn, &Turn)| {
            with.cpu_per_command() / without.cpu_per_command() - 1.0
        };
        self.percent(share)
    }

    fn percent(&self, share: impl Fn((&Turn, &Turn)) -> f64) -> Vec<f64> {
        let turns = self.without.iter().zip(&self.with);
        turns.map(|turn| share(turn) * 100.0).collect()
    }
}

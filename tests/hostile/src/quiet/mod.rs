//! What a refused request changes: nothing. One request at a time, on a quiet server, with a
//! look at everything before and after.

pub mod snapshot;
mod world;

use std::io;
use std::time::Instant;

use crate::draw::{Args, Draw};
use crate::figures::Figures;
use crate::resp::Value;
use crate::server::Server;
use crate::shape;
use snapshot::difference;
use world::{channel, Step, World};

pub use world::until_all_are_closed;

/// Steps from one flush to the next.
const CHAPTER: usize = 40;
/// So often a finding must show again, of as many tries.
const AGAIN: usize = 2;

/// Chapters until then.
pub fn run(
    server: &mut Server,
    figures: &mut Figures,
    seed: u64,
    until: Instant,
) -> Result<(), String> {
    let mut draw = Draw::new(seed, true);
    while Instant::now() < until {
        let lost = |error: io::Error| format!("a quiet chapter: {error}");
        let mut steps = Vec::new();
        let found = chapter(server.port, &mut draw, figures, &mut steps);
        if let Some(trouble) = server.trouble() {
            return Err(format!("{trouble}\n{}", told(&steps)));
        }
        let Some(what) = found.map_err(lost)? else {
            continue;
        };
        let port = server.port;
        if (0..AGAIN).all(|_| matches!(replay(port, &steps), Ok(Some(_)))) {
            let (steps, what) = shrink(port, steps, what);
            return Err(format!("{what}\nafter\n{}", told(&steps)));
        }
        println!(
            "not seen again, so it may have passed by itself: {what}\nafter\n{}",
            told(&steps)
        );
        figures.not_seen_again += 1;
    }
    Ok(())
}

fn told(steps: &[Step]) -> String {
    let lines: Vec<_> = steps.iter().map(Step::told).collect();
    lines.join("\n")
}

fn chapter(
    port: u16,
    draw: &mut Draw,
    figures: &mut Figures,
    steps: &mut Vec<Step>,
) -> io::Result<Option<String>> {
    let mut world = World::new(port)?;
    for _ in 0..CHAPTER {
        let by = draw.rng.usize(0..world.links.len());
        draw.channel = Some(channel(by));
        let args = match draw.rng.u32(0..10) {
            0..6 => draw.rlock(),
            6 => draw.script(),
            _ => draw.other(),
        };
        figures.sent(&args);
        steps.push(Step { by, args });
        let step = &steps[steps.len() - 1];
        if !says_one_thing(&step.args) {
            match world.take(step)? {
                Some(Value::Bulk(dump)) if step.args[0] == b"DUMP" => draw.saw_dump(dump),
                Some(_) => {}
                None => return Ok(None),
            }
            continue;
        }
        match checked(&mut world, step)? {
            Checked::Closed => return Ok(None),
            Checked::Wrong(what) => return Ok(Some(what)),
            Checked::Right(reply) => {
                figures.replied(&reply);
                if is_refusal(&reply) {
                    figures.is_unchanged(&reply);
                }
                if let Value::Int(token) = reply {
                    draw.saw_token(token);
                }
            }
        }
    }
    Ok(None)
}

enum Checked {
    Closed,
    Wrong(String),
    Right(Value),
}

/// Carries out a step, with a look before and after.
fn checked(world: &mut World, step: &Step) -> io::Result<Checked> {
    let before = match world.seen.take() {
        Some(seen) => seen,
        None => {
            world.settle()?;
            if snapshot::is_restless(&mut world.control)? {
                return Ok(Checked::Closed);
            }
            world.at_rest()?
        }
    };
    let Some(reply) = world.take(step)? else {
        return Ok(Checked::Closed);
    };
    if let Err(what) = shape::check(&step.args, &reply, true) {
        return Ok(Checked::Wrong(format!("{what}: {reply}")));
    }
    if is_refusal(&reply) {
        let after = snapshot::of_all(&mut world.control)?;
        if let Some(difference) = difference(&before, &after) {
            return Ok(Checked::Wrong(format!(
                "refused by {reply}, and changed:\n{difference}"
            )));
        }
        world.seen = Some(after);
    }
    Ok(Checked::Right(reply))
}

/// An error, or null: somebody else has it.
fn is_refusal(reply: &Value) -> bool {
    reply.error().is_some() || reply.is_null()
}

/// A command of rlock, by itself or in a script that does nothing else.
pub fn says_one_thing(args: &Args) -> bool {
    match args[0].as_slice() {
        b"EVAL" | b"EVAL_RO" => {
            let plain = args[1].starts_with(b"return redis.") && !args[1].contains(&b'\'');
            plain
                && args
                    .get(3)
                    .is_some_and(|inner| inner.starts_with(b"RLOCK."))
        }
        name => name == b"FCALL" || name.starts_with(b"RLOCK."),
    }
}

/// The same steps once more, with a look at the last.
fn replay(port: u16, steps: &[Step]) -> io::Result<Option<String>> {
    let Some((last, steps)) = steps.split_last() else {
        return Ok(None);
    };
    let mut world = World::new(port)?;
    for step in steps {
        if world.take(step)?.is_none() {
            return Ok(None);
        }
    }
    Ok(match checked(&mut world, last)? {
        Checked::Wrong(what) => Some(what),
        Checked::Closed | Checked::Right(_) => None,
    })
}

/// Without the steps that do not matter.
fn shrink(port: u16, mut steps: Vec<Step>, mut what: String) -> (Vec<Step>, String) {
    let mut at = 0;
    while at + 1 < steps.len() {
        let mut fewer = steps.clone();
        fewer.remove(at);
        match replay(port, &fewer) {
            Ok(Some(found)) => (steps, what) = (fewer, found),
            _ => at += 1,
        }
    }
    (steps, what)
}

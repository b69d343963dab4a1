//! Load, and things done to the servers; rest, and a comparison; and again.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::thread;

use super::acts::{self, Counts};
use super::compare::compare;
use super::set::{Set, Syncs};
use crate::clock::{now_us, pause};
use crate::load::{shared_keys, Journal, Load};

#[derive(Default)]
pub struct Done {
    pub bouts: u64,
    pub requests: u64,
    pub waited: u64,
    pub acts: Counts,
    pub syncs: Syncs,
    pub replicas: u64,
    pub aofs: u64,
    pub keys: u64,
    pub findings: Vec<String>,
}

/// So many bouts on servers of their own; fewer if it is so late, or something is found.
pub fn run(dir: &Path, seed: u64, bouts: u64, ms: u64, until: u64) -> io::Result<Done> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut set = Set::start(dir, &mut rng)?;
    let mut done = Done::default();
    for bout in 0..bouts {
        let life = ms / 2 + rng.u64(..ms);
        let mut trace = Vec::new();
        let journal = under_load(&mut set, seed ^ bout << 48, life, &mut rng, &mut trace)?;
        trace
            .iter()
            .for_each(|(act, ..)| *done.acts.entry(*act).or_default() += 1);
        done.requests += journal.requests;
        done.waited += journal.waited;
        done.bouts += 1;
        if !(0..set.nodes.len()).any(|number| set.nodes[number].of.is_some()) {
            let (master, other) = (set.master, (set.master + 1) % set.nodes.len());
            set.attach(other, master);
        }
        let compared = compare(&set, dir)?;
        done.replicas += compared.replicas;
        done.aofs += compared.aofs;
        done.keys += compared.keys;
        if !compared.findings.is_empty() {
            done.findings.extend(compared.findings);
            let all = format!("seed {seed}, bout {bout}, master {}: {trace:?}", set.master);
            done.findings.push(all);
            break;
        }
        if now_us() > until {
            break;
        }
    }
    let (syncs, faults) = set.end();
    done.syncs = syncs;
    done.findings.extend(faults);
    Ok(done)
}

/// An act, the server it was done to, and when, ms.
type Trace = Vec<(acts::Act, usize, u64)>;

fn under_load(
    set: &mut Set,
    seed: u64,
    life: u64,
    rng: &mut fastrand::Rng,
    trace: &mut Trace,
) -> io::Result<Journal> {
    // Nobody who left them behind comes back.
    for key in shared_keys("k") {
        set.master().say(&format!("RLOCK.FORCE {key}"));
    }
    let load = Load {
        port: AtomicU16::new(set.master().port()),
        over: AtomicBool::new(false),
        seed,
        name: "k".to_owned(),
        loose: true,
        counter: false,
    };
    thread::scope(|scope| {
        let clients = load.start(scope);
        let begin = now_us();
        let mut acted = Ok(());
        while now_us() < begin + life * 1000 && acted.is_ok() {
            pause(rng.u64(..150));
            // Often a bout begins with nobody who listens.
            let act = match trace.is_empty() && rng.u8(..4) == 0 {
                true => acts::Act::DropBacklog,
                false => acts::draw(rng),
            };
            let at = (now_us() - begin) / 1000;
            match acts::act(set, act, rng) {
                Ok(Some(number)) => trace.push((act, number, at)),
                Ok(None) => {}
                Err(error) => acted = Err(error),
            }
            load.port.store(set.master().port(), Ordering::SeqCst);
        }
        load.over.store(true, Ordering::SeqCst);
        let mut journal = Journal::default();
        for client in clients {
            // A panic is a fault of this program.
            let more = client.join().expect("a client");
            journal.requests += more.requests;
            journal.waited += more.waited;
        }
        acted.map(|()| journal)
    })
}

//! Five hundred clients in fifty processes share ten permits, and a fifth of them are killed:
//! the test counts by itself that no more than ten are ever out, that all come back, that
//! everybody who lives goes on, and that nobody is overtaken. How long it goes on is given
//! by RLOCK_SOAK_SECONDS.

mod judge;
mod log;
mod worker;

use std::env;
use std::io::Write;
use std::time::{Duration, Instant};

use crate::support::{eventually, wait_for, Ask, Process, Server, BOUND};
use judge::{holds, most_out, overtaken, Hold};
use log::{moment, Event};

const KEY: &str = "permits";
const LIMIT: i64 = 10;
const PROCESSES: usize = 50;
const CLIENTS_EACH: usize = 10;

/// So many processes are killed, one after the other, each while it holds permits.
const KILLED: usize = PROCESSES / 5;

/// What came of it.
struct Outcome {
    /// Of each process the last moment at which it was alive, of those that were killed.
    killed: Vec<Option<i64>>,
    /// From the end of the last process until all permits were back.
    back_after: Duration,
}

#[test]
fn no_more_than_ten_permits_are_out_among_processes_that_are_killed() {
    let seconds = env::var("RLOCK_SOAK_SECONDS").map_or(5, |text| {
        text.parse()
            .expect("RLOCK_SOAK_SECONDS is a number of seconds")
    });
    let server = Server::start();
    let outcome = run(&server, seconds);
    let read = |(number, killed): (usize, &Option<i64>)| {
        holds(&log::read(&log::path(server.dir(), number)), *killed)
    };
    let of_each: Vec<Vec<Hold>> = outcome.killed.iter().enumerate().map(read).collect();
    let all: Vec<Hold> = of_each.concat();

    let orphans: Vec<&Hold> = all.iter().filter(|hold| hold.is_orphan).collect();
    let watched = orphans.iter().filter(|hold| hold.granted.lease.is_none());
    let most = most_out(&all);
    let grants = grants_of_the_living(&of_each, &outcome.killed);
    let least = *grants.iter().min().expect("clients");
    println!(
        "{} clients in {PROCESSES} processes, {KILLED} of them killed, {seconds} s: {} grants \
         ({least} to {} each of those that live), longest wait {} ms, at most {most} of {LIMIT} \
         permits out, {} died with {} holders ({} of these with WATCHDOG), all back {} ms after",
        PROCESSES * CLIENTS_EACH,
        all.len(),
        grants.iter().max().expect("clients"),
        longest_wait_ms(&all),
        orphans.iter().map(|hold| hold.granted.permits).sum::<i64>(),
        orphans.len(),
        watched.count(),
        outcome.back_after.as_millis(),
    );
    assert!(most <= LIMIT, "{most} permits were out");
    assert!(
        most > LIMIT / 2,
        "{most} permits seen at once: what is seen?"
    );
    assert!(least > 0, "{grants:?}");
    assert!(!orphans.is_empty(), "nobody was killed who held any");
    if let Some((first, second)) = overtaken(&all) {
        panic!("{second:?} was granted before {first:?}");
    }
    server.alive();
}

/// All processes from their start to their ends.
fn run(server: &Server, seconds: u64) -> Outcome {
    let mut workers: Vec<Process> = (0..PROCESSES).map(|n| worker::start(server, n)).collect();
    let clients = PROCESSES * CLIENTS_EACH;
    eventually("all are connected", || {
        let connected = server.info_field("clients", "connected_clients");
        // And the one that asks.
        connected.is_some_and(|count| count.parse::<usize>().expect("a number") > clients)
    });
    let begin = moment();
    let length = seconds as i64 * 1_000_000_000;
    let every = PROCESSES / KILLED;
    for (number, Process(worker)) in workers.iter_mut().enumerate() {
        // Those that are to be killed go on until they are, however busy the machine is.
        let longer = if number % every == 0 { 10 * length } else { 0 };
        let input = worker.stdin.as_mut().expect("its input");
        writeln!(input, "{}", begin + length + longer).expect("it reads");
    }
    let mut killed = vec![None; PROCESSES];
    // Evenly over the processes and over the time.
    for nth in 0..KILLED {
        let number = nth * every;
        let not_before = begin + length * (nth as i64 + 1) / (KILLED as i64 + 1);
        killed[number] = Some(kill(server, number, &mut workers[number], not_before));
    }
    for (number, Process(worker)) in workers.iter_mut().enumerate() {
        let status = worker.wait().expect("wait");
        let is_well = status.success() || killed[number].is_some();
        assert!(is_well, "process {number}: {status}");
    }
    Outcome {
        killed,
        back_after: take_all(server),
    }
}

/// Kills a process that holds permits: the last moment at which it was surely alive.
fn kill(server: &Server, number: usize, worker: &mut Process, not_before: i64) -> i64 {
    let path = log::path(server.dir(), number);
    let alive = wait_for("it holds permits", || {
        let alive = moment();
        let holds_some = || {
            let count = |is: fn(&Event) -> bool| {
                let log = log::read(&path);
                log.iter().filter(|(_, event)| is(event)).count()
            };
            count(|event| matches!(event, Event::Granted(_)))
                > count(|event| matches!(event, Event::Releasing(_)))
        };
        (alive >= not_before && holds_some()).then_some(alive)
    });
    worker.0.kill().expect("kill");
    worker.0.wait().expect("wait");
    alive
}

/// Nobody asks any more: all permits are there, and nothing else is left. How long it took.
fn take_all(server: &Server) -> Duration {
    let start = Instant::now();
    let mut control = server.raw();
    let bound = BOUND.as_millis();
    control.token(&format!(
        "RLOCK.ACQUIRE {KEY} last 600000 LIMIT {LIMIT} PERMITS {LIMIT} BLOCK {}",
        bound / 2
    ));
    let took = start.elapsed();
    assert_eq!(
        control.int(&format!("RLOCK.RELEASE {KEY} last PERMITS ALL")),
        0
    );
    control.is_free(KEY);
    assert_eq!(control.int("DBSIZE"), 0);
    took
}

/// How many grants each client had whose process was not killed.
fn grants_of_the_living(of_each: &[Vec<Hold>], killed: &[Option<i64>]) -> Vec<usize> {
    let living = of_each.iter().zip(killed).enumerate();
    let living = living.filter(|(_, (_, killed))| killed.is_none());
    let grants = living.flat_map(|(process, (holds, _))| {
        let clients = (process * CLIENTS_EACH..).take(CLIENTS_EACH);
        clients.map(|client| holds.iter().filter(|hold| hold.id.0 == client).count())
    });
    grants.collect()
}

fn longest_wait_ms(all: &[Hold]) -> i64 {
    let waits = all.iter().map(|hold| hold.granted.seen - hold.granted.sent);
    waits.max().expect("grants") / 1_000_000
}

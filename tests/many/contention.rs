//! Many clients that take random pairs and triples of a few keys: nobody stands
//! still, and nobody is let in to where another is. How long it goes on is given by
//! RLOCK_SOAK_SECONDS.

use std::env;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use redis::Value;

use crate::support::{token, Ask, Random, RawClient, Server};

const CLIENTS: usize = 32;
const KEYS: usize = 8;

/// Whoever waits for longer is taken to wait for ever: a turn of all others takes
/// a few ms.
const STUCK: Duration = Duration::from_secs(60);

/// Nobody.
const FREE: usize = usize::MAX;

/// Two or three keys, in any order.
fn some_keys(random: &mut Random) -> Vec<usize> {
    let mut keys: Vec<usize> = (0..KEYS).collect();
    for at in 0..KEYS {
        let other = at + random.below(KEYS - at);
        keys.swap(at, other);
    }
    keys.truncate(2 + random.below(2));
    keys
}

/// What one client did.
struct Done {
    turns: usize,
    given_up: usize,
    longest: Duration,
}

fn names(keys: &[usize]) -> String {
    let names: Vec<String> = keys.iter().map(|key| format!("k{key}")).collect();
    names.join(" ")
}

/// Nobody else has entered where `who` was let in; it leaves before it releases.
fn enter(inside: &[AtomicUsize], keys: &[usize], who: usize) {
    for key in keys {
        let before = inside[*key].swap(who, Ordering::SeqCst);
        assert_eq!(before, FREE, "client {who} was let in to key {key}");
    }
}

fn leave(inside: &[AtomicUsize], keys: &[usize], who: usize) {
    for key in keys {
        let before = inside[*key].swap(FREE, Ordering::SeqCst);
        assert_eq!(before, who, "client {who} was not alone at key {key}");
    }
}

/// Releases in one of the ways there are; each key is then another's.
fn release(client: &mut RawClient, random: &mut Random, keys: &[usize], owner: &str) {
    if random.below(2) == 0 {
        let all = names(keys);
        let line = format!("RLOCK.MRELEASE {} {all} {owner}", keys.len());
        assert_eq!(client.int(&line), keys.len() as i64);
        return;
    }
    let mut left = keys.to_vec();
    while !left.is_empty() {
        let key = left.swap_remove(random.below(left.len()));
        assert_eq!(client.int(&format!("RLOCK.RELEASE k{key} {owner}")), 0);
    }
}

fn work(server: &Server, inside: &[AtomicUsize], who: usize, until: Instant) -> Done {
    let mut client = server.raw();
    let mut random = Random::new(who as u64);
    let mut done = Done {
        turns: 0,
        given_up: 0,
        longest: Duration::ZERO,
    };
    for turn in 0.. {
        if Instant::now() >= until {
            break;
        }
        let keys = some_keys(&mut random);
        let owner = format!("c{who}-{turn}");
        // Some have no patience, so that they leave queues that others stand in.
        let block = if random.below(8) == 0 { 1 } else { 0 };
        let start = Instant::now();
        client.send(&format!(
            "RLOCK.MACQUIRE {} {} {owner} 600000 BLOCK {block} ONCE",
            keys.len(),
            names(&keys)
        ));
        let reply = client.read_within(STUCK);
        done.longest = done.longest.max(start.elapsed());
        match reply.unwrap_or_else(|| panic!("client {who} waits for ever for {keys:?}")) {
            Value::Nil if block > 0 => done.given_up += 1,
            granted => {
                token(granted);
                enter(inside, &keys, who);
                // As long as the server takes for a round trip.
                client.ask("PING");
                leave(inside, &keys, who);
                release(&mut client, &mut random, &keys, &owner);
                done.turns += 1;
            }
        }
    }
    done
}

#[test]
fn random_pairs_and_triples_of_a_few_keys_are_taken_by_turns() {
    let seconds = env::var("RLOCK_SOAK_SECONDS").map_or(4, |text| {
        text.parse()
            .expect("RLOCK_SOAK_SECONDS is a number of seconds")
    });
    let server = Server::start();
    let inside: Vec<AtomicUsize> = (0..KEYS).map(|_| AtomicUsize::new(FREE)).collect();
    let until = Instant::now() + Duration::from_secs(seconds);
    let all: Vec<Done> = thread::scope(|scope| {
        let running: Vec<_> = (0..CLIENTS)
            .map(|who| {
                let (server, inside) = (&server, &inside);
                scope.spawn(move || work(server, inside, who, until))
            })
            .collect();
        running
            .into_iter()
            .map(|one| one.join().expect("a client"))
            .collect()
    });

    let turns: Vec<usize> = all.iter().map(|done| done.turns).collect();
    let given_up: usize = all.iter().map(|done| done.given_up).sum();
    let longest = all.iter().map(|done| done.longest).max().expect("clients");
    let least = turns.iter().min().expect("clients");
    let most = turns.iter().max().expect("clients");
    let total: usize = turns.iter().sum();
    println!(
        "{CLIENTS} clients, {KEYS} keys, {seconds} s: {total} turns ({least} to {most} each), \
         {given_up} given up, longest wait {:.1} ms",
        longest.as_secs_f64() * 1e3
    );
    assert!(*least > 0, "{turns:?}");

    let mut client = server.raw();
    for key in 0..KEYS {
        client.is_free(&format!("k{key}"));
    }
    assert_eq!(client.int("DBSIZE"), 0);
    server.alive();
}

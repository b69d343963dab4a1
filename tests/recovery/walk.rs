//! The walk through many keys, while they change, and others go on.

use super::{late, presumed};
use crate::support::{Ask, Random, RawClient, Server};

/// Many locks, made by a script; every fifth key is none.
#[track_caller]
fn fill(client: &mut RawClient, db: usize, many: usize) {
    const AT_ONCE: usize = 5_000;
    let until = late();
    client.ok(&format!("SELECT {db}"));
    for from in (0..many).step_by(AT_ONCE) {
        let script = format!(
            "for i={from},{from}+{AT_ONCE}-1 do local k='k:'..i \
             if i%5==4 then redis.call('SET',k,i,'PXAT',{until}) else \
             redis.call('HSET',k,'owner:'..i,1) redis.call('PEXPIREAT',k,{until}) end end"
        );
        client.ask(&["EVAL", &script, "0"]);
    }
    client.ok("SELECT 0");
}

/// A server that has as many, and loads the module then.
#[track_caller]
fn loaded_with(dbs: usize, many: usize) -> Server {
    let server = Server::start();
    let mut client = server.raw();
    let path = client.module_path();
    client.unload_module();
    (0..dbs).for_each(|db| fill(&mut client, db, many));
    client.ok(&format!("MODULE LOAD {path}"));
    server
}

/// How many hashes there are that could be locks, by the server's own count.
#[track_caller]
fn candidates(client: &mut RawClient, dbs: usize) -> i64 {
    let script = "local n,c=0,'0' repeat local r=redis.call('SCAN',c,'TYPE','hash','COUNT',1000) \
                  c=r[1] for _,k in ipairs(r[2]) do if redis.call('PTTL',k)>0 then n=n+1 end end \
                  until c=='0' return n";
    let mut all = 0;
    for db in 0..dbs {
        client.ok(&format!("SELECT {db}"));
        all += client.int(&["EVAL", script, "0"]);
    }
    client.ok("SELECT 0");
    all
}

/// Changes keys at random until the walk is over. How many requests that were.
#[track_caller]
fn stir(client: &mut RawClient, watch: &mut RawClient, many: usize, dbs: usize) -> usize {
    let mut random = Random::new(7);
    let mut requests = 0;
    let mut below = |n: usize| random.below(n);
    while watch.counter("rlock_recovery_running") == 1 {
        let mut lines = Vec::new();
        for _ in 0..20 {
            let (key, to) = (below(many), below(many));
            let swaps = below(1000) == 0;
            lines.push(match below(40) {
                _ if swaps => format!("SWAPDB {} {}", below(dbs), below(dbs)),
                0..=1 => format!("SELECT {}", below(dbs)),
                2..=6 => format!("MOVE k:{key} {}", below(dbs)),
                7..=9 => format!("DEL k:{key}"),
                10..=12 => format!("PEXPIRE k:{key} {}", 1 + below(50)),
                13..=15 => format!("PEXPIRE k:{key} 5000000"),
                16..=28 => format!("RENAME k:{key} k:{to}"),
                _ => format!("RENAMENX k:{key} n:{to}"),
            });
        }
        requests += lines.len();
        client.ask_all(&lines);
    }
    requests
}

/// Whatever is renamed, moved and exchanged meanwhile: what is there in the end and could
/// be a lock is presumed to be one, and no more than that.
#[test]
fn no_key_gets_past_it() {
    const MANY: usize = 5_000;
    const DBS: usize = 3;
    let server = loaded_with(DBS, MANY);
    let (mut client, mut watch) = (server.raw(), server.raw());
    let requests = stir(&mut client, &mut watch, MANY, DBS);
    assert!(requests > 500, "it was over before anything changed");
    crate::support::eventually("what is there is presumed, and no more", || {
        let there = candidates(&mut client, DBS);
        watch.counter("rlock_recovery_presumed") == there
    });
    assert_eq!(watch.counter("rlock_expired"), 0);
    client.ok("FLUSHALL");
    presumed(&mut watch, 0);
    server.unharmed();
}

/// FLUSHALL in the midst of it.
#[test]
fn a_flush_leaves_nothing() {
    let server = loaded_with(2, 40_000);
    let mut client = server.raw();
    crate::support::eventually("it has begun", || {
        client.counter("rlock_recovery_presumed") > 100
    });
    client.ok("FLUSHALL");
    presumed(&mut client, 0);
    server.unharmed();
}

/// Others are answered all the while. (How long they wait at most is for the benchmark.)
#[test]
fn others_are_answered_meanwhile() {
    const MANY: usize = 20_000;
    let server = loaded_with(1, MANY);
    let (mut client, mut watch) = (server.raw(), server.raw());
    let mut pongs = 0;
    while watch.counter("rlock_recovery_running") == 1 {
        client.in_step();
        pongs += 1;
    }
    presumed(&mut watch, (MANY / 5 * 4) as i64);
    assert!(pongs > 20, "the walk was one piece: {pongs} answers");
}

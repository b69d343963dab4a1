//! A rest: all clients give back what they hold and leave. Then counters, queues and
//! copies must be as they should.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Error};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rlock_torture::clock::{now_us, wall_ms};
use rlock_torture::history::{Copies, Entry, Fault, Record, Rest};

use crate::clients::hear;
use crate::link::Link;
use crate::plan::Topology;
use crate::resp::Value;
use crate::servers::Server;
use crate::subscriber::counters;
use crate::world::{eventually, named, World};

/// Keys so near their end say nothing, ms.
const NEAR: u64 = 100;

pub fn rest(world: &mut World) -> io::Result<()> {
    if world.crashed()? {
        return Ok(());
    }
    world.follow()?;
    let begin = now_us();
    world
        .clients
        .iter_mut()
        .try_for_each(|client| client.tell("rest"))?;
    let count = world.clients.len();
    let mut left = count - hear(&world.heard, count, Duration::from_secs(4));
    let end = Instant::now() + Duration::from_secs(14);
    while left > 0 && Instant::now() < end && !world.crashed()? {
        force_all(world)?;
        left -= hear(&world.heard, left, Duration::from_millis(500));
    }
    if world.crashed()? {
        return Ok(());
    }
    for at in world.writable() {
        let mut link = named(world.servers[at].link()?)?;
        let seen = look(&mut link, world.servers[at].port)?;
        world.to.write(&Record::Rest(seen))?;
    }
    let mut all = Vec::new();
    let copies = match world.plan.topology {
        Topology::Replica | Topology::Sentinel => world.others(),
        _ => Vec::new(),
    };
    for at in copies {
        let replica = &world.servers[at];
        all.extend(compare(
            world,
            world.master,
            |_| Ok(None),
            |link| in_step(link, replica),
        )?);
    }
    if world.plan.aof {
        for at in world.writable() {
            all.extend(load_aof(world, at)?);
        }
    }
    for copies in all {
        world.to.write(&Record::Copies(copies))?;
    }
    let mut fault = Fault {
        kind: "rest".to_owned(),
        server: world.master().port,
        begin,
        end: now_us(),
        keys: Vec::new(),
        db: 0,
        ms: 0,
        note: String::new(),
    };
    if left > 0 {
        fault.note = format!("{left} client processes did not come to rest");
    }
    world.record(fault)
}

/// Frees what is still held after some seconds, so that those who wait come in.
fn force_all(world: &mut World) -> io::Result<()> {
    for key in world.hot_keys() {
        let act = crate::plan::Act::Force(key);
        world.act(&act)?;
    }
    Ok(())
}

/// Counters and queues, once they have come to rest, or after some seconds.
fn look(link: &mut Link, server: u16) -> io::Result<Rest> {
    let end = Instant::now() + Duration::from_secs(3);
    loop {
        let counters = counters(link.info("rlock")?);
        let top = link.must("RLOCK.TOP")?;
        let zero = |name: &str| counters.get(name).copied().unwrap_or(0) == 0;
        let rests = zero("waiting") && zero("watchdog_holds") && top.array().is_empty();
        if rests || Instant::now() > end {
            let top = if top.array().is_empty() {
                String::new()
            } else {
                format!("{top:?}")
            };
            let at = now_us();
            return Ok(Rest {
                server,
                at,
                counters,
                top,
            });
        }
        sleep(Duration::from_millis(20));
    }
}

type Keys = BTreeMap<String, Entry>;

/// Compares a server with a copy, between two looks at it that were the same; none
/// if it would not stand still. `make` makes a copy, `open` connects to it.
fn compare(
    world: &World,
    at: usize,
    mut make: impl FnMut(&mut Link) -> io::Result<Option<Server>>,
    mut open: impl FnMut(&mut Link) -> io::Result<Link>,
) -> io::Result<Option<Copies>> {
    let server = &world.servers[at];
    let mut link = named(server.link()?)?;
    for _ in 0..20 {
        let before = dump(&mut link)?;
        let made = make(&mut link)?;
        let (what, mut other) = match &made {
            Some(copy) => ("aof", copy.link()?),
            None => ("replica", open(&mut link)?),
        };
        let copy = dump(&mut other)?;
        let after = dump(&mut link)?;
        let due = wall_ms() + NEAR;
        if near(&before, due) == near(&after, due) {
            return Ok(Some(Copies {
                server: server.port,
                what: what.to_owned(),
                at: now_us(),
                due,
                original: after,
                copy,
            }));
        }
        sleep(Duration::from_millis(50));
    }
    Ok(None)
}

fn near(keys: &Keys, due: u64) -> Keys {
    let lives = |entry: &Entry| entry.expires < 0 || entry.expires as u64 > due;
    let kept = keys.iter().filter(|(_, entry)| lives(entry));
    kept.map(|(key, entry)| (key.clone(), entry.clone()))
        .collect()
}

/// A link to the replica once it has all that the master has written.
fn in_step(master: &mut Link, replica: &Server) -> io::Result<Link> {
    let mut link = named(replica.link()?)?;
    let offset = |link: &mut Link| link.info_field("replication", "master_repl_offset");
    let mut seen = String::new();
    let caught_up = eventually("the replica has caught up", Duration::from_secs(20), || {
        let up = link.info_field("replication", "master_link_status")?;
        let (ours, its) = (offset(master)?, offset(&mut link)?);
        let is = up.as_deref() == Some("up") && ours == its;
        seen = format!("link {up:?}, {ours:?} written, {its:?} read");
        Ok(is)
    });
    caught_up.map_err(|error| io::Error::new(error.kind(), format!("{error}: {seen}")))?;
    Ok(link)
}

/// A server without the module on a copy of the AOF must have the same keys.
fn load_aof(world: &World, at: usize) -> io::Result<Option<Copies>> {
    let from = world.servers[at].dir.join("appendonlydir");
    let to = world.dir.join("aof-copy");
    let make = |link: &mut Link| {
        eventually("no rewrite is under way", Duration::from_secs(20), || {
            let busy = link.info_field("persistence", "aof_rewrite_in_progress")?;
            let due = link.info_field("persistence", "aof_rewrite_scheduled")?;
            Ok(busy.as_deref() == Some("0") && due.as_deref() == Some("0"))
        })?;
        let _ = fs::remove_dir_all(&to);
        copy_files(&from, &to.join("appendonlydir"))?;
        Server::start(&to, None, &["--appendonly", "yes"]).map(Some)
    };
    let nothing = |_: &mut Link| Err(Error::other("a copy was made"));
    compare(world, at, make, nothing)
}

fn copy_files(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        if let Some(name) = path.file_name() {
            fs::copy(&path, to.join(name))?;
        }
    }
    Ok(())
}

/// All keys of a server, with what is in them and when they end.
fn dump(link: &mut Link) -> io::Result<Keys> {
    let mut keys = Keys::new();
    for db in 0..2 {
        // In a cluster there is but one.
        if matches!(link.say(&format!("SELECT {db}"))?, Value::Error(_)) {
            continue;
        }
        let all = link.must("KEYS *")?;
        for key in all.array().iter().filter_map(Value::text) {
            if let Some(entry) = entry(link, key)? {
                keys.insert(format!("{db} {key}"), entry);
            }
        }
    }
    Ok(keys)
}

fn entry(link: &mut Link, key: &str) -> io::Result<Option<Entry>> {
    let Value::Int(expires) = link.call(&["PEXPIRETIME", key])? else {
        return Ok(None);
    };
    let kind = link.call(&["TYPE", key])?;
    let value = match kind.text() {
        Some("hash") => {
            let reply = link.call(&["HGETALL", key])?;
            let text = |value: &Value| value.text().unwrap_or_default().to_owned();
            let pairs = reply.array().chunks_exact(2);
            pairs.map(|pair| (text(&pair[0]), text(&pair[1]))).collect()
        }
        Some("string") => {
            let text = format!("{:?}", link.call(&["GET", key])?);
            BTreeMap::from([("".to_owned(), text)])
        }
        _ => return Ok(None),
    };
    Ok(Some(Entry { value, expires }))
}

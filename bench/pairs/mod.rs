//! Acquire and release of a lock that nobody contends for: rlock, the same
//! lock as Lua scripts, and `SET NX PX` with `DEL`, which neither nests nor
//! checks who releases; and, with more and fewer in flight, the least module.

mod least;

use std::time::{Duration, Instant};

use crate::load::{command, Connection, Expect, Load, Outcome, Server};
use crate::options::Options;
use crate::picture::Bars;
use crate::report::{grouped, Report, Table, Target};
use crate::stats::{median, ratios};
use crate::targets::{self, Targets};

/// Locks that take turns.
const KEYS: usize = 1_000;
const LEASE: &str = "30000";
/// In the form of Redisson's: a uuid and a thread.
const OWNER: &str = "5f1c7a52-90e1-4b0c-8c2e-6f7f5f0a9d31:1";

/// A hash with a field for the owner and its holds, as Redisson keeps it.
pub const ACQUIRE: &str = "\
if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
  redis.call('hincrby', KEYS[1], ARGV[2], 1)
  redis.call('pexpire', KEYS[1], ARGV[1])
  return nil
end
return redis.call('pttl', KEYS[1])";
pub const RELEASE: &str = "\
if redis.call('hexists', KEYS[1], ARGV[2]) == 0 then
  return nil
end
if redis.call('hincrby', KEYS[1], ARGV[2], -1) > 0 then
  redis.call('pexpire', KEYS[1], ARGV[1])
  return 0
end
redis.call('del', KEYS[1])
redis.call('publish', KEYS[2], '0')
return 1";

/// One way to lock, with its pairs prepared.
struct Peer {
    name: &'static str,
    pipelined: Load,
    unpipelined: Load,
    rates: [Vec<f64>; 3],
    server_micros: [Vec<f64>; 3],
}

/// How the pairs are sent: the index into a peer's figures.
const PIPELINED: usize = 0;
const UNPIPELINED: usize = 1;
/// As the first, to a server that writes an AOF.
const RECORDED: usize = 2;

impl Peer {
    fn new(
        name: &'static str,
        depth: usize,
        expect: [Expect; 2],
        pair: impl Fn(usize) -> [Vec<u8>; 2],
    ) -> Self {
        let commands: Vec<Vec<u8>> = (0..KEYS).flat_map(pair).collect();
        Peer {
            name,
            pipelined: Load::new(depth, &commands, &expect),
            unpipelined: Load::new(1, &commands, &expect),
            rates: Default::default(),
            server_micros: Default::default(),
        }
    }

    fn run(&mut self, connection: &mut Connection, mode: usize, time: Duration) -> Outcome<()> {
        let load = match mode {
            UNPIPELINED => &mut self.unpipelined,
            _ => &mut self.pipelined,
        };
        let before = connection.server_cpu()?;
        let rate = load.run(connection, time)?;
        let used = connection.server_cpu()? - before;
        let pairs = rate.commands as f64 / 2.0;
        self.rates[mode].push(pairs / rate.time.as_secs_f64());
        self.server_micros[mode].push(used * 1e6 / pairs);
        Ok(())
    }
}

/// What the peers come to, sent in this way.
fn bars(peers: &[Peer], mode: usize, how: &str) -> Bars {
    let bar = |peer: &Peer| (peer.name.to_owned(), median(&peer.rates[mode]));
    Bars {
        title: format!("acquire + release pairs per second, {how}"),
        bars: peers.iter().map(bar).collect(),
    }
}

/// Measures all peers in turns and prints the tables.
pub fn measure(server: &Server, options: &Options, report: &mut Report) -> Outcome<()> {
    let mut connection = server.connect()?;
    let recorder = Server::start(&options.server, options.module.as_deref())?;
    let mut recorded = recorder.connect()?;
    write_an_aof(&mut recorded)?;
    let mut peers = peers(&mut connection, options)?;
    for script in [ACQUIRE, RELEASE] {
        load_script(&mut recorded, script)?;
    }
    let rounds = options.count(5, 2);
    let (long, short) = (options.millis(700, 150), options.millis(400, 150));
    for round in 0..rounds {
        for mode in [PIPELINED, UNPIPELINED, RECORDED] {
            let (connection, time) = match mode {
                PIPELINED => (&mut connection, long),
                UNPIPELINED => (&mut connection, short),
                _ => (&mut recorded, long),
            };
            for turn in 0..peers.len() {
                let peer = (round + turn) % peers.len();
                peers[peer].run(connection, mode, time)?;
            }
        }
    }
    let pipelined = format!("pipelined ({} in flight)", options.depth);
    let how = [
        (PIPELINED, pipelined.clone()),
        (RECORDED, format!("{pipelined}, AOF on")),
        (UNPIPELINED, "one command per round trip".to_owned()),
    ];
    let targets = Targets::of(&mut connection)?;
    for (mode, how) in &how {
        print(&peers, *mode, how, targets, report);
    }
    let bars = how.map(|(mode, how)| bars(&peers, mode, &how));
    report.picture("pairs", &bars)?;
    least::measure(options, report)
}

/// From here on, and the first whole one is written.
fn write_an_aof(connection: &mut Connection) -> Outcome<()> {
    connection.call(&["CONFIG", "SET", "appendonly", "yes"])?;
    let end = Instant::now() + Duration::from_secs(10);
    let fields = ["aof_rewrite_scheduled", "aof_rewrite_in_progress"];
    for field in fields {
        while connection.info_number("persistence", field)? > 0.0 {
            if Instant::now() > end {
                return Err("the AOF was not written".into());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    Ok(())
}

fn peers(connection: &mut Connection, options: &Options) -> Outcome<Vec<Peer>> {
    let mut peers = Vec::new();
    if options.module.is_some() {
        let expect = [Expect::Integer, Expect::Exactly(":0\r\n")];
        peers.push(Peer::new("rlock", options.depth, expect, |index| {
            let key = format!("rlock:{index}");
            [
                command(&["RLOCK.ACQUIRE", &key, OWNER, LEASE]),
                command(&["RLOCK.RELEASE", &key, OWNER]),
            ]
        }));
    }

    let acquire = load_script(connection, ACQUIRE)?;
    let release = load_script(connection, RELEASE)?;
    let expect = [Expect::Exactly("$-1\r\n"), Expect::Exactly(":1\r\n")];
    peers.push(Peer::new("Lua scripts", options.depth, expect, |index| {
        let key = format!("lua:{index}");
        let channel = format!("redisson_lock__channel:{{{key}}}");
        [
            command(&["EVALSHA", &acquire, "1", &key, LEASE, OWNER]),
            command(&["EVALSHA", &release, "2", &key, &channel, LEASE, OWNER]),
        ]
    }));

    let expect = [Expect::Exactly("+OK\r\n"), Expect::Exactly(":1\r\n")];
    peers.push(Peer::new("SET + DEL", options.depth, expect, |index| {
        let key = format!("set:{index}");
        [
            command(&["SET", &key, OWNER, "NX", "PX", LEASE]),
            command(&["DEL", &key]),
        ]
    }));
    if let Some(delete) = compare_and_delete(connection)? {
        peers.push(Peer::new(
            "SET NX + compare-and-delete",
            options.depth,
            expect,
            |index| {
                let key = format!("cad:{index}");
                let delete: Vec<&str> = delete
                    .iter()
                    .map(|word| if *word == "KEY" { &key } else { *word })
                    .collect();
                [
                    command(&["SET", &key, OWNER, "NX", "PX", LEASE]),
                    command(&delete),
                ]
            },
        ));
    }
    Ok(peers)
}

/// The command that deletes a key if it has the owner's value, where there is one: Valkey 9,
/// Redis 8.4.
fn compare_and_delete(connection: &mut Connection) -> Outcome<Option<Vec<&'static str>>> {
    let all = [
        vec!["DELIFEQ", "KEY", OWNER],
        vec!["DELEX", "KEY", "IFEQ", OWNER],
    ];
    for words in all {
        let info = connection.text(&["COMMAND", "INFO", words[0]])?;
        if info.contains(&words[0].to_lowercase()) {
            return Ok(Some(words));
        }
    }
    Ok(None)
}

/// Gives the script's digest.
pub fn load_script(connection: &mut Connection, script: &str) -> Outcome<String> {
    let reply = connection.text(&["SCRIPT", "LOAD", script])?;
    let digest = reply.lines().nth(1).ok_or("SCRIPT LOAD gave no digest")?;
    Ok(digest.to_owned())
}

fn print(peers: &[Peer], mode: usize, how: &str, targets: &Targets, report: &mut Report) {
    let mut table = Table::new(
        format!("Acquire + release of a free lock, {how}"),
        &["", "pairs/s", "server µs/pair", "rlock is", "target", ""],
    );
    let rlock = peers.iter().find(|peer| peer.name == "rlock");
    for peer in peers {
        let mut row = vec![
            peer.name.to_owned(),
            grouped(median(&peer.rates[mode])),
            format!("{:.2}", median(&peer.server_micros[mode])),
        ];
        let rlock = rlock.filter(|rlock| rlock.name != peer.name);
        if let Some(rlock) = rlock {
            let ratio = median(&ratios(&rlock.rates[mode], &peer.rates[mode]));
            row.push(format!("{ratio:.2} x"));
            let judged = target(peer.name, targets).filter(|_| mode == PIPELINED);
            if let Some(target) = judged {
                let what = format!("rlock / {}, {how}", peer.name);
                row.extend(report.judge(&what, ratio, target));
            }
        }
        table.row(row);
    }
    if mode == UNPIPELINED {
        table.note("Ratios and rates are medians of rounds in which the peers take turns;");
        table.note("server µs: processor time of the server, which noise touches less.");
    }
    report.print(&table);
}

fn target(peer: &str, targets: &Targets) -> Option<Target> {
    match peer {
        "Lua scripts" => Some(Target::AtLeast(targets::PAIRS_OF_LUA)),
        "SET + DEL" => Some(Target::AtLeast(targets.pairs_of_set)),
        "SET NX + compare-and-delete" => Some(Target::AtLeast(0.8)),
        _ => None,
    }
}

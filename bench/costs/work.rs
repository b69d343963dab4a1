//! What is counted: each does something a number of times, on a server without keys
//! and without other clients, and gives the connections that are still to be closed.
//!
//! Requests go out in groups, and the next group when all are answered, so that
//! the server does it in the same steps each time.

use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::load::{command, integer, Connection, Expect, Outcome, Server, Session};

/// Something that is done.
pub struct Work {
    pub name: &'static str,
    /// How often, in the two runs that are compared.
    pub times: [usize; 2],
    /// The work that it is held against, by name.
    pub peer: Option<&'static str>,
    pub run: fn(&Server, usize) -> Outcome<Vec<Connection>>,
}

const PING: &str = "a PING that comes alone";
pub const SET_AND_DEL: &str = "SET NX PX and DEL";

pub const PAIR: &str = "ACQUIRE and RELEASE of a free lock";
pub const HAND_OVER: &str = "a hand-over among 100 clients, and a new wait";

pub const ALL: [Work; 15] = [
    Work {
        name: "two PINGs",
        times: [500, 2_500],
        peer: None,
        run: pings,
    },
    Work {
        name: PING,
        times: [500, 2_500],
        peer: None,
        run: lone_pings,
    },
    Work {
        name: SET_AND_DEL,
        times: [500, 2_500],
        peer: None,
        run: set_and_del,
    },
    Work {
        name: PAIR,
        times: [500, 2_500],
        peer: Some(SET_AND_DEL),
        run: pairs,
    },
    Work {
        name: "the same with rlock.redisson-compat no",
        times: [500, 2_500],
        peer: Some(PAIR),
        run: pairs_alone,
    },
    Work {
        name: "the same beside 200 who PSUBSCRIBE to other channels",
        times: [500, 2_500],
        peer: Some(PAIR),
        run: pairs_beside_patterns,
    },
    Work {
        name: "the same as clients do it: NOTIFY WATCHDOG ONCE",
        times: [500, 2_500],
        peer: None,
        run: session_pairs,
    },
    Work {
        name: "a hand-over among 2 clients, and a new wait",
        times: [200, 1_400],
        peer: Some(PING),
        run: hand_overs::<2>,
    },
    Work {
        name: "a hand-over among 10 clients, and a new wait",
        times: [200, 1_400],
        peer: Some(PING),
        run: hand_overs::<10>,
    },
    Work {
        name: HAND_OVER,
        times: [200, 1_400],
        peer: Some(PING),
        run: hand_overs::<100>,
    },
    Work {
        name: "a hand-over among 1,000 clients, and a new wait",
        times: [200, 1_400],
        peer: Some(PING),
        run: hand_overs::<1_000>,
    },
    Work {
        name: "the same of 100 queued waiters of one connection",
        times: [200, 1_400],
        peer: None,
        run: hand_overs_queued,
    },
    Work {
        name: "MACQUIRE and MRELEASE of 8 free keys",
        times: [100, 1_100],
        peer: None,
        run: many,
    },
    Work {
        name: "the end of a lease",
        times: [200, 1_000],
        peer: None,
        run: expiries,
    },
    Work {
        name: "DEL of another key while a lock is held",
        times: [500, 2_500],
        peer: None,
        run: deletions,
    },
];

/// What the least module does too, and `SET NX PX` with `DEL`, to be held against each other.
pub const BY_RLOCK: Work = Work {
    name: PAIR,
    times: [500, 2_500],
    peer: None,
    run: pairs,
};
pub const BY_SET: Work = Work {
    name: SET_AND_DEL,
    run: set_and_del,
    ..BY_RLOCK
};
pub const BY_LEAST: Work = Work {
    name: PAIR,
    run: |server, times| pairs_by(LEAST, server, times),
    ..BY_RLOCK
};
pub const HAND_OVERS_BY_LEAST: Work = Work {
    name: HAND_OVER,
    times: [200, 1_400],
    peer: None,
    run: |server, times| hand_overs_by(LEAST, 100, server, times),
};

/// ACQUIRE and RELEASE.
type Commands = [&'static str; 2];
const RLOCK: Commands = ["RLOCK.ACQUIRE", "RLOCK.RELEASE"];
const LEAST: Commands = ["LEAST.ACQUIRE", "LEAST.RELEASE"];

/// Commands that go out together.
const GROUP: usize = 50;

const LONG: &str = "600000";

/// Queued waiters that contend for a lock.
const WAITERS: usize = 100;

/// Sends commands in groups, and holds each reply against what it must be.
pub fn send(to: &mut Connection, commands: &[Vec<u8>], expect: Expect) -> Outcome<()> {
    for group in commands.chunks(GROUP) {
        to.send(&group.concat())?;
        for _ in group {
            expect.check(to.reply()?)?;
        }
    }
    Ok(())
}

fn pairs(server: &Server, times: usize) -> Outcome<Vec<Connection>> {
    pairs_by(RLOCK, server, times)
}

fn pairs_by(commands: Commands, server: &Server, times: usize) -> Outcome<Vec<Connection>> {
    let [acquire, release] = commands;
    let pair = [
        command(&[acquire, "lock", "owner", LONG]),
        command(&[release, "lock", "owner"]),
    ];
    let mut client = server.connect()?;
    send(&mut client, &vec![pair; times].concat(), Expect::Integer)?;
    Ok(vec![client])
}

fn pairs_alone(server: &Server, times: usize) -> Outcome<Vec<Connection>> {
    const SETTING: &str = "rlock.redisson-compat";
    let mut control = server.connect()?;
    control.call(&["CONFIG", "SET", SETTING, "no"])?;
    let mut clients = pairs(server, times)?;
    control.call(&["CONFIG", "SET", SETTING, "yes"])?;
    clients.push(control);
    Ok(clients)
}

fn pairs_beside_patterns(server: &Server, times: usize) -> Outcome<Vec<Connection>> {
    let mut clients = Vec::new();
    for number in 0..200 {
        let mut client = server.connect_small()?;
        client.call(&["PSUBSCRIBE", &format!("news:{number}:*")])?;
        clients.push(client);
    }
    clients.extend(pairs(server, times)?);
    Ok(clients)
}

fn pings(server: &Server, times: usize) -> Outcome<Vec<Connection>> {
    let mut client = server.connect()?;
    let two = vec![command(&["PING"]); 2 * times];
    send(&mut client, &two, Expect::Exactly("+PONG\r\n"))?;
    Ok(vec![client])
}

fn lone_pings(server: &Server, times: usize) -> Outcome<Vec<Connection>> {
    let mut client = server.connect()?;
    for _ in 0..times {
        Expect::Exactly("+PONG\r\n").check(client.call(&["PING"])?)?;
    }
    Ok(vec![client])
}

fn set_and_del(server: &Server, times: usize) -> Outcome<Vec<Connection>> {
    let pair = [
        command(&["SET", "lock", "owner", "NX", "PX", LONG]),
        command(&["DEL", "lock"]),
    ];
    let mut client = server.connect()?;
    for group in vec![pair; times].chunks(GROUP / 2) {
        client.send(&group.as_flattened().concat())?;
        for _ in group {
            Expect::Exactly("+OK\r\n").check(client.reply()?)?;
            Expect::Exactly(":1\r\n").check(client.reply()?)?;
        }
    }
    Ok(vec![client])
}

fn session_pairs(server: &Server, times: usize) -> Outcome<Vec<Connection>> {
    let mut session = Session::on(server.connect()?)?;
    let channel = session.channel().to_owned();
    let pair = |number: usize| {
        let tag = number.to_string();
        let acquire = ["RLOCK.ACQUIRE", "lock", "owner", LONG, "NOTIFY", &channel];
        [
            command(&[&acquire[..], &[&tag, "WATCHDOG", "ONCE"]].concat()),
            command(&["RLOCK.RELEASE", "lock", "owner"]),
        ]
    };
    let pairs: Vec<Vec<u8>> = (0..times).flat_map(pair).collect();
    send(&mut session.connection, &pairs, Expect::Integer)?;
    Ok(vec![session.connection])
}

fn many(server: &Server, times: usize) -> Outcome<Vec<Connection>> {
    let keys = ["8", "k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7", "owner"];
    let pair = [
        command(&[&["RLOCK.MACQUIRE"], &keys[..], &[LONG]].concat()),
        command(&[&["RLOCK.MRELEASE"], &keys[..]].concat()),
    ];
    let mut client = server.connect()?;
    send(&mut client, &vec![pair; times].concat(), Expect::Integer)?;
    Ok(vec![client])
}

/// Who got the lock gives it to the next and stands in line again.
fn hand_overs<const CLIENTS: usize>(server: &Server, times: usize) -> Outcome<Vec<Connection>> {
    hand_overs_by(RLOCK, CLIENTS, server, times)
}

fn hand_overs_by(
    [acquire, release]: Commands,
    crowd: usize,
    server: &Server,
    times: usize,
) -> Outcome<Vec<Connection>> {
    let wait = |owner: &str| command(&[acquire, "lock", owner, LONG, "BLOCK", "0"]);
    let owners: Vec<String> = (0..crowd).map(|number| format!("owner:{number}")).collect();
    let mut clients = Vec::new();
    for owner in &owners {
        let mut client = server.connect_small()?;
        // Its answer says that the request behind it was read too.
        client.send(&[command(&["PING"]), wait(owner)].concat())?;
        Expect::Exactly("+PONG\r\n").check(client.reply()?)?;
        clients.push(client);
    }
    for number in 0..times {
        let (holder, owner) = (&mut clients[number % crowd], &owners[number % crowd]);
        integer(holder.reply()?)?;
        holder.send(&[command(&[release, "lock", owner]), wait(owner)].concat())?;
        Expect::Exactly(":0\r\n").check(holder.reply()?)?;
    }
    // The last grant is not part of what is read above.
    integer(clients[times % crowd].reply()?)?;
    Ok(clients)
}

/// The same of queued waiters: all wait on one connection, which releases too.
fn hand_overs_queued(server: &Server, times: usize) -> Outcome<Vec<Connection>> {
    let mut session = Session::on(server.connect()?)?;
    let wait = |number| session.wait("lock", &format!("owner:{number}"), [LONG, "0"], number);
    let waits: Vec<Vec<u8>> = (0..WAITERS).map(wait).collect();
    let (first, others) = waits.split_first().ok_or("nobody waits")?;
    integer(session.connection.exchange(first)?)?;
    session.queue(others)?;
    for number in 0..times {
        let number = number % WAITERS;
        let release = command(&["RLOCK.RELEASE", "lock", &format!("owner:{number}")]);
        session
            .connection
            .send(&[&release[..], &waits[number]].concat())?;
        // The count, QUEUED and the message of the grant, in any order.
        for _ in 0..3 {
            session.connection.reply()?;
        }
    }
    Ok(vec![session.connection])
}

/// As many locks in either run, of which so many end.
fn expiries(server: &Server, times: usize) -> Outcome<Vec<Connection>> {
    const LOCKS: usize = 1_000;
    let acquire = |number: usize| {
        let lease = if number < times { "1000" } else { LONG };
        command(&["RLOCK.ACQUIRE", &format!("lock:{number}"), "owner", lease])
    };
    let commands: Vec<Vec<u8>> = (0..LOCKS).map(acquire).collect();
    let mut client = server.connect()?;
    send(&mut client, &commands, Expect::Integer)?;
    // Looked at seldom, for that counts too, and for as long in either run.
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        sleep(Duration::from_secs(2));
        if integer(client.call(&["DBSIZE"])?)? == (LOCKS - times) as i64 {
            return Ok(vec![client]);
        }
        if Instant::now() > end {
            return Err("the leases do not end".into());
        }
    }
}

/// As many keys in either run, of which so many are deleted.
fn deletions(server: &Server, times: usize) -> Outcome<Vec<Connection>> {
    const KEYS: usize = 3_000;
    let all = |build: fn(&str) -> Vec<u8>, keys: usize| -> Vec<Vec<u8>> {
        (0..keys)
            .map(|number| build(&format!("key:{number}")))
            .collect()
    };
    let mut client = server.connect()?;
    client.call(&["RLOCK.ACQUIRE", "lock", "owner", LONG])?;
    let set = all(|key| command(&["SET", key, "value"]), KEYS);
    send(&mut client, &set, Expect::Exactly("+OK\r\n"))?;
    let delete = all(|key| command(&["DEL", key]), times);
    send(&mut client, &delete, Expect::Exactly(":1\r\n"))?;
    Ok(vec![client])
}

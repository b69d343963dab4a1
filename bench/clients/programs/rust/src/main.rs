//! The benchmark's program in Rust: bench SIDE PORT WORKERS TURNS MS. Its orders stand in
//! bench/clients/language.rs.

use std::cell::{Cell, RefCell};
use std::error::Error;
use std::fmt::Write;
use std::io::BufRead;
use std::rc::Rc;
use std::time::{Duration, Instant};

use rlock_client::{Hold, Locks, Sticky};
use rslock::LockManager;
use tokio::sync::mpsc::unbounded_channel;
use tokio::task::{spawn_local, LocalSet};

type Outcome<T> = Result<T, Box<dyn Error>>;

const KEY: &str = "bench:lock";
const SHARED: &str = "bench:shared";
const PAUSE: Duration = Duration::from_millis(2);
/// Of the peer's locks: it has no default.
const TTL: Duration = Duration::from_secs(10);

/// How a worker has one turn with a lock.
#[derive(Clone)]
enum Worker {
    Ours(Locks),
    Theirs(Rc<LockManager>),
}

impl Worker {
    async fn turn(&self, key: &str, act: impl FnOnce()) -> Outcome<()> {
        match self {
            Worker::Ours(locks) => {
                let hold = locks.acquire(key).wait_forever().await?;
                act();
                hold.release().await?;
            }
            Worker::Theirs(manager) => {
                // It may have tried as often as it does.
                if let Ok(lock) = manager.lock(key, TTL).await {
                    act();
                    manager.unlock(&lock).await;
                }
            }
        }
        Ok(())
    }
}

/// How the lock that others want too is taken and released.
enum Shared {
    Plain(Locks),
    Sticky(Sticky),
}

impl Shared {
    async fn turn(&self) -> Outcome<()> {
        match self {
            Shared::Plain(locks) => {
                let hold = locks.acquire(SHARED).wait_forever().await?;
                Ok(hold.release().await?)
            }
            Shared::Sticky(sticky) => Ok(sticky.run(async |_| ()).await?),
        }
    }
}

struct Program {
    client: redis::Client,
    /// One session for all workers; none: they are the peer's.
    locks: Option<Locks>,
    url: String,
    had: Rc<RefCell<Vec<(usize, u64, u64)>>>,
    kept: Vec<Hold>,
}

impl Program {
    fn worker(&self) -> Worker {
        match &self.locks {
            Some(locks) => Worker::Ours(locks.clone()),
            None => Worker::Theirs(Rc::new(LockManager::new(vec![self.url.as_str()]))),
        }
    }

    async fn warm_up(&self, first: &Worker, turns: i64, ms: u64) -> Outcome<()> {
        let own = format!("warm:{}", std::process::id());
        let end = Instant::now() + Duration::from_millis(ms);
        let left = Cell::new(turns);
        let contend = async |worker: &Worker| -> Outcome<()> {
            while left.get() > 0 && Instant::now() < end {
                worker.turn(&own, || left.set(left.get() - 1)).await?;
            }
            Ok(())
        };
        let other = self.worker();
        let (first, other) = tokio::join!(contend(first), contend(&other));
        first.and(other)
    }

    fn go(&self, crew: &[Worker]) {
        for (number, worker) in crew.iter().cloned().enumerate() {
            let had = Rc::clone(&self.had);
            spawn_local(async move {
                loop {
                    let act = || had.borrow_mut().push((number, clock(), clock()));
                    if let Err(error) = worker.turn(KEY, act).await {
                        eprintln!("{error}");
                        std::process::exit(1);
                    }
                }
            });
        }
    }

    fn turns(&self) -> String {
        let mut line = String::new();
        for (number, acquired, released) in self.had.borrow().iter() {
            let _ = write!(line, "{number} {acquired} {released} ");
        }
        line
    }

    async fn pairs(&self, worker: &Worker, ms: u64) -> Outcome<u64> {
        timed(ms, async || match worker {
            Worker::Ours(locks) => Ok(locks.acquire("bench:free").await?.release().await?),
            Worker::Theirs(_) => worker.turn("bench:other", || ()).await,
        })
        .await
    }

    async fn pings(&self, ms: u64) -> Outcome<u64> {
        let connection = self.client.get_multiplexed_async_connection().await?;
        timed(ms, async || {
            let mut connection = connection.clone();
            Ok(redis::cmd("PING").exec_async(&mut connection).await?)
        })
        .await
    }

    async fn uses(&self, ms: u64) -> Outcome<u64> {
        let sticky = self.ours()?.sticky("bench:sticky").build()?;
        timed(ms, async || Ok(sticky.run(async |_| ()).await?)).await
    }

    async fn sets(&self, ms: u64) -> Outcome<u64> {
        let connection = self.client.get_multiplexed_async_connection().await?;
        timed(ms, async || {
            let mut connection = connection.clone();
            let mut set = redis::cmd("SET");
            set.arg("bench:set")
                .arg("owner")
                .arg("NX")
                .arg("PX")
                .arg(10_000);
            set.exec_async(&mut connection).await?;
            let mut del = redis::cmd("DEL");
            Ok(del.arg("bench:set").exec_async(&mut connection).await?)
        })
        .await
    }

    fn ours(&self) -> Outcome<&Locks> {
        Ok(self.locks.as_ref().ok_or("only rlock has sticky locks")?)
    }

    fn shared(&self, way: u64) -> Outcome<Shared> {
        let locks = self.ours()?.clone();
        Ok(match way {
            0 => Shared::Plain(locks),
            _ => Shared::Sticky(locks.sticky(SHARED).build()?),
        })
    }

    fn often(&self, way: u64) -> Outcome<()> {
        let shared = self.shared(way)?;
        spawn_local(async move {
            while shared.turn().await.is_ok() {
                tokio::time::sleep(PAUSE).await;
            }
        });
        Ok(())
    }

    async fn shares(&self, way: u64, count: u64) -> Outcome<u64> {
        let (shared, mut took) = (self.shared(way)?, Vec::new());
        for _ in 0..count {
            let begin = Instant::now();
            shared.turn().await?;
            took.push(begin.elapsed());
            tokio::time::sleep(PAUSE).await;
        }
        Ok(median(took))
    }

    async fn takes(&self, count: u64) -> Outcome<u64> {
        let (locks, mut took) = (self.ours()?, Vec::new());
        for _ in 0..count {
            let begin = Instant::now();
            let hold = locks.acquire(SHARED).wait_forever().await?;
            took.push(begin.elapsed());
            hold.release().await?;
            tokio::time::sleep(5 * PAUSE).await;
        }
        Ok(median(took))
    }

    async fn crowd(&mut self, size: u64) -> Outcome<u64> {
        let locks = self.locks.clone().ok_or("only rlock has a crowd")?;
        let other = Locks::new(self.client.clone());
        for n in 0..size {
            self.kept.push(other.acquire(format!("taken:{n}")).await?);
        }
        let before = memory()?;
        for n in 0..size {
            self.kept.push(locks.acquire(format!("held:{n}")).await?);
        }
        for n in 0..size {
            let wait = locks.acquire(format!("taken:{n}")).wait_forever();
            spawn_local(async move { wait.await.map(drop) });
        }
        let mut connection = self.client.get_multiplexed_async_connection().await?;
        loop {
            let mut info = redis::cmd("INFO");
            let told: String = info.arg("rlock").query_async(&mut connection).await?;
            if told.contains(&format!("rlock_queued:{size}\r")) {
                return Ok((memory()? - before) / (2 * size));
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// In ns.
fn median(mut took: Vec<Duration>) -> u64 {
    took.sort();
    took.get(took.len() / 2)
        .map_or(0, |one| one.as_nanos() as u64)
}

/// ns for each.
async fn timed(ms: u64, act: impl AsyncFn() -> Outcome<()>) -> Outcome<u64> {
    let begin = Instant::now();
    let mut done = 0;
    while begin.elapsed() < Duration::from_millis(ms) {
        act().await?;
        done += 1;
    }
    Ok(begin.elapsed().as_nanos() as u64 / done)
}

/// It is the same for all processes.
fn clock() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: It writes to the one struct, which outlives the call.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Resident.
fn memory() -> Outcome<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm")?;
    let pages: u64 = statm.split(' ').nth(1).ok_or("statm")?.parse()?;
    Ok(pages * 4096)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [side, port, workers, turns, ms] = words.as_slice() else {
        return Err("bench SIDE PORT WORKERS TURNS MS".into());
    };
    let url = format!("redis://127.0.0.1:{port}");
    let client = redis::Client::open(url.as_str())?;
    let locks = (side == "rlock").then(|| Locks::new(client.clone()));
    let mut program = Program {
        client,
        locks,
        url,
        had: Rc::default(),
        kept: Vec::new(),
    };
    let crew: Vec<Worker> = (0..workers.parse()?).map(|_| program.worker()).collect();
    let local = LocalSet::new();
    local
        .run_until(async {
            program
                .warm_up(&crew[0], turns.parse()?, ms.parse()?)
                .await?;
            println!("ready");
            let (send, mut orders) = unbounded_channel();
            std::thread::spawn(move || {
                for line in std::io::stdin().lock().lines().map_while(Result::ok) {
                    let _ = send.send(line);
                }
            });
            while let Some(line) = orders.recv().await {
                let mut words = line.split(' ');
                let order = words.next().unwrap_or_default();
                let [number, second] = [(); 2].map(|()| words.next().unwrap_or("0"));
                let (number, second) = (number.parse()?, second.parse()?);
                match order {
                    "go" => {
                        program.go(&crew);
                        println!("0");
                    }
                    "turns" => println!("{}", program.turns()),
                    "pairs" => println!("{}", program.pairs(&crew[0], number).await?),
                    "pings" => println!("{}", program.pings(number).await?),
                    "uses" => println!("{}", program.uses(number).await?),
                    "sets" => println!("{}", program.sets(number).await?),
                    "often" => {
                        program.often(number)?;
                        println!("0");
                    }
                    "shares" => println!("{}", program.shares(number, second).await?),
                    "takes" => println!("{}", program.takes(number).await?),
                    "crowd" => println!("{}", program.crowd(number).await?),
                    _ => return Err(format!("no order: {line}").into()),
                }
            }
            Ok(())
        })
        .await
}

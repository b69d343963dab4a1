//! A server process of the benchmark's own, gone when it is dropped.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::{Connection, Counts, Outcome, Processor};

/// How long a server may take to answer its first PING.
const START: Duration = Duration::from_secs(10);
/// The same under valgrind, where all takes fifty times as long.
const COUNTED_START: Duration = Duration::from_secs(120);
/// What valgrind's files of counts are called, in the server's folder.
const COUNTS: &str = "callgrind.out";

/// How a server is started.
#[derive(Clone, Copy, Default)]
pub struct Setup<'a> {
    pub module: Option<&'a Path>,
    /// What stands behind the module's path.
    pub words: &'a [&'a str],
    /// Its instructions can be counted (see [`Server::count`]).
    pub counted: bool,
    /// It writes an AOF.
    pub recorded: bool,
    /// It is a node of a cluster, which others find here.
    pub bus: Option<u16>,
}

/// A running server in an empty folder, without persistence unless it is asked for.
pub struct Server {
    process: Child,
    folder: PathBuf,
    port: u16,
    /// Where other nodes of a cluster find it.
    bus: Option<u16>,
    /// What the file of the module is called.
    module: Option<OsString>,
    /// How often its instructions were asked for.
    counts: usize,
}

impl Server {
    /// Starts `binary`, with `module` if there is one.
    pub fn start(binary: &str, module: Option<&Path>) -> Outcome<Self> {
        let setup = Setup::default();
        Self::start_as(binary, Setup { module, ..setup })
    }

    /// Starts it so that its instructions can be counted (see [`Self::count`]).
    pub fn start_counted(binary: &str, module: Option<&Path>) -> Outcome<Self> {
        let (counted, setup) = (true, Setup::default());
        Self::start_as(
            binary,
            Setup {
                module,
                counted,
                ..setup
            },
        )
    }

    /// Starts it as a node of a cluster, of which it has no slots yet, with or without a count.
    pub fn start_in_cluster(binary: &str, module: Option<&Path>, counted: bool) -> Outcome<Self> {
        let bus = Some(free_port()?);
        Self::start_as(
            binary,
            Setup {
                module,
                counted,
                bus,
                ..Setup::default()
            },
        )
    }

    /// Starts it in any of these ways.
    pub fn start_as(binary: &str, setup: Setup<'_>) -> Outcome<Self> {
        let Setup {
            module,
            counted,
            bus,
            ..
        } = setup;
        let port = free_port()?;
        let folder = std::env::temp_dir().join(format!("rlock-bench-{port}"));
        fs::create_dir_all(&folder)?;
        let log = File::create(folder.join("server.log"))?;
        let mut command = if counted {
            under_valgrind(binary, &folder)
        } else {
            Command::new(binary)
        };
        command
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--appendonly"])
            .arg(if setup.recorded { "yes" } else { "no" })
            .args(["--enable-module-command", "yes"])
            .args(["--tcp-backlog", "1024", "--maxclients", "12000"])
            .arg("--dir")
            .arg(&folder)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        if counted {
            // What the server does ten times a second it does the more often for one
            // request, the slower the machine is; and this it does for a whole ms.
            command.args(["--hz", "2", "--activerehashing", "no"]);
        }
        if let Some(bus) = bus {
            // A server that is counted answers late, and is there all the same.
            command
                .args([
                    "--cluster-enabled",
                    "yes",
                    "--cluster-port",
                    &bus.to_string(),
                ])
                .args(["--cluster-node-timeout", "600000"])
                .args(["--cluster-require-full-coverage", "no"]);
        }
        if let Some(module) = module {
            command.arg("--loadmodule").arg(module).args(setup.words);
        }
        end_with_this_process(&mut command);
        let process = command
            .spawn()
            .map_err(|error| format!("cannot start {command:?}: {error}"))?;
        let mut server = Server {
            process,
            folder,
            port,
            bus,
            module: module.and_then(Path::file_name).map(OsString::from),
            counts: 0,
        };
        server.wait_until_it_answers(if counted { COUNTED_START } else { START })?;
        Ok(server)
    }

    /// Whether its instructions are counted from now on, which makes it ten times slower.
    pub fn count(&self, does: bool) -> Outcome<()> {
        self.tell_valgrind(&["instrumentation", if does { "on" } else { "off" }])
    }

    /// The instructions that it took since it was last asked.
    pub fn instructions(&mut self) -> Outcome<Counts> {
        self.counts += 1;
        self.tell_valgrind(&["dump"])?;
        let file = self.folder.join(format!("{COUNTS}.{}", self.counts));
        Counts::read(&fs::read_to_string(file)?, self.module.as_deref())
    }

    fn tell_valgrind(&self, words: &[&str]) -> Outcome<()> {
        let mut tell = Command::new("vgdb");
        tell.arg(vgdb_prefix(&self.folder))
            .arg(format!("--pid={}", self.process.id()))
            .args(words);
        let answer = tell.output().map_err(|error| format!("vgdb: {error}"))?;
        match answer.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&answer.stderr).into()),
        }
    }

    /// Its time on a processor, and in wait for one.
    pub fn processor(&self) -> io::Result<Processor> {
        Processor::open(&format!("/proc/{}/schedstat", self.process.id()))
    }

    /// It stands still for so long.
    pub fn stands_still(&self, time: Duration) -> Outcome<()> {
        self.signal("-STOP")?;
        thread::sleep(time);
        self.signal("-CONT")
    }

    fn signal(&self, which: &str) -> Outcome<()> {
        let process = self.process.id().to_string();
        match Command::new("kill").args([which, &process]).status()? {
            status if status.success() => Ok(()),
            status => Err(format!("kill {which}: {status}").into()),
        }
    }

    /// Where it listens, on this machine.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where other nodes of a cluster find it; 0 if it is none.
    pub fn bus_port(&self) -> u16 {
        self.bus.unwrap_or_default()
    }

    /// A connection with room for the replies of a long pipeline.
    pub fn connect(&self) -> Outcome<Connection> {
        Connection::open(self.port, 64 * 1024)
    }

    /// A connection that is one of very many.
    pub fn connect_small(&self) -> Outcome<Connection> {
        let mut connection = Connection::open(self.port, 256)?;
        connection.call(&["PING"])?;
        Ok(connection)
    }

    /// Becomes a replica of another server, and waits until it is in sync.
    pub fn follow(&self, master: &Server) -> Outcome<()> {
        let mut control = self.connect()?;
        control.call(&["REPLICAOF", "127.0.0.1", &master.port.to_string()])?;
        while control
            .info("replication", "master_link_status")?
            .as_deref()
            != Some("up")
        {
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    fn wait_until_it_answers(&mut self, patience: Duration) -> Outcome<()> {
        let end = Instant::now() + patience;
        loop {
            let answer = self.connect().and_then(|mut c| c.text(&["PING"]));
            if answer.is_ok() {
                return Ok(());
            }
            let ended = self.process.try_wait()?;
            if ended.is_some() || Instant::now() > end {
                let log = fs::read_to_string(self.folder.join("server.log"))?;
                return Err(format!("the server did not start; its log:\n{log}").into());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Nothing is left to do about a process or folder that is gone already.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Runs it under valgrind, which keeps all its files in the folder.
fn under_valgrind(binary: &str, folder: &Path) -> Command {
    let mut counts = OsString::from("--callgrind-out-file=");
    counts.push(folder.join(COUNTS));
    let mut command = Command::new("valgrind");
    // The program may be a script that becomes the server.
    command.args([
        "--tool=callgrind",
        "--trace-children=yes",
        "--instr-atstart=no",
    ]);
    command.arg(counts).arg(vgdb_prefix(folder)).arg(binary);
    command
}

/// Where valgrind listens.
fn vgdb_prefix(folder: &Path) -> OsString {
    let mut prefix = OsString::from("--vgdb-prefix=");
    prefix.push(folder.join("vgdb"));
    prefix
}

/// A port that was free a moment ago.
fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// A benchmark that is killed takes its servers, and what else it started, along.
pub fn end_with_this_process(command: &mut Command) {
    // SAFETY: the closure runs between fork and exec and makes one system call.
    unsafe {
        command.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        });
    }
}

/// Lets this process, and the servers it starts, open as many files as the
/// system allows it: a thousand connections need more than the usual limit.
pub fn raise_open_files() -> io::Result<()> {
    let mut limit = open_files()?;
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: `limit` outlives the call.
    match unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether this process, and a server, can have so many files open.
pub fn may_open(count: usize) -> io::Result<bool> {
    Ok(open_files()?.rlim_cur >= count as libc::rlim_t)
}

fn open_files() -> io::Result<libc::rlimit> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` outlives the call.
    match unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } {
        0 => Ok(limit),
        _ => Err(io::Error::last_os_error()),
    }
}

//! `make install`, as root says it: no cargo is there, and the module was built before.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{symlink, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::support::{eventually, module, wait_for, Ask, Process, Server};

/// What it may call: no cargo is among it.
const TOOLS: [&str; 5] = ["sh", "make", "install", "strip", "test"];

/// Installs below a folder, which has an own path of tools.
fn install(at: &Path, more: &[&str]) -> Output {
    let tools = at.join("tools");
    fs::create_dir_all(&tools).expect("a folder");
    for tool in TOOLS {
        let found = ["/usr/bin", "/bin"].map(|dir| Path::new(dir).join(tool));
        let found = found.iter().find(|path| path.exists()).expect(tool);
        let _ = symlink(found, tools.join(tool));
    }
    let to = at.join("to").display().to_string();
    let mut make = Command::new(tools.join("make"));
    make.args(["install", &format!("DESTDIR={to}")])
        .args(more)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env_clear()
        .env("PATH", &tools);
    make.output().expect("make")
}

/// Whether an ELF file of 64 bits has a table of symbols beside that for loading.
fn has_symbols(file: &[u8]) -> bool {
    const TABLE: usize = 2;
    let number = |at: usize, bytes: usize| {
        let of = file[at..at + bytes].iter().rev();
        of.fold(0, |number, byte| number << 8 | usize::from(*byte))
    };
    let (first, size, count) = (number(0x28, 8), number(0x3a, 2), number(0x3c, 2));
    assert!(count > 0, "no sections");
    (0..count).any(|n| number(first + n * size + 4, 4) == TABLE)
}

/// Debian's units let a server load what is in /usr/lib or /lib, and nothing else.
#[test]
fn without_cargo_it_goes_where_service_units_allow_it_stripped_and_executable() {
    let server = Server::start_bare(&[]);
    let module = module();
    let from = format!("RLOCK_MODULE={}", module.display());
    let done = install(server.dir(), &[&from]);
    assert!(done.status.success(), "{done:?}");
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    let line = said.lines().find(|line| line.starts_with("loadmodule "));
    let path = line
        .and_then(|line| line.split(' ').nth(1))
        .expect("a line");
    assert!(path.starts_with("/usr/lib/"), "{path}");
    let installed = server.dir().join(format!("to{path}"));
    let found = fs::metadata(&installed).expect("it is there");
    assert_eq!(found.permissions().mode() & 0o777, 0o755);
    let bytes = fs::read(&installed).expect("it is there");
    assert!(!has_symbols(&bytes), "it is not stripped");
    let mut client = server.raw();
    client.ok(&format!("MODULE LOAD {}", installed.display()));
    client.token("RLOCK.ACQUIRE k a 1000");
}

#[test]
fn without_a_module_it_says_what_to_do_first() {
    let server = Server::start_bare(&[]);
    let from = server.dir().join("none.so");
    let done = install(server.dir(), &[&format!("RLOCK_MODULE={}", from.display())]);
    assert!(!done.status.success());
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(
        said.contains("make build") && said.contains("none.so"),
        "{said}"
    );
    assert!(!server.dir().join("to").exists());
}

/// The lines that come with each release, as docs/load.md says to use them: at the end of the
/// configuration; and a server that goes on without the module.
#[test]
fn a_rewritten_configuration_starts_again_and_without_the_module_when_its_lines_are_out() {
    // For its directory.
    let server = Server::start_bare(&[]);
    let conf = server.dir().join("rewritten.conf");
    let lines = include_str!("../../packaging/files/rlock.conf");
    let at = "/usr/lib/redis/modules/librlock.so";
    assert!(lines.contains(&format!("\nloadmodule {at}\n")), "{lines}");
    let lines = format!(
        "port 0\nunixsocket {0}/own.sock\ndir {0}\nlogfile {0}/own.log\n{1}",
        server.dir().display(),
        lines.replace(at, &module().display().to_string())
    );
    let run = |conf: &Path| {
        let program = env::var_os("RLOCK_SERVER").unwrap_or("redis-server".into());
        let mut command = Command::new(program);
        command
            .arg(conf)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Process(command.spawn().expect("the server starts"))
    };
    let log = || fs::read_to_string(server.dir().join("own.log")).unwrap_or_default();
    let starts = || log().matches("eady to accept connections").count();
    fs::write(&conf, lines).expect("a file");
    let with = run(&conf);
    eventually("it starts", || starts() == 1);
    let socket = UnixStream::connect(server.dir().join("own.sock")).expect("connect");
    (&socket)
        .write_all(b"CONFIG SET rlock.fencing counter\r\nCONFIG REWRITE\r\n")
        .expect("it reads");
    let replies = BufReader::new(&socket).lines().take(2);
    assert!(replies.flatten().all(|reply| reply == "+OK"));
    drop(with);
    let rewritten = fs::read_to_string(&conf).expect("a file");
    assert!(rewritten.contains("\nrlock.fencing"), "{rewritten}");
    assert_eq!(rewritten.matches("\nloadmodule ").count(), 1);
    let again = run(&conf);
    eventually("it starts again", || starts() == 2);
    drop(again);
    let without = rewritten.replace("loadmodule", "# loadmodule");
    fs::write(&conf, without).expect("a file");
    let mut fails = run(&conf);
    wait_for("it gives up", || fails.0.try_wait().expect("wait"));
    assert!(log().contains("Module Configuration detected"), "{}", log());
    fs::write(&conf, rewritten).expect("a file");
    let edit = "/^rlock\\./d; /^loadmodule .*librlock/d";
    let edited = Command::new("sed").args(["-i", edit]).arg(&conf).status();
    assert!(edited.expect("sed").success());
    let _without = run(&conf);
    eventually("it starts without", || starts() == 3);
}

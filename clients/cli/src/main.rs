//! `rlock`: commands under distributed locks, and a look at the locks of a server.

mod args;
mod complain;
mod exit;
mod locks;
mod look;
mod run;
mod server;
mod table;
mod time;
mod top;
mod watch;

use std::io::{Write, stdout};
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use args::{Cli, Task};
use complain::complain;
use exit::{Failure, Outcome, USAGE};
use server::Server;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and the version are no errors.
            _ = error.print();
            return ExitCode::from(if error.use_stderr() { USAGE } else { 0 });
        }
    };
    // A panic is reported by then; its own exit status would be taken for the command's.
    let end = std::panic::catch_unwind(|| enough_descriptors(&cli).and_then(|()| perform(&cli)));
    match end.unwrap_or_else(|_| Err(Failure::usage("this is an error in rlock itself"))) {
        Ok(code) => code,
        Err(failure) => {
            if !failure.text.is_empty() {
                complain(&failure.to_string());
            }
            ExitCode::from(failure.code)
        }
    }
}

/// Before anything is begun that fails in its midst without them.
fn enough_descriptors(cli: &Cli) -> Result<(), Failure> {
    let servers = match &cli.task {
        Task::Run(wanted) => wanted.quorum.len(),
        _ => 1,
    };
    // A connection and another that looks, what two runtimes have, and looking up a name.
    let needed = 18 + 2 * servers;
    let opened = || std::fs::File::open("/");
    match (0..needed).map(|_| opened()).collect::<Result<Vec<_>, _>>() {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) => {
            let text = format!("too few file descriptors: rlock needs {needed} more (ulimit -n)");
            Err(Failure::usage(text))
        }
        _ => Ok(()),
    }
}

fn perform(cli: &Cli) -> Outcome {
    rlock_client::name_connections(server::NAME);
    let client = || server::client(&cli.url, &cli.tls);
    let connect = || Server::connect(&client()?, cli.backend);
    match &cli.task {
        Task::Run(wanted) => run::run(cli, wanted),
        Task::Ls(wanted) => look::ls(&mut connect()?, wanted),
        Task::Who { key, json } => look::who(&mut connect()?, key, *json),
        Task::Waiters { key, json } => look::waiters(&mut connect()?, key, *json),
        Task::Top(wanted) => top::top(&client()?, cli.backend, wanted),
        Task::Force(wanted) => look::force(&mut connect()?, wanted),
        Task::Watch { key } => watch::watch(&client()?, cli.backend, key),
        Task::Completion { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "rlock", &mut text);
            print(&text)
        }
        Task::Man => print(&man()?),
    }
}

/// One page for all commands: the text of each command's help stands in it as it is.
fn man() -> std::io::Result<Vec<u8>> {
    let mut cli = Cli::command().term_width(76).after_help(None::<&str>);
    cli.build();
    let commands: Vec<_> = cli.get_subcommands().cloned().collect();
    let page = clap_mangen::Man::new(cli);
    let mut text = Vec::new();
    page.render_title(&mut text)?;
    page.render_name_section(&mut text)?;
    page.render_synopsis_section(&mut text)?;
    page.render_description_section(&mut text)?;
    page.render_options_section(&mut text)?;
    writeln!(text, ".SH COMMANDS")?;
    for mut command in commands
        .into_iter()
        .filter(|command| command.get_name() != "help")
    {
        writeln!(text, ".SS {}", command.get_name())?;
        writeln!(text, ".nf")?;
        for line in command.render_long_help().to_string().lines() {
            // A dot or a quote at the beginning of a line would be a command of roff's.
            writeln!(text, "\\&{}", line.replace('\\', "\\e").replace('-', "\\-"))?;
        }
        writeln!(text, ".fi")?;
    }
    writeln!(text, ".SH EXIT STATUS\n.nf")?;
    for line in args::EXITS.lines().skip(1) {
        writeln!(text, "\\&{}", line.trim_start().replace('-', "\\-"))?;
    }
    writeln!(text, ".fi")?;
    Ok(text)
}

fn print(text: &[u8]) -> Outcome {
    written(stdout().write_all(text))?;
    Ok(ExitCode::SUCCESS)
}

/// A line.
pub fn say(text: &str) -> Result<(), Failure> {
    written(writeln!(stdout(), "{text}"))
}

/// A reader that has gone away, such as `head`, is no error of anybody's.
fn written(end: std::io::Result<()>) -> Result<(), Failure> {
    match end {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Err(Failure::new(0, "")),
        end => Ok(end?),
    }
}

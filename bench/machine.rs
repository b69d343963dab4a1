//! Where the figures come from.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::load::{Connection, Outcome};
use crate::options;
use crate::report::Report;

/// The command, date, server, module and machine.
pub fn describe(connection: &mut Connection, report: &mut Report) -> Outcome<()> {
    let cores = std::thread::available_parallelism()?;
    let memory = memory() / 1e6;
    report.fact("command", &format!("`{}`", command()));
    report.fact("date", &date());
    report.fact("processor", &format!("{}, {cores} cores", processor()));
    report.fact("memory", &format!("{memory:.0} GB"));
    report.fact("system", &system());
    report.fact("load before", &load_average());
    report.fact("server", &server(connection)?);
    report.fact("modules", &modules(connection)?);
    let own =
        "the benchmark's own, in Rust, which sends prepared bytes, where nothing else is said";
    report.fact("client", own);
    Ok(())
}

/// As one would type it.
fn command() -> String {
    let arguments = std::env::args().skip(1);
    let arguments: Vec<String> = arguments.filter(|word| word != "--bench").collect();
    let mut command = "make bench".to_owned();
    if let Some(server) = options::server() {
        command += &format!(" SERVER={server}");
    }
    if !arguments.is_empty() {
        command += &format!(" BENCH=\"{}\"", arguments.join(" "));
    }
    command
}

/// Its kernel.
fn system() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("Linux {}", release.trim())
}

/// In kB.
fn memory() -> f64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.unwrap_or_default()
}

fn server(connection: &mut Connection) -> Outcome<String> {
    if let Some(version) = connection.info("server", "valkey_version")? {
        return Ok(format!("Valkey {version}"));
    }
    let version = connection.info("server", "redis_version")?;
    Ok(format!("Redis {}", version.unwrap_or_default()))
}

/// All lines `module:name=rlock,ver=100,api=1,…` of INFO: some servers come
/// with modules of their own.
fn modules(connection: &mut Connection) -> Outcome<String> {
    let text = connection.text(&["INFO", "modules"])?;
    let lines = text.lines().filter_map(|line| line.strip_prefix("module:"));
    let modules: Vec<String> = lines.map(name_and_version).collect();
    if modules.is_empty() {
        return Ok("none".into());
    }
    Ok(modules.join(", "))
}

fn name_and_version(line: &str) -> String {
    let fields = line.split(',').filter_map(|field| field.split_once('='));
    let known = fields.filter(|(name, _)| ["name", "ver"].contains(name));
    let words: Vec<&str> = known.map(|(_, value)| value).collect();
    words.join(" ")
}

fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("model name"));
    let model = line.and_then(|line| line.split_once(':'));
    match model {
        Some((_, model)) => model.trim().to_owned(),
        None => std::env::consts::ARCH.to_owned(),
    }
}

fn load_average() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or_default().to_owned()
}

/// Today in UTC, as 2025-12-31.
fn date() -> String {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
    let days = since_1970.unwrap_or_default().as_secs() / 86_400;
    // Years are counted from March, so that a leap day is the last of its year.
    let day = days + 719_468;
    let era = day / 146_097;
    let of_era = day % 146_097;
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let (month, new_year) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    format!(
        "{:04}-{month:02}-{of_month:02}",
        year + era * 400 + new_year
    )
}

//! Crowds: n of something on one owner, key, connection or lock, against each thing that can
//! happen to it. The instructions of a piece as n grows, and the longest PING beside it.

mod happen;
mod make;
mod rows;
mod scene;

use std::thread::sleep;
use std::time::Duration;

use crate::load::{Outcome, Server};
use crate::options::Options;
use crate::report::{grouped, Mark, Report, Table};
use crate::waits::{beside, Waits};
use happen::Happen;
use make::Make;
use rows::{Row, ROWS};
use scene::Scene;

/// How many there are, from one column to the next.
const SIZES: [usize; 3] = [100, 10_000, 100_000];
const QUICK_SIZES: [usize; 2] = [100, 2_000];

/// A piece grows by no more than this, beyond the logarithm of n.
const GROWTH: f64 = 2.0;

/// A PING waits no longer than this, in ms, beyond the like.
const MARK_MS: f64 = 10.0;

const NOTES: [&str; 7] = [
    "Instructions of the server for a piece, by valgrind's count, from before it happens until",
    "nothing of it is left: of one request, where that is what happens, else of one of the n. So",
    "small crowds bear what the server does at rest too. The growth is the greater of both steps,",
    "beyond that of the logarithm of n. PING: the longest round trip beside it on a server that is",
    "not counted, with the most, of a client that asks every ms, less what both stood in line for",
    "a processor, and the same beside the like on a server without the module: the least of some",
    "turns, for a stall is there each time and a busy machine's is not.",
];

/// Measures each row, or those whose name has what was asked for, and prints.
pub fn measure(options: &Options, report: &mut Report) -> Outcome<()> {
    let sizes = match options.quick {
        true => &QUICK_SIZES[..],
        false => &SIZES[..],
    };
    let mut columns = vec!["n of what, and what happens".to_owned()];
    columns.extend(sizes.iter().map(|&size| grouped(size as f64)));
    columns.extend(
        [
            "growth", "mark", "", "PING ms", "beside", "PING ms", "mark", "",
        ]
        .map(Into::into),
    );
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let mut table = Table::new("Crowds", &columns);
    for row in ROWS.iter().filter(|row| row.name().contains(&options.row)) {
        let mut cells = vec![row.name()];
        let counts = match options.no_counts {
            true => Ok(Vec::new()),
            false => instructions(row, sizes, options, report),
        };
        cells.extend(counts.unwrap_or_else(|error| failed(row, &error, report)));
        cells.resize(sizes.len() + 4, String::new());
        let pings = pings(row, sizes, options, report);
        cells.extend(pings.unwrap_or_else(|error| failed(row, &error, report)));
        println!("{}", cells.join("  "));
        table.row(cells);
    }
    for note in NOTES {
        table.note(note);
    }
    report.print(&table);
    Ok(())
}

/// The rest of the table is measured all the same.
fn failed(row: &Row, error: &dyn std::fmt::Display, report: &mut Report) -> Vec<String> {
    report.judge(&format!("failed: {}", row.name()), 1.0, Mark::AtMost(0.0));
    vec![format!("failed: {error}")]
}

/// The sizes that can be had of a row.
fn sizes_of<'a>(row: &'a Row, sizes: &'a [usize]) -> impl Iterator<Item = usize> + 'a {
    sizes.iter().copied().filter(|&size| size <= row.most)
}

/// What a piece takes, and how that grows.
fn instructions(
    row: &Row,
    sizes: &[usize],
    options: &Options,
    report: &mut Report,
) -> Outcome<Vec<String>> {
    let mut counts = Vec::new();
    for size in sizes_of(row, sizes) {
        let server = Server::start_counted(&options.server, options.module.as_deref())?;
        let (_, count) = count(&server, row, size)?;
        counts.push((size as f64, count));
    }
    let steps = counts.windows(2).map(|pair| {
        let ((n, of), (more, of_more)) = (pair[0], pair[1]);
        of_more / of / (more.ln() / n.ln())
    });
    let growth = steps.fold(0.0, f64::max);
    let mut cells: Vec<String> = counts.iter().map(|(_, count)| grouped(*count)).collect();
    cells.resize(sizes.len(), "-".into());
    cells.push(format!("{growth:.2}"));
    let what = format!("growth: {}", row.name());
    cells.extend(report.judge(&what, growth, Mark::AtMost(GROWTH)));
    Ok(cells)
}

/// Pieces, and the instructions of each.
fn count(server: &Server, row: &Row, size: usize) -> Outcome<(usize, f64)> {
    let counter = server.counter();
    let mut scene = Scene::on(server, size)?;
    (row.make)(&mut scene)?;
    scene.rest();
    counter.start()?;
    let pieces = (row.happen)(&mut scene)?;
    let counts = counter.stop()?;
    Ok((pieces, counts.all as f64 / pieces as f64))
}

/// The longest PING, and that beside the like.
fn pings(
    row: &Row,
    sizes: &[usize],
    options: &Options,
    report: &mut Report,
) -> Outcome<Vec<String>> {
    let size = sizes_of(row, sizes).max().unwrap_or_default();
    let (name, make, happen) = match row.like {
        Some(like) => like,
        None => (
            "a server at rest",
            make::nobody as Make,
            happen::nothing as Happen,
        ),
    };
    let least = |with_module: bool, make: Make, happen: Happen| -> Outcome<f64> {
        let mut least = f64::MAX;
        for _ in 0..options.count(2, 1) {
            let module = options.module.as_deref().filter(|_| with_module);
            let server = Server::start(&options.server, module)?;
            least = least.min(ping(&server, make, happen, size)?.longest());
        }
        Ok(least)
    };
    let theirs = least(false, make, happen)?;
    let ours = least(true, row.make, row.happen)?;
    let most = ((theirs + MARK_MS) * 10.0).ceil() / 10.0;
    let [mark, verdict] = report.judge(&format!("PING: {}", row.name()), ours, Mark::AtMost(most));
    Ok(vec![
        format!("{ours:.1}"),
        name.to_owned(),
        format!("{theirs:.1}"),
        mark,
        verdict,
    ])
}

fn ping(server: &Server, make: Make, happen: Happen, size: usize) -> Outcome<Waits> {
    let mut scene = Scene::on(server, size)?;
    make(&mut scene)?;
    beside(server, || {
        happen(&mut scene)?;
        // Who asks while it is under way has been answered by then.
        sleep(Duration::from_millis(20));
        Ok(())
    })
}

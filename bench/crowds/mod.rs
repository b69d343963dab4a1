//! Crowds: n of something on one owner, key, connection or lock, against each thing that can
//! happen to it. The instructions of a piece as n grows, and the longest PING beside it.

mod cells;
mod cluster;
mod crowd;
mod figures;
mod rows;
mod scene;
mod script;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;
use std::thread::{available_parallelism, scope};

use crate::load::Outcome;
use crate::options::Options;
use crate::report::{grouped, Report, Table};
use cells::Cells;
use crowd::Crowd;
use figures::{Figures, Measured, Sized};
use rows::{Row, TABLE};

const NOTES: [&str; 16] = [
    "Instructions of the server for a piece, by valgrind's count, from before it happens until",
    "nothing of it is left: of one request, where that is what happens, else of one of the n. So",
    "small crowds bear what the server does at rest too. A crowd is made anew for each thing that",
    "ends it, and one bears all requests, twenty of a kind; of what comes in turn no more than 1,024",
    "are counted. What happens to 100,000 at once is not counted but timed: us of the server's time",
    "for a piece, with 10,000 and with 100,000, without those of PING, and 1 ms and 5 ms in all at",
    "least. Clients are no more than 10,000, places that are kept 16,384, keys of a request 1,024:",
    "those stand in the columns for more. Growth: the greatest from one size to the next, of",
    "instructions or of time, beyond that of the logarithm of n.",
    "PING: the longest round trip beside it on a server that is not counted, with the most, of a",
    "client that asks every ms, less what both stood in line for a processor, and the same beside",
    "the like on a server without the module. What takes time and misses its target is measured",
    "again, three times at most, and the least counts: for a stall is there each time, and a busy",
    "machine's is not. In a cluster the crowd is on one of two nodes, in one slot, which moves key by",
    "key, a hundred at a time. What the module does a ms at a time, and lets others in between,",
    "comes in more parts where it is counted, and slower: so counts of that differ from run to run.",
];

/// A crowd, and what happens to it: requests one after the other, or what ends it.
struct Group {
    crowd: &'static Crowd,
    rows: Vec<&'static Row>,
}

/// Measures each row, or those whose name has what was asked for, and prints.
pub fn measure(options: &Options, report: &mut Report) -> Outcome<()> {
    let figures = Figures::new(options);
    let sizes: Vec<String> = figures.sizes.iter().map(|&n| grouped(n as f64)).collect();
    let mut columns = vec!["n of what, and what happens"];
    columns.extend(sizes.iter().map(String::as_str));
    columns.extend(Cells::COLUMNS);
    let mut table = Table::new("Crowds", &columns);
    let mut cells = Cells::default();
    let groups = groups(&figures, &options.row);
    for (group, counted) in groups.iter().zip(counted(&groups, &figures)) {
        let timed = figures.timed(group.crowd, &group.rows);
        for ((row, counted), timed) in group.rows.iter().zip(counted).zip(timed) {
            let by = (&figures, &*report);
            let cells = cells.of((group.crowd, row), counted, timed, by);
            println!("{}", cells.join("  "));
            table.row(cells);
        }
    }
    NOTES.iter().for_each(|&note| table.note(note));
    report.print(&table);
    cells.list(report);
    Ok(())
}

/// All that is to be measured.
fn groups(figures: &Figures<'_>, row: &str) -> Vec<Group> {
    let mut groups = Vec::new();
    let crowds = TABLE.iter();
    for &(crowd, rows) in crowds.filter(|(crowd, _)| figures.has_time_for(crowd)) {
        let rows = rows.iter().filter(|one| one.name(crowd).contains(row));
        let (requests, ends): (Vec<&Row>, Vec<&Row>) = rows.partition(|row| row.happen.spares());
        let ends = ends.into_iter().map(|row| vec![row]);
        let all = [requests].into_iter().chain(ends);
        let all = all.filter(|rows| !rows.is_empty());
        groups.extend(all.map(|rows| Group { crowd, rows }));
    }
    groups
}

/// The instructions of all rows, on as many servers at a time as the machine has processors:
/// unlike time they are the same beside others.
fn counted(groups: &[Group], figures: &Figures<'_>) -> Vec<Vec<Measured<Sized>>> {
    let nothing = |group: &Group| vec![Ok(Sized::new()); group.rows.len()];
    if !figures.counts {
        return groups.iter().map(nothing).collect();
    }
    let next = AtomicUsize::new(0);
    let all = Mutex::new(vec![Vec::new(); groups.len()]);
    let work = || loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let Some(group) = groups.get(number) else {
            return;
        };
        let counts = figures.counted(group.crowd, &group.rows);
        for (row, counts) in group.rows.iter().zip(&counts) {
            let counts = counts.iter().flatten().map(|(_, count)| grouped(*count));
            let counts = counts.collect::<Vec<String>>().join("  ");
            println!("{}  {counts}  counted", row.name(group.crowd));
        }
        if let Ok(mut all) = all.lock() {
            all[number] = counts;
        }
    };
    let workers = available_parallelism().map_or(1, usize::from);
    scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
    all.into_inner().unwrap_or_default()
}

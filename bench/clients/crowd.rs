//! One process with very many holds and waits on one connection.

use std::time::Instant;

use super::{called, Built};
use crate::load::{Outcome, Server};
use crate::options::Options;
use crate::report::{grouped, Report, Table};

const NOTES: [&str; 3] = [
    "A process holds so many locks, and waits for as many others, all over one session. Bytes:",
    "what its memory grew by (resident; of Node what its heap has in use; after a collection",
    "where the language has one), for each hold and each wait.",
];

/// Measures each language and prints.
pub fn measure(there: &[Built], options: &Options, report: &mut Report) -> Outcome<()> {
    let size = options.count(10_000, 200);
    let title = format!(
        "Clients: {} holds and as many waits in one process",
        grouped(size as f64)
    );
    let columns = ["by", "s", "bytes for each"];
    let mut table = Table::new(title, &columns);
    for built in there {
        let server = Server::start(&options.server, options.module.as_deref())?;
        let mut crew = built.start("rlock", &server, [1, 1])?;
        let start = Instant::now();
        let bytes = crew.tell(&format!("crowd {size}"))?;
        let row = [
            called(built.language, built.language.ours),
            format!("{:.1}", start.elapsed().as_secs_f64()),
            grouped(bytes as f64),
        ];
        table.row(row);
    }
    for note in NOTES {
        table.note(note);
    }
    report.print(&table);
    Ok(())
}

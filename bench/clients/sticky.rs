//! Sticky locks: a use of one that is here, beside SET NX PX and DEL; how long others wait for one
//! that nobody uses; and two processes that take turns.

use super::{called, Built};
use crate::load::{Crew, Outcome, Server};
use crate::options::Options;
use crate::report::{Report, Table, Target};
use crate::stats::median;

/// So many uses in the time of SET NX PX and DEL.
const USES: f64 = 100.0;
/// In round trips, beyond what a free lock takes.
const LATER: f64 = 1.5;
/// Beside the same with plain locks.
const TURNS: f64 = 1.1;

const NOTES: [&str; 7] = [
    "A use: of a sticky lock that its process has, body empty, beside SET NX PX and DEL by the same",
    "library on a connection of the same kind; medians, in turns. Another's: how long a process waits",
    "every 10 ms for a lock that stays with another one, which uses it every 2 ms, beyond what it waits",
    "for a free one (medians), in round trips: a free one takes just that, after a pause as well. Turns: two",
    "processes take and release the same lock and pause for 2 ms, again and again; the median of",
    "taking and releasing with sticky locks, beside that with plain ones. (A release waits for its",
    "reply; a use sends nothing at its end.)",
];

/// Measures each language and prints.
pub fn measure(
    there: &[Built],
    skipped: &[String],
    options: &Options,
    report: &mut Report,
) -> Outcome<()> {
    let title = "Clients: sticky locks";
    let columns = ["by", "", "", "measured", "target", ""];
    let mut table = Table::new(title, &columns);
    for built in there {
        uses(built, options, report, &mut table)?;
        others(built, options, report, &mut table)?;
        turns(built, options, report, &mut table)?;
    }
    NOTES.into_iter().for_each(|note| table.note(note));
    skipped.iter().for_each(|line| table.note(line.as_str()));
    report.print(&table);
    Ok(())
}

fn row(built: &Built, cells: [String; 3], verdict: [String; 2], table: &mut Table) {
    let language = built.language;
    let mut row = vec![called(language, language.ours)];
    row.extend(cells);
    row.extend(verdict);
    table.row(row);
}

fn us(ns: f64) -> f64 {
    ns / 1000.0
}

fn uses(built: &Built, options: &Options, report: &mut Report, table: &mut Table) -> Outcome<()> {
    let server = Server::start(&options.server, options.module.as_deref())?;
    let mut crew = built.start("rlock", &server, [1, 1])?;
    let ms = options.millis(1_500, 300).as_millis();
    let (mut of_uses, mut of_sets) = (Vec::new(), Vec::new());
    // The first turn warms up.
    for turn in 0..=options.count(5, 1) {
        let sets = crew.tell(&format!("sets {ms}"))? as f64;
        let uses = crew.tell(&format!("uses {ms}"))? as f64;
        if turn > 0 {
            of_uses.push(uses);
            of_sets.push(sets);
        }
    }
    let (uses, sets) = (median(&of_uses), median(&of_sets));
    let ratio = sets / uses.max(1.0);
    let what = format!(
        "{}: uses in the time of SET NX PX and DEL",
        built.language.name
    );
    let verdict = report.judge(&what, ratio, Target::AtLeast(USES));
    let cells = [
        format!("a use {:.2} us", us(uses)),
        format!("SET, DEL {:.0} us", us(sets)),
        format!("{ratio:.0} uses"),
    ];
    row(built, cells, verdict, table);
    Ok(())
}

fn others(built: &Built, options: &Options, report: &mut Report, table: &mut Table) -> Outcome<()> {
    let server = Server::start(&options.server, options.module.as_deref())?;
    let mut crew = built.start("rlock", &server, [1, 1])?;
    let mut keeper = built.start("rlock", &server, [1, 1])?;
    let count = options.count(300, 20);
    let takes = |crew: &mut Crew| crew.tell(&format!("takes {count}"));
    takes(&mut crew)?; // warms up, as below
    let free = takes(&mut crew)? as f64;
    keeper.tell("often 1")?;
    takes(&mut crew)?;
    let kept = takes(&mut crew)? as f64;
    let later = (kept - free) / free;
    let what = format!(
        "{}: another's wait for an idle sticky lock",
        built.language.name
    );
    let verdict = report.judge(&what, later, Target::AtMost(LATER));
    let cells = [
        format!("another's {:.0} us", us(kept)),
        format!("free {:.0} us", us(free)),
        format!("{later:.2} round trips"),
    ];
    row(built, cells, verdict, table);
    Ok(())
}

fn turns(built: &Built, options: &Options, report: &mut Report, table: &mut Table) -> Outcome<()> {
    let count = options.count(300, 20);
    let mut both = [0.0; 2];
    for (way, took) in both.iter_mut().enumerate() {
        let server = Server::start(&options.server, options.module.as_deref())?;
        let mut crew = built.start("rlock", &server, [1, 1])?;
        let mut other = built.start("rlock", &server, [1, 1])?;
        other.tell(&format!("often {way}"))?;
        crew.tell(&format!("shares {way} {count}"))?;
        *took = crew.tell(&format!("shares {way} {count}"))? as f64;
    }
    let [plain, sticky] = both;
    let what = format!(
        "{}: turns with sticky locks / with plain ones",
        built.language.name
    );
    let verdict = report.judge(&what, sticky / plain, Target::AtMost(TURNS));
    let cells = [
        format!("turns {:.0} us", us(sticky)),
        format!("plain {:.0} us", us(plain)),
        format!("{:.2}", sticky / plain),
    ];
    row(built, cells, verdict, table);
    Ok(())
}

//! rlock beside the least that can be paid: by a module (bench/least), and without one by SET
//! NX PX and DEL; and the same with an AOF. Each figure that has a target stands beside it.

use super::work::{Work, BY_LEAST, BY_RLOCK, BY_SET, HAND_OVERS_BY_LEAST};
use super::{instructions, modules, Counted, LOCKS, SERVERS};
use crate::held;
use crate::load::{Outcome, Server, Setup};
use crate::memory;
use crate::options::Options;
use crate::report::{grouped, Report, Table, Target};
use crate::stats::median;
use crate::targets::{Targets, BYTES, NO_LEAST, PAIR_WITH_AOF};

const NOTES: [&str; 8] = [
    "Least: the least module, which looks who releases and remembers nothing of a lock but its",
    "queue. Without an AOF it has each write counted, as rlock does where nobody keeps a record",
    "of writes; with one it sends HSET, PEXPIREAT and DEL, which is dearer than rlock's RESTORE",
    "and DEL. Replicating: it sends them though nobody keeps them. By its own command: that is",
    "what goes to the AOF, which is less, and no honest floor, for a lease would begin anew with",
    "each load. A hand-over: RELEASE, the reply to the next of 100 blocked clients, and the wait",
    "of who released. Bytes: growth of used_memory for each of 100,000 locks, without that for as",
    "many hashes of one field with a TTL on a server without a module.",
];

/// What is counted here, on a server each.
const COUNTS: [(Module, bool, &[&Work]); 5] = [
    (Module::Verbatim, false, &[&BY_LEAST, &HAND_OVERS_BY_LEAST]),
    (Module::Least, false, &[&HAND_OVERS_BY_LEAST]),
    (Module::Rlock, true, &[&BY_RLOCK, &BY_SET]),
    (Module::Least, true, &[&BY_LEAST]),
    (Module::Verbatim, true, &[&BY_LEAST]),
];

#[derive(Clone, Copy, PartialEq)]
enum Module {
    Rlock,
    Least,
    /// The least module, which replicates its own commands, if anybody keeps a record.
    Verbatim,
}

impl Module {
    fn setup(self, options: &Options) -> Setup<'_> {
        let (module, words): (_, &[&str]) = match self {
            Module::Rlock => (modules(options).last().map(|path| path.as_path()), &[]),
            Module::Least => (options.least.as_deref(), &[]),
            Module::Verbatim => (options.least.as_deref(), &["verbatim"]),
        };
        Setup {
            module,
            words,
            ..Setup::default()
        }
    }
}

/// One row: rlock, the least module, SET NX PX and DEL, where they are known.
struct Row {
    name: &'static str,
    figures: [Option<f64>; 3],
    /// What is held against the target.
    judged: Option<(f64, Target)>,
}

/// Counts, holds it against what was counted before, and prints.
pub fn measure(options: &Options, counted: &Counted, report: &mut Report) -> Outcome<()> {
    let plain = Server::start(&options.server, None)?;
    let targets = Targets::of(&mut plain.connect()?)?;
    let hash = memory::per_key(&plain, LOCKS, |control| held::hashes(control, LOCKS))?;

    // In the order of the works above.
    let works = COUNTS.iter().flat_map(|(.., works)| works.iter());
    let mut counts: Vec<Vec<f64>> = works.map(|_| Vec::new()).collect();
    for _ in 0..options.count(SERVERS, 1) {
        let mut counts = counts.iter_mut();
        for (module, recorded, works) in COUNTS {
            let setup = Setup {
                counted: true,
                recorded,
                ..module.setup(options)
            };
            if setup.module.is_none() {
                works.iter().for_each(|_| _ = counts.next());
                continue;
            }
            let mut server = Server::start_as(&options.server, setup)?;
            server.count(true)?;
            for (work, counts) in works.iter().zip(&mut counts) {
                let [all, ..] = instructions(&mut server, work)?;
                counts.push(all);
            }
        }
    }
    let known = |counts: &Vec<f64>| (!counts.is_empty()).then(|| median(counts));
    let counts: Vec<Option<f64>> = counts.iter().map(known).collect();
    let [least, passed, passed_replicating, recorded, set_recorded, least_recorded, own] =
        counts[..]
    else {
        return Err("not all was counted".into());
    };
    let bytes_of_least = bytes_of_least(options)?.map(|bytes| bytes - hash);
    let bytes = counted.bytes - hash;
    let ratio = counted.pair / counted.set_and_del;
    let ratio_recorded = recorded.zip(set_recorded).map(|(pair, set)| pair / set);
    let rows = [
        Row {
            name: "instructions of a pair, over SET NX PX and DEL",
            figures: [Some(counted.pair), least, Some(counted.set_and_del)],
            judged: Some((ratio, Target::AtMost(targets.pair))),
        },
        Row {
            name: "instructions of a pair with an AOF, over SET NX PX and DEL",
            figures: [recorded, least_recorded, set_recorded],
            judged: ratio_recorded.map(|ratio| (ratio, Target::AtMost(PAIR_WITH_AOF))),
        },
        Row {
            name: "  by its own command",
            figures: [None, own, None],
            judged: None,
        },
        Row {
            name: "instructions of a hand-over, 100 clients",
            figures: [Some(counted.hand_over), passed, None],
            judged: Some((counted.hand_over, Target::AtMost(targets.hand_over))),
        },
        Row {
            name: "  replicating",
            figures: [None, passed_replicating, None],
            judged: None,
        },
        Row {
            name: "bytes of a held plain lock beyond the bare hash",
            figures: [Some(bytes), bytes_of_least, None],
            judged: Some((bytes, Target::AtMost(BYTES))),
        },
    ];
    print(options, &rows, (targets.servers, hash), report);
    Ok(())
}

/// Of a lock that the least module holds.
fn bytes_of_least(options: &Options) -> Outcome<Option<f64>> {
    let setup = Module::Verbatim.setup(options);
    if setup.module.is_none() {
        return Ok(None);
    }
    let server = Server::start_as(&options.server, setup)?;
    let hold = |control: &mut _| held::hold_by("LEAST.ACQUIRE", control, LOCKS);
    memory::per_key(&server, LOCKS, hold).map(Some)
}

fn print(options: &Options, rows: &[Row], (servers, hash): (&str, f64), report: &mut Report) {
    let columns = [
        "",
        "rlock",
        "least",
        "SET + DEL",
        "rlock / least",
        "held against the target",
        "target",
        "",
    ];
    let title = format!("rlock beside the least that can be paid; targets of {servers}");
    let mut table = Table::new(title, &columns);
    for row in rows {
        let mut cells = vec![row.name.to_owned()];
        let shown = |figure: Option<f64>| figure.map(grouped).unwrap_or_default();
        cells.extend(row.figures.map(shown));
        let [ours, least, _] = row.figures;
        // Of next to nothing no multiple tells anything: the bytes of the least module.
        let ratio = ours.zip(least).filter(|(_, least)| *least >= 100.0);
        let ratio = ratio.map(|(ours, least)| format!("{:.2}", ours / least));
        cells.push(ratio.unwrap_or_default());
        if let Some((value, target)) = row.judged {
            cells.push(match value {
                ..100.0 => format!("{value:.2}"),
                _ => grouped(value),
            });
            cells.extend(report.judge(row.name, value, target));
        }
        table.row(cells);
    }
    NOTES.iter().for_each(|note| table.note(*note));
    table.note(format!("That hash takes {} bytes.", grouped(hash)));
    if options.least.is_none() {
        table.note(NO_LEAST);
    }
    report.print(&table);
}

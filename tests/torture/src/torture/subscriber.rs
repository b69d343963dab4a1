//! A process that hears rlock's events and, in the same stream, asks for its
//! counters: between two replies both must have grown by the same.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read};
use std::path::Path;
use std::thread;
use std::time::Duration;

use rlock_torture::clock::now_us;
use rlock_torture::history::{Record, Recorder, Sample};

use crate::link::{fields, Link};
use crate::resp::Value;

const EVERY: Duration = Duration::from_millis(200);

pub fn run(server: u16, file: &Path) -> io::Result<()> {
    // Its end is that of its standard input.
    thread::spawn(|| {
        let _ = io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    let mut to = Recorder::create(file)?;
    for stream in 0.. {
        let _ = listen(server, stream, &mut to);
        thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

fn listen(server: u16, stream: u32, to: &mut Recorder) -> io::Result<()> {
    let mut link = Link::open_within(server, EVERY)?;
    let mut events: BTreeMap<String, i64> = BTreeMap::new();
    link.must("HELLO 3")?;
    link.must("CLIENT SETNAME torture")?;
    link.send(&["PSUBSCRIBE", "__keyevent@*__:rlock.*"])?;
    link.send(&["INFO", "rlock"])?;
    loop {
        match link.next() {
            Ok(Value::Push(parts)) => {
                let words: Vec<&str> = parts.iter().filter_map(Value::text).collect();
                if let ["pmessage", _, channel, _] = words[..] {
                    let event = channel.rsplit("rlock.").next().unwrap_or_default();
                    *events.entry(event.to_owned()).or_default() += 1;
                }
            }
            Ok(Value::Text(info)) => {
                to.write(&Record::Sample(Sample {
                    server,
                    stream,
                    at: now_us(),
                    counters: counters(fields(&info)),
                    events: events.clone(),
                }))?;
                to.flush()?;
                thread::sleep(EVERY);
                link.send(&["INFO", "rlock"])?;
            }
            Ok(_) => (),
            Err(error) if error.kind() == ErrorKind::WouldBlock => (),
            Err(error) => return Err(error),
        }
    }
}

/// rlock's fields of INFO, without what stands before each name.
pub fn counters(fields: Vec<(String, String)>) -> BTreeMap<String, i64> {
    let numbers = fields.into_iter().filter_map(|(name, value)| {
        let name = name.strip_prefix("rlock_")?.to_owned();
        Some((name, value.parse().ok()?))
    });
    numbers.collect()
}

//! What each process writes down of its clients' holds. It outlives the process, and a
//! kill does not tear it: a record is written in one piece that lies within a page.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// A record: numbers in the order in which the fields of an event are written below.
type Words = [i64; 8];

const SIZE: usize = size_of::<Words>();

/// Something that a client did, with the moments at which it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Its permits were granted.
    Granted(Granted),
    /// Its lease runs anew, from this moment or later.
    Renewed(i64),
    /// It gives its permits back, not before this moment.
    Releasing(i64),
    /// It had held them until then.
    Released,
    /// Its lease had ended before.
    TooLate,
}

/// A grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granted {
    pub permits: i64,
    /// ms; none: it lasts as long as the connection.
    pub lease: Option<i64>,
    /// It asked after this moment, ...
    pub sent: i64,
    /// ... and its request was in the queue, or granted, before this one.
    pub queued: i64,
    /// The grant was known.
    pub seen: i64,
    pub token: i64,
}

/// Whose hold an event is of: the client, and its turn.
pub type Id = (usize, usize);

/// ns on a clock that is the same in all processes and is never set.
pub fn moment() -> i64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` outlives the call.
    let read = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    assert_eq!(read, 0, "the clock");
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// The log of one process.
pub struct Log(File);

/// Where a process has its log.
pub fn path(dir: &Path, process: usize) -> PathBuf {
    dir.join(format!("process-{process}"))
}

impl Log {
    pub fn open(path: &Path) -> Self {
        let mut options = OpenOptions::new();
        Self(options.append(true).create(true).open(path).expect("a log"))
    }

    pub fn put(&self, (client, turn): Id, event: Event) {
        let id = ((client as i64) << 32) | turn as i64;
        let mut words: Words = [id, 0, 0, 0, 0, 0, 0, 0];
        match event {
            Event::Granted(it) => {
                let lease = it.lease.unwrap_or(0);
                words[1..].copy_from_slice(&[
                    0, it.permits, lease, it.sent, it.queued, it.seen, it.token,
                ]);
            }
            Event::Renewed(at) => words[1..3].copy_from_slice(&[1, at]),
            Event::Releasing(at) => words[1..3].copy_from_slice(&[2, at]),
            Event::Released => words[1] = 3,
            Event::TooLate => words[1] = 4,
        }
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let written = (&self.0).write(&bytes).expect("write");
        assert_eq!(written, SIZE);
    }
}

/// All that a process has written down so far, in order.
pub fn read(path: &Path) -> Vec<(Id, Event)> {
    let bytes = std::fs::read(path).unwrap_or_default();
    assert_eq!(bytes.len() % SIZE, 0, "a record was torn");
    bytes.chunks(SIZE).map(record).collect()
}

fn record(bytes: &[u8]) -> (Id, Event) {
    let word = |at: usize| i64::from_le_bytes(bytes[at * 8..][..8].try_into().expect("8 bytes"));
    let id = ((word(0) >> 32) as usize, (word(0) & 0xffff_ffff) as usize);
    let event = match word(1) {
        0 => Event::Granted(Granted {
            permits: word(2),
            lease: Some(word(3)).filter(|lease| *lease > 0),
            sent: word(4),
            queued: word(5),
            seen: word(6),
            token: word(7),
        }),
        1 => Event::Renewed(word(2)),
        2 => Event::Releasing(word(2)),
        3 => Event::Released,
        4 => Event::TooLate,
        other => panic!("no event: {other}"),
    };
    (id, event)
}

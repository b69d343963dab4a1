//! What the server tells of keys, and what it tells wrongly or not at all: the core takes any
//! note of any key, while anybody writes what they like, and each owner of state keeps what it
//! promises. No request changes what is no lock.

use super::request::by;
use super::shell::{key, Shell};
use crate::hostile::{run, Input};
use crate::lock::kind;
use crate::lock::memory::{counter, Fields, Value};
use crate::lock::{Cause, ClientId, Gate, Key, Kind, Mode, Note, Once, WallMs};

const NAMES: [&str; 8] = [
    "k",
    "j",
    "{k}",
    "{k}:a:rwlock_timeout:1",
    "{j}:a:rwlock_timeout:1",
    "{k}:a",
    "redisson_lock_token:{k}",
    "",
];
const OWNERS: [&str; 5] = ["a", "b", "a:rwlock_timeout:1", "}:a", "c"];
const FIELDS: [&[u8]; 7] = [
    b"a",
    b"b",
    b"mode",
    b"a:write",
    b"b:write",
    b"",
    b"a:write:write",
];
const VALUES: [&[u8]; 10] = [
    b"1",
    b"2",
    b"read",
    b"write",
    b"permits 3 3 1",
    b"permits 2 1 9",
    b"1@1",
    b"1@1800000000000",
    b"x",
    b"1025",
];
const CAUSES: [Cause; 6] = [
    Cause::Unknown,
    Cause::Removed,
    Cause::Overwritten,
    Cause::Flushed,
    Cause::Evicted,
    Cause::Expired,
];

fn any_key(input: &mut Input<'_>) -> Key {
    key(
        i32::from(input.byte() % 8 == 7),
        NAMES[input.below(NAMES.len())],
    )
}

fn notes(data: &[u8]) {
    let mut input = Input(data);
    let mut shell = Shell::new();
    for _ in 0..60 {
        if input.is_over() {
            break;
        }
        step(&mut input, &mut shell);
        shell.core.check();
    }
    shell.gate = Gate::Open;
    shell.ks.keys.clear();
    shell.notes.push(Note::Replaced(None, Cause::Flushed));
    shell.read_notes();
    shell.core.check();
}

fn step(input: &mut Input<'_>, shell: &mut Shell) {
    match input.below(14) {
        0..4 => untouched(shell, |shell| acquire(input, shell)),
        4 => {
            let (at, owner) = (any_key(input), OWNERS[input.below(5)]);
            let (mode, all) = (mode(input), input.below(2) == 0);
            untouched(shell, |shell| drop(shell.release_as(&at, owner, mode, all)));
        }
        5 => {
            let (at, owner) = (any_key(input), OWNERS[input.below(5)]);
            let (mode, lease) = (mode(input), i64::from(input.byte()) + 1);
            untouched(shell, |shell| drop(shell.renew_as(&at, owner, mode, lease)));
        }
        6 => {
            let at = any_key(input);
            untouched(shell, |shell| drop(shell.force_on(&at)));
        }
        7 | 8 => write(input, shell),
        9..12 => note(input, shell),
        12 => {
            shell.gate = [Gate::Open, Gate::Open, Gate::Shut][input.below(3)];
            shell.pass_and_tick(i64::from(input.byte()));
        }
        // Behind the gate what is due stays so.
        _ if shell.gate == Gate::Open => shell.read_notes(),
        _ => shell.tick(),
    }
}

fn mode(input: &mut Input<'_>) -> Mode {
    [Mode::Exclusive, Mode::Read, Mode::Write, Mode::Permits][input.below(4)]
}

fn acquire(input: &mut Input<'_>, shell: &mut Shell) {
    let name = NAMES[input.below(7)];
    let mut request = by(OWNERS[input.below(5)])
        .on(name)
        .lease(i64::from(input.byte()) + 1);
    request = match input.below(5) {
        0 | 1 => request,
        2 => request.read(),
        3 => request.write(),
        _ => request.permits(1 + u32::from(input.byte() % 3), 3),
    };
    let how = input.byte();
    if how & 1 != 0 {
        request = request.block(i64::from(input.byte()));
    }
    if how & 2 != 0 {
        request = request.watched();
    }
    if how & 4 != 0 {
        request.once = Once::IsTheSame;
    }
    let _ = shell.acquire(request.from(1 + u64::from(how >> 4)));
}

/// Somebody writes a key, or takes it away, and says nothing.
fn write(input: &mut Input<'_>, shell: &mut Shell) {
    let at = any_key(input);
    let ends = match input.below(3) {
        0 => None,
        1 => Some(shell.ks.now_ms.plus_ms(i64::from(input.byte()))),
        _ => Some(WallMs(input.number().max(1))),
    };
    let value = match input.below(5) {
        0 => return drop(shell.ks.keys.remove(&at)),
        1 => Value::Text,
        2 => {
            let number = Value::Number(input.number());
            return drop(shell.ks.keys.insert(counter(&at), (number, ends)));
        }
        _ => {
            let count = input.below(4) + 1;
            let pair = |input: &mut Input<'_>| {
                (input.word(&FIELDS).to_vec(), input.word(&VALUES).to_vec())
            };
            Value::Hash((0..count).map(|_| pair(input)).collect::<Fields>())
        }
    };
    shell.ks.keys.insert(at, (value, ends));
}

/// A note, be it true or not.
fn note(input: &mut Input<'_>, shell: &mut Shell) {
    let (at, cause) = (any_key(input), CAUSES[input.below(6)]);
    let note = match input.below(7) {
        0 | 1 => Note::Changed(at, cause),
        2 => Note::Reader(at, OWNERS[input.below(5)].as_bytes().into(), cause),
        3 => {
            let to = any_key(input);
            if let (true, Some(value)) = (input.below(2) == 0, shell.ks.keys.remove(&at)) {
                shell.ks.keys.insert(to.clone(), value);
            }
            Note::Renamed(at, to)
        }
        4 => Note::Swapped(at.db, i32::from(input.byte() % 2)),
        5 => Note::Replaced([None, Some(at.db)][input.below(2)], cause),
        _ => match ClientId::new(1 + u64::from(input.byte() >> 4)) {
            Some(client) => Note::Closed(client),
            None => return,
        },
    };
    shell.notes.push(note);
}

/// Runs a request, and sees that what is no lock is as it was.
fn untouched(shell: &mut Shell, run: impl FnOnce(&mut Shell)) {
    let now = shell.ks.now_ms;
    let strange = |(at, (value, ends)): (&Key, &(Value, Option<WallMs>))| {
        let is_past = ends.is_some_and(|ends| now > ends);
        let is_strange = match value {
            Value::Hash(fields) => matches!(kind::look(fields, b"", None).kind, Kind::Foreign(_)),
            // It may be the lease key of a reader.
            Value::Text => !crate::redisson::is_lease_key(&at.name),
            Value::Number(_) => false,
        };
        (is_strange && !is_past).then(|| (at.clone(), (value.clone(), *ends)))
    };
    let before: Vec<_> = shell.ks.keys.iter().filter_map(strange).collect();
    run(shell);
    for (at, was) in before {
        assert_eq!(shell.ks.keys.get(&at), Some(&was), "{at:?}");
    }
}

#[test]
fn fuzz_notes() {
    run("notes", notes);
}

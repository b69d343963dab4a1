//! RLOCK.LIST tells of presumed locks too, and marks them.

use crate::support::{list, map, now_ms, text, Ask, RawClient};

use super::{loaded_after, plain, presumed, written, LATE};

/// Each page of so many: the keys, owners, modes and marks in order, as `key=owner mode
/// presumed`.
#[track_caller]
fn listed(client: &mut RawClient, words: &str) -> Vec<String> {
    let (mut cursor, mut all) = ("0".to_owned(), Vec::new());
    loop {
        let mut parts = list(client.ask(&format!("RLOCK.LIST CURSOR {cursor} {words}")));
        for held in list(parts.remove(1)).into_iter().map(map) {
            let [key, owner, mode] = ["key", "owner", "mode"].map(|name| text(held[name].clone()));
            let mark = match &held["presumed"] {
                redis::Value::Int(mark) => *mark,
                other => panic!("{other:?}"),
            };
            all.push(format!("{key}={owner} {mode} {mark}"));
        }
        cursor = text(parts.remove(0));
        if cursor == "0" {
            all.sort();
            return all;
        }
    }
}

#[test]
fn presumed_locks_are_shown_and_marked_until_a_request_comes_to_them() {
    let until = now_ms() + LATE;
    let mut lines = [plain("p", until), written("w", until)].concat();
    // Five readers; `hits` is an application's hash that looks the same.
    lines.push("HSET r mode read".to_owned());
    for reader in ["a", "b", "c", "d", "e"] {
        lines.push(format!("HSET r {reader} 1"));
        lines.push(format!(
            "SET {{r}}:{reader}:rwlock_timeout:1 1 PXAT {until}"
        ));
    }
    lines.push(format!("PEXPIREAT r {until}"));
    lines.extend([
        "HSET hits page 5".to_owned(),
        format!("PEXPIREAT hits {until}"),
    ]);
    lines.extend(["HSET cart apple 3".to_owned(), "SET text x".to_owned()]);
    let server = loaded_after(&[], &lines);
    let mut client = server.raw();
    presumed(&mut client, 4);
    let expected = [
        "hits=page exclusive 1",
        "p=someone:1 exclusive 1",
        "r=a read 1",
        "r=b read 1",
        "r=c read 1",
        "r=d read 1",
        "r=e read 1",
        "w=someone:1 write 1",
    ];
    for count in [1, 2, 3, 100] {
        assert_eq!(listed(&mut client, &format!("COUNT {count}")), expected);
    }
    assert_eq!(listed(&mut client, "OWNER some MATCH p"), [expected[1]]);
    assert_eq!(
        listed(&mut client, "HELD-LONGER 0"),
        [""; 0],
        "nobody knows since when"
    );
    assert_eq!(client.counter("rlock_held"), 0);

    assert_eq!(client.int("RLOCK.RENEW p someone:1 100000"), 1);
    assert_eq!(listed(&mut client, "MATCH p"), ["p=someone:1 exclusive 0"]);
    client.int("HSET w mode x");
    client.int("DEL r");
    assert_eq!(listed(&mut client, "MATCH [rw]"), [""; 0]);
}

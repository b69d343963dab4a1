//! The function library refuses in the module's own words: both are asked the same.

use super::caller::Lua;
use crate::support::{Ask, RawClient, Request, Server};

const MOST_MS: i64 = (1 << 53) - 1;

/// The module's request for one of the library's.
fn native<R: Request + ?Sized>(request: &R) -> Vec<Vec<u8>> {
    let mut words = request.args();
    words[0] = [b"RLOCK.", words[0].as_slice()].concat();
    words
}

pub struct Pair {
    _module: Server,
    pub module: RawClient,
    _bare: Server,
    pub lua: Lua,
}

impl Pair {
    /// Both with `job` held by alice, `doc` read by her and `text`, which is no lock.
    pub fn all() -> impl Iterator<Item = Self> {
        Lua::both().map(|(bare, lua)| {
            let server = Server::start();
            let module = server.raw();
            let mut pair = Self {
                _module: server,
                module,
                _bare: bare,
                lua,
            };
            pair.both("acquire job alice 3600000");
            pair.both("acquire doc alice 3600000 READ");
            for client in [&mut pair.lua.client, &mut pair.module] {
                client.ok("SET text 1");
            }
            pair
        })
    }

    #[track_caller]
    pub fn agree<R: Request + ?Sized>(&mut self, request: &R) -> String {
        let ours = self.lua.error(request);
        let theirs = self.module.error(&native(request));
        assert_eq!(ours, theirs, "{}", request.shown());
        ours
    }

    /// Both are asked, whatever they reply.
    pub fn both<R: Request + ?Sized>(&mut self, request: &R) {
        self.lua.ask(request);
        self.module.ask(&native(request));
    }

    #[track_caller]
    fn is_as_it_was(&mut self) {
        let keys = self.lua.keys();
        let names: Vec<_> = keys.iter().map(|(key, ..)| key.as_str()).collect();
        let lease = "{doc}:alice:rwlock_timeout:1";
        assert_eq!(names, ["doc", "job", "text", lease].map(str::to_owned));
    }
}

#[test]
fn a_number_is_a_decimal_integer_and_nothing_else() {
    for mut pair in Pair::all() {
        let too_much = (MOST_MS + 1).to_string();
        let nines = "9".repeat(400);
        for lease in [
            "0",
            "-1",
            "-0",
            "+5",
            "05",
            "00",
            "1.0",
            "1.5",
            "1e3",
            "1E3",
            "0x10",
            "0X10",
            "1_000",
            "",
            " 5",
            "5 ",
            "\t5",
            "5\n",
            "5\0",
            "\0",
            "inf",
            "nan",
            "ten",
            "ONCE",
            "'",
            "\\",
            "\u{665}",
            &too_much,
            "9007199254740993",
            "9223372036854775807",
            "9223372036854775808",
            "18446744073709551617",
            &nines,
        ] {
            for name in ["acquire", "renew"] {
                let words = [name, "job", "alice", lease].map(str::as_bytes);
                let line = pair.agree(&words);
                let begin = "ERR the lease must be a whole number of ms from 1 to";
                assert!(line.starts_with(begin), "{line}");
            }
            let words = ["macquire", "1", "job", "alice", lease].map(str::as_bytes);
            pair.agree(&words);
            let words = ["mrenew", "1", "job", "alice", lease].map(str::as_bytes);
            pair.agree(&words);
        }
        pair.is_as_it_was();
    }
}

#[test]
fn an_owner_is_1_to_512_bytes_and_no_field_of_another_meaning() {
    let long = [b'x'; 513];
    let ends = [&[0xff; 300][..], b":write"].concat();
    let owners: [&[u8]; 7] = [
        b"",
        &long,
        b"mode",
        b":write",
        b"a:write",
        b"\0:write",
        &ends,
    ];
    for mut pair in Pair::all() {
        for owner in owners {
            for words in [
                &[&b"acquire"[..], b"job", owner, b"1000"][..],
                &[b"release", b"job", owner],
                &[b"renew", b"job", owner, b"x"],
                &[b"macquire", b"2", b"job", b"a", owner, b"1000", b"NX"],
                &[b"mrelease", b"1", b"job", owner],
                &[b"mrenew", b"1", b"job", owner, b"1000"],
            ] {
                let line = pair.agree(words);
                assert!(line.starts_with("ERR the owner must "), "{line}");
            }
        }
        pair.is_as_it_was();
    }
}

#[test]
fn keywords_are_known_and_come_once() {
    for mut pair in Pair::all() {
        for line in [
            "acquire job bob 1000 NX",
            "acquire job bob 1000 ALL",
            "acquire job bob 1000 ONCE once",
            "acquire job bob 1000 READ WRITE",
            "acquire job bob 1000 write read",
            "acquire job bob 1000 read Read",
            "acquire job bob 1000 5",
            "acquire text bob 1000 'READ'",
            "release job alice ONCE",
            "release job alice ALL all",
            "release job bob READ READ",
            "release job bob BLOCK 5",
            "release job bob WATCHDOG",
            "renew job alice 1000 ALL",
            "renew job alice 1000 BLOCK 5",
            "renew job alice 1000 2000",
            "macquire 1 job bob 1000 READ",
            "macquire 1 job bob 1000 ONCE ONCE",
            "mrelease 1 job alice ALL",
            "mrelease 1 job alice BLOCK",
            "mrenew 1 job alice 1000 WRITE",
            "info job other",
            "info job COUNT 1 count 1",
            "acquire job bob 1000 LIMIT 2 READ",
            "acquire job bob 1000 READ LIMIT 2",
            "acquire job bob 1000 LIMIT 2 limit 2",
            "acquire job bob 1000 PERMITS 1 LIMIT 2 PERMITS 1",
            "release job bob PERMITS 1 2",
            "release job bob READ PERMITS",
            "release job bob PERMITS all permits",
            "release job bob LIMIT 2",
            "renew job bob 1000 PERMITS 1",
            "renew job bob 1000 READ PERMITS",
            "macquire 1 job bob 1000 LIMIT 2",
            "mrelease 1 job bob PERMITS",
        ] {
            let found = pair.agree(line);
            assert!(found.starts_with("ERR syntax error at "), "{found}");
        }
        let binary: [&[u8]; 5] = [b"acquire", b"job", b"bob", b"1000", b"\0\xff"];
        pair.agree(&binary);
        pair.agree(&[b"acquire".as_slice(), b"job", b"bob", b"1000", b""]);
        pair.is_as_it_was();
    }
}

#[test]
fn arguments_are_neither_missing_nor_too_many() {
    for mut pair in Pair::all() {
        for line in [
            "acquire",
            "acquire job",
            "acquire job alice",
            "release",
            "release job",
            "renew",
            "renew job",
            "renew job alice",
            "force",
            "info",
            "info job COUNT",
            "limit",
            "limit job",
            "limit job 5 6",
            "macquire 1 job",
            "macquire 1 job alice",
            "mrelease 1 job",
            "mrenew 1 job",
            "mrenew 1 job alice",
        ] {
            let found = pair.agree(line);
            assert!(
                found.starts_with("ERR wrong number of arguments"),
                "{found}"
            );
        }
        pair.agree("macquire 3 job a job bob 1000");
        pair.is_as_it_was();
    }
}

#[test]
fn what_is_refused_for_who_holds_it_has_the_same_error() {
    for mut pair in Pair::all() {
        for line in [
            "acquire job alice 1000 READ",
            "acquire job alice 1000 WRITE ONCE",
            "acquire doc alice 1000",
            "acquire text alice 1000",
            "release job bob",
            "release job bob READ",
            "release job alice READ",
            "release doc alice",
            "release doc alice WRITE ALL",
            "release none alice WRITE",
            "release text alice",
            "renew job bob 1000",
            "renew job alice 1000 WRITE",
            "renew doc alice 1000 WRITE",
            "renew text alice 1000",
            "force text",
            "info text",
            "macquire 2 none doc alice 1000",
            "macquire 3 job doc text alice 1000",
            "mrelease 2 job text alice",
            "mrenew 2 job none alice 1000",
            "mrenew 2 job doc alice 1000",
        ] {
            pair.agree(line);
        }
        pair.is_as_it_was();
    }
}

#[test]
fn binary_names_are_escaped_and_long_ones_cut() {
    let all: Vec<u8> = (0..=255).collect();
    let names: [&[u8]; 8] = [
        b"\0",
        b"a b",
        b"it's",
        b"back\\slash",
        b"%s %d %",
        "\u{fc}".as_bytes(),
        &[b'x'; 512],
        &all,
    ];
    for mut pair in Pair::all() {
        for name in names {
            for other in [&b"job"[..], name] {
                pair.agree(&[b"release".as_slice(), other, name]);
                pair.agree(&[b"renew".as_slice(), name, other, b"1000", b"READ"]);
            }
            pair.agree(&[b"acquire".as_slice(), b"job", b"bob", b"1000", name]);
            pair.agree(&[b"acquire".as_slice(), b"job", b"bob", name]);
            pair.agree(&[b"mrelease".as_slice(), b"2", name, name, b"a"]);
            for client in [&mut pair.lua.client, &mut pair.module] {
                client.ask(&[b"HSET", name, b"mode", b"write"]);
                client.ask(&[b"HSET", name, &[name, b":write"].concat(), b"1"]);
                client.ask(&[b"PEXPIRE", name, b"100000"]);
            }
            pair.agree(&[b"acquire".as_slice(), name, name, b"1000"]);
            for client in [&mut pair.lua.client, &mut pair.module] {
                client.ask(&[b"DEL", name]);
            }
        }
        pair.is_as_it_was();
    }
}

#[test]
fn the_last_number_of_holds_is_the_last() {
    for mut pair in Pair::all() {
        for client in [&mut pair.lua.client, &mut pair.module] {
            client.int(&format!("HSET job alice {}", i64::MAX));
        }
        let line = pair.agree("acquire job alice 1000");
        let expected = "ERR owner 'alice' cannot nest any deeper on 'job': release a hold first";
        assert_eq!(line, expected);
        pair.agree("macquire 2 none job alice 1000");
        pair.is_as_it_was();
    }
}

#[test]
fn a_counter_that_cannot_be_raised_has_the_same_error() {
    let counter = "redisson_lock_token:{50%}";
    for mut pair in Pair::all() {
        for make in [
            format!("SET {counter} x"),
            format!("SET {counter} 007"),
            format!("SET {counter} {MOST_MS}"),
            format!("SET {counter} {}", i64::MAX),
            format!("RPUSH {counter} 1"),
        ] {
            for client in [&mut pair.lua.client, &mut pair.module] {
                client.int(&format!("DEL {counter}"));
                client.ask(&make);
            }
            let line = pair.agree("acquire 50% alice 1000");
            assert!(line.starts_with("WRONGTYPE "), "{make}: {line}");
        }
    }
}

//! Arguments: what is accepted is written again from what was read, word for word, so nothing was
//! passed over or read as something else; what is refused is refused in one line that says
//! what was wrong.

use super::*;
use crate::command::{cursor, glob};
use crate::hostile::{run, Input};

/// A command: whether its keys are counted, whether an owner and a lease follow, and its
/// keywords.
struct Form(bool, bool, bool, &'static [&'static str]);

const FORMS: [Form; 8] = [
    Form(
        false,
        true,
        true,
        &[
            "READ",
            "WRITE",
            "LIMIT",
            PERMITS_WANTED,
            "BLOCK",
            "QUEUE",
            "NOTIFY",
            "WATCHDOG",
            "ONCE",
        ],
    ),
    Form(
        false,
        true,
        false,
        &["READ", "WRITE", PERMITS_BACK, "ALL", "IFHELD", "IFTOKEN"],
    ),
    Form(
        false,
        true,
        true,
        &[
            "READ", "WRITE", PERMITS, "NOTIFY", "WATCHDOG", "FENCE", "TOKEN",
        ],
    ),
    Form(
        true,
        true,
        true,
        &["BLOCK", "QUEUE", "NOTIFY", "WATCHDOG", "ONCE"],
    ),
    Form(true, true, false, &[]),
    Form(true, true, true, &["NOTIFY"]),
    Form(false, true, false, &["READ", "WRITE", PERMITS]),
    Form(false, false, false, &["COUNT"]),
];

const WORDS: [&[u8]; 41] = [
    b"READ",
    b"WRITE",
    b"LIMIT",
    b"PERMITS",
    b"BLOCK",
    b"QUEUE",
    b"NOTIFY",
    b"WATCHDOG",
    b"ONCE",
    b"ALL",
    b"IFHELD",
    b"IFTOKEN",
    b"FENCE",
    b"TOKEN",
    b"COUNT",
    b"read",
    b"Permits",
    b"permits",
    b"1",
    b"2",
    b"3",
    b"0",
    b"1000",
    b"9007199254740991",
    b"9007199254740992",
    b"-1",
    b"+1",
    b"01",
    b" 1",
    b"1e9",
    b"0x10",
    b"k",
    b"a",
    b"b",
    b"owner",
    b"*",
    b"mode",
    b"o:write",
    b"ch",
    b"t1",
    b"",
];

type Words = Vec<Vec<u8>>;

fn given<'a>(words: &'a [&'a [u8]]) -> Args<'a, impl Iterator<Item = &'a [u8]>> {
    let left = words.iter().copied().peekable();
    Args {
        left,
        usage: "RLOCK.X",
    }
}

/// What was read, as it would be said.
fn read(form: &Form, words: &[&[u8]]) -> Result<Words, Error> {
    let Form(many, owned, leased, taken) = form;
    let mut args = given(words);
    let mut said = Words::new();
    if *many {
        let keys = args.keys()?;
        // As the server is told of them.
        let told = std::str::from_utf8(words[0])
            .ok()
            .and_then(|text| text.parse::<i32>().ok());
        assert_eq!(told, i32::try_from(keys.len()).ok());
        said.push(keys.len().to_string().into());
        said.extend(keys.iter().map(|key| key.to_vec()));
    } else {
        said.push(args.next()?.to_vec());
    }
    if *owned {
        said.push(match args.owner()? {
            OwnerArg::Named(name) => name.to_vec(),
            OwnerArg::Connection => b"*".to_vec(),
        });
    }
    if *leased {
        said.push(args.lease()?.to_string().into());
    }
    say(&args.options(taken)?, &mut said);
    args.end()?;
    Ok(said)
}

fn say(options: &Options<'_>, said: &mut Words) {
    let mut word = |text: &str| said.extend(text.split(' ').map(|word| word.as_bytes().to_vec()));
    match options.mode {
        Some(Mode::Read) => word("READ"),
        Some(Mode::Write) => word("WRITE"),
        Some(Mode::Permits) if options.limit.is_none() => word("PERMITS"),
        _ => {}
    }
    if let Some(limit) = options.limit {
        word(&format!("LIMIT {limit}"));
    }
    match options.permits {
        Some(permits) if options.mode == Some(Mode::Permits) && options.limit.is_none() => {
            word(&permits.to_string());
        }
        Some(permits) => word(&format!("PERMITS {permits}")),
        None => {}
    }
    if let Some(wait) = options.wait {
        let name = if wait.queued { "QUEUE" } else { "BLOCK" };
        word(&format!("{name} {}", wait_ms(wait)));
    }
    for (is_said, text) in [
        (options.watch, "WATCHDOG"),
        (options.once, "ONCE"),
        (options.all, "ALL"),
    ] {
        if is_said {
            word(text);
        }
    }
    match options.only {
        Some(Only::Held) => word("IFHELD"),
        Some(Only::Token(token)) => word(&format!("IFTOKEN {}", token.0)),
        None => {}
    }
    match options.fence {
        Some(Fence::Raise(token)) => word(&format!("FENCE {}", token.0)),
        Some(Fence::New) => word("TOKEN"),
        None => {}
    }
    if let Some(count) = options.count {
        word(&format!("COUNT {count}"));
    }
    if let Some((channel, tag)) = options.notify {
        said.extend([b"NOTIFY".to_vec(), channel.to_vec(), tag.to_vec()]);
    }
}

/// It shows what it waits for to nobody but the clock.
fn wait_ms(wait: Wait) -> i64 {
    let text = format!("{wait:?}");
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(0)
}

/// The same words, in whatever order and case.
fn sorted(words: impl Iterator<Item = Vec<u8>>) -> Words {
    let mut words: Words = words.map(|word| word.to_ascii_uppercase()).collect();
    words.sort();
    words
}

fn arguments(data: &[u8]) {
    let mut input = Input(data);
    let form = &FORMS[input.below(FORMS.len())];
    let mut words = Vec::new();
    while !input.is_over() && words.len() < 64 {
        words.push(input.word(&WORDS));
    }
    // To be mended: these are taken for the keyword, as its usage shows it.
    if words
        .iter()
        .any(|word| word.to_ascii_uppercase().starts_with(b"PERMITS "))
    {
        return;
    }
    match read(form, &words) {
        Ok(said) => {
            let asked = words.iter().map(|word| word.to_vec());
            assert_eq!(sorted(said.iter().cloned()), sorted(asked), "{words:?}");
            let words: Vec<&[u8]> = said.iter().map(Vec::as_slice).collect();
            assert_eq!(read(form, &words).ok(), Some(said.clone()), "written again");
        }
        Err(error) => names_what_was_wrong(error.line()),
    }
}

fn names_what_was_wrong(line: &str) {
    assert!(line.starts_with("ERR ") && line.len() <= 512, "{line}");
    assert!(
        line.bytes().all(|byte| (b' '..=b'~').contains(&byte)),
        "{line}"
    );
    let names = [
        "; usage: RLOCK.X",
        "must be ",
        "must not be ",
        "is given twice",
    ];
    assert!(names.iter().any(|name| line.contains(name)), "{line}");
}

/// Cursors and patterns of RLOCK.LIST.
fn listing(data: &[u8]) {
    match cursor::read(data) {
        Ok(cursor) => {
            let text = cursor::text(cursor.as_ref());
            assert!(text.eq_ignore_ascii_case(data), "{data:?}");
        }
        Err(error) => names_what_was_wrong(error.line()),
    }
    let mut input = Input(data);
    let (pattern, name) = (input.bytes(), input.0);
    if !name.iter().any(|byte| b"*?[\\".contains(byte)) {
        assert_eq!(glob::fits(name, pattern), name == pattern);
    }
    let any = [pattern, b"*"].concat();
    if glob::fits(pattern, name) && !pattern.ends_with(b"\\") && !pattern.contains(&b'[') {
        assert!(glob::fits(&any, name), "{pattern:?} {name:?}");
    }
    let shown = shown(name);
    assert!(shown.bytes().all(|byte| (b' '..=b'~').contains(&byte)) && shown.len() < 120);
}

#[test]
fn fuzz_arguments() {
    run("arguments", arguments);
}

#[test]
fn fuzz_listing() {
    run("listing", listing);
}

//! What is done on both servers, and how it reads when it is told.

use std::fmt::{self, Display, Formatter};

pub type Bytes = Vec<u8>;
pub type Words = Vec<Bytes>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// One of rlock's commands, in the words of the module.
    Lock(Words),
    /// A command that knows nothing of rlock, and the locks that it may change.
    Foreign { words: Words, changes: Vec<Bytes> },
    /// One that the library refuses on purpose; the module is not asked.
    Refused(Words),
    /// A command on the second server alone: how the comparison is tested.
    Aside(Words),
    /// Time passes until every lease that is about to end has ended. With `look`
    /// the keys are looked at then, so that the server expires them; without it the
    /// next step is the first to touch them.
    Pass { look: bool },
}

impl Step {
    pub fn words(&self) -> &[Bytes] {
        match self {
            Self::Lock(words) | Self::Refused(words) | Self::Aside(words) => words,
            Self::Foreign { words, .. } => words,
            Self::Pass { .. } => &[],
        }
    }

    /// The lock that it is about; of several the first.
    pub fn lock(&self) -> Option<&Bytes> {
        match self {
            Self::Lock(words) | Self::Refused(words) => keys_of(words).first(),
            Self::Foreign { changes, .. } => changes.first(),
            Self::Aside(_) | Self::Pass { .. } => None,
        }
    }
}

/// A line, split at blanks.
pub fn words(line: &str) -> Words {
    line.split_whitespace().map(|word| word.into()).collect()
}

/// The name of a lock command's function, and the same call of it.
pub fn as_function(words: &[Bytes]) -> Words {
    let (name, args) = words.split_first().expect("a command");
    let function = String::from_utf8_lossy(name)
        .to_lowercase()
        .replace("rlock.", "rlock1_");
    // A function that says it writes nothing can be called this way too.
    let call = match function.as_str() {
        "rlock1_info" => "FCALL_RO",
        _ => "FCALL",
    };
    let mut call = vec![call.into(), function.clone().into_bytes()];
    let counts_keys = function.starts_with("rlock1_m");
    match args.first() {
        None => call.push(b"0".to_vec()),
        Some(_) if counts_keys => {}
        Some(_) => call.push(b"1".to_vec()),
    }
    call.extend_from_slice(args);
    call
}

/// The locks that a command is about, as far as it names them.
pub fn keys_of(words: &[Bytes]) -> &[Bytes] {
    let name = words.first().map(|name| name.to_ascii_uppercase());
    let (first, count) = match name {
        Some(name) if name.starts_with(b"RLOCK.M") => {
            let count = words.get(1).and_then(|text| std::str::from_utf8(text).ok());
            (2, count.and_then(|text| text.parse().ok()).unwrap_or(0))
        }
        _ => (1, 1),
    };
    let args = words.get(first..).unwrap_or_default();
    &args[..args.len().min(count)]
}

impl Display for Step {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lock(words) | Self::Foreign { words, .. } => write!(out, "{}", line(words)),
            Self::Refused(words) => write!(out, "{} (the library alone)", line(words)),
            Self::Aside(words) => write!(out, "{} (the second server alone)", line(words)),
            Self::Pass { look: true } => write!(out, "(time passes)"),
            Self::Pass { look: false } => write!(out, "(time passes, nobody looks)"),
        }
    }
}

/// Words as one could type them into redis-cli.
pub fn line(words: &[Bytes]) -> String {
    let shown: Vec<String> = words.iter().map(|word| shown(word)).collect();
    shown.join(" ")
}

pub fn shown(word: &[u8]) -> String {
    // Of a script its first line, which says what it does.
    if let Some(rest) = word.strip_prefix(b"-- ") {
        let title = rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
        return format!("\"-- {}...\"", String::from_utf8_lossy(title));
    }
    let bare = |byte: &u8| byte.is_ascii_graphic() && !b"\"'\\".contains(byte);
    match std::str::from_utf8(word) {
        Ok(text) if !text.is_empty() && word.iter().all(bare) => text.to_owned(),
        _ => {
            let escaped = word.iter().map(|byte| match byte {
                b'"' | b'\\' => format!("\\{}", char::from(*byte)),
                b' '..=b'~' => char::from(*byte).to_string(),
                b'\n' => "\\n".to_owned(),
                _ => format!("\\x{byte:02x}"),
            });
            format!("\"{}\"", escaped.collect::<String>())
        }
    }
}

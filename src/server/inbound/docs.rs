//! The arguments of a command, for COMMAND DOCS, read off the line that says how it is
//! called.

use std::ffi::CString;

use crate::server::sys::{Doc, DocKind};

fn named(name: &str, kind: DocKind) -> Doc {
    Doc {
        name: CString::new(name.to_ascii_lowercase()).unwrap_or_default(),
        kind,
        ..Doc::default()
    }
}

/// A keyword that stands alone.
fn token(word: &str) -> Doc {
    Doc {
        token: CString::new(word).ok(),
        ..named(word, DocKind::Token)
    }
}

fn value(name: &str) -> Doc {
    let kind = match name {
        "key" => DocKind::Key,
        "owner" | "channel" | "tag" | "cursor" | "pattern" | "prefix" => DocKind::String,
        _ => DocKind::Integer,
    };
    named(name, kind)
}

/// The same, in brackets if it can be left out.
fn value_or_none(name: &str) -> Doc {
    let inside = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    Doc {
        optional: inside.is_some(),
        ..value(inside.unwrap_or(name))
    }
}

/// What stands between a bracket and the one that closes it, and what is behind that.
fn brackets(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix('[')?;
    let mut depth: usize = 1;
    let end = text.find(|c| {
        match c {
            '[' => depth = depth.saturating_add(1),
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0
    })?;
    let (inside, rest) = text.split_at_checked(end)?;
    Some((inside, rest.strip_prefix(']').unwrap_or(rest)))
}

/// What stands in brackets: one way of saying it, or several to choose from.
fn optional(text: &str) -> Doc {
    let ways: Vec<&str> = text.split('|').map(str::trim).collect();
    let doc = match ways[..] {
        [only] => keyword(only),
        _ => Doc {
            parts: ways.iter().copied().map(keyword).collect(),
            ..named(name_of(&ways), DocKind::OneOf)
        },
    };
    Doc {
        optional: true,
        ..doc
    }
}

/// What several ways are together.
fn name_of(ways: &[&str]) -> &'static str {
    if ways.iter().all(|way| way.starts_with("IF")) {
        "condition"
    } else if ways.contains(&"READ") {
        "mode"
    } else if ways.contains(&"TOKEN") {
        "fencing"
    } else {
        "wait"
    }
}

/// `WORD`, `WORD name`, `WORD name name`.
fn keyword(text: &str) -> Doc {
    let Some((word, names)) = text.split_once(' ') else {
        return token(text);
    };
    let parts: Vec<Doc> = names.split(' ').map(value_or_none).collect();
    let doc = match &parts[..] {
        [only] if !only.optional => value(names),
        _ => Doc {
            parts,
            ..named(word, DocKind::Block)
        },
    };
    Doc {
        token: CString::new(word).ok(),
        ..doc
    }
}

/// The arguments of a usage line: `RLOCK.NAME key owner [WORD name] [WORD|WORD name]`.
pub fn parse(usage: &str) -> Vec<Doc> {
    let mut docs: Vec<Doc> = Vec::new();
    let mut rest = usage.split_once(' ').map_or("", |(_, rest)| rest).trim();
    while !rest.is_empty() {
        let inside = brackets(rest);
        let (part, then) = inside.or(rest.split_once(' ')).unwrap_or((rest, ""));
        match docs.last_mut() {
            // `key [key ...]`
            Some(last) if part.ends_with("...") => last.multiple = true,
            _ if inside.is_some() => docs.push(optional(part)),
            _ => docs.push(value(part)),
        }
        rest = then.trim_start();
    }
    docs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_off_the_usage_line() {
        let docs = parse("RLOCK.X numkeys key [key ...] owner [READ|WRITE] [BLOCK ms] [ONCE]");
        let names: Vec<&str> = docs.iter().map(|d| d.name.to_str().unwrap()).collect();
        assert_eq!(names, ["numkeys", "key", "owner", "mode", "ms", "once"]);
        let optional: Vec<bool> = docs.iter().map(|doc| doc.optional).collect();
        assert_eq!(optional, [false, false, false, true, true, true]);
        let multiple: Vec<bool> = docs.iter().map(|doc| doc.multiple).collect();
        assert_eq!(multiple, [false, true, false, false, false, false]);
        let tokens: Vec<Option<&str>> = docs
            .iter()
            .map(|doc| doc.token.as_ref().map(|word| word.to_str().unwrap()))
            .collect();
        let none = None;
        assert_eq!(
            tokens,
            [none, none, none, none, Some("BLOCK"), Some("ONCE")]
        );
        let modes: Vec<&Doc> = docs.iter().flat_map(|doc| &doc.parts).collect();
        assert_eq!(modes, [&token("READ"), &token("WRITE")]);
    }

    #[test]
    fn of_several_ways_one_can_be_said() {
        let name = |usage| parse(usage).pop().unwrap().name.into_string();
        assert_eq!(
            name("RLOCK.X [FENCE token|TOKEN]").as_deref(),
            Ok("fencing")
        );
        assert_eq!(name("RLOCK.X [BLOCK ms|QUEUE ms]").as_deref(), Ok("wait"));
        let docs = parse("RLOCK.X key [IFOWNER owner | IFTOKEN token]");
        let condition = docs.last().unwrap();
        assert_eq!(condition.name.to_str(), Ok("condition"));
        assert!(condition.optional);
        assert_eq!(
            condition.parts,
            ["IFOWNER owner", "IFTOKEN token"].map(keyword)
        );
        let kinds: Vec<DocKind> = condition.parts.iter().map(|doc| doc.kind).collect();
        assert_eq!(kinds, [DocKind::String, DocKind::Integer]);
    }

    #[test]
    fn what_stands_behind_a_word_may_be_left_out() {
        let docs = parse("RLOCK.X key [READ|WRITE|PERMITS [k]] [ALL]");
        let names: Vec<&str> = docs.iter().map(|d| d.name.to_str().unwrap()).collect();
        assert_eq!(names, ["key", "mode", "all"]);
        let permits = &docs[1].parts[2];
        let word = permits.token.as_ref().map(|word| word.to_str().unwrap());
        assert_eq!(word, Some("PERMITS"));
        let [count] = &permits.parts[..] else {
            panic!("{permits:?}");
        };
        assert!(
            count.optional && count.kind == DocKind::Integer,
            "{count:?}"
        );
    }

    #[test]
    fn a_command_may_have_no_arguments() {
        assert_eq!(parse("RLOCK.OWNER"), []);
    }
}

//! The rule that `unsafe` is in one room.

use std::collections::BTreeSet;

use proc_macro2::{TokenStream, TokenTree};

use crate::{Breach, Rule, Sources};

/// Where it may be.
const ROOM: &str = "server/sys/";

/// Each `unsafe` elsewhere, and each use there of a macro that holds one.
pub fn breaches(sources: &Sources) -> Result<Vec<Breach>, String> {
    let mut files = Vec::new();
    for (file, text) in sources {
        let tokens: TokenStream = text.parse().map_err(|error| format!("{file}: {error}"))?;
        files.push((file, tokens));
    }
    let mut macros = BTreeSet::new();
    for (_, tokens) in &files {
        unsafe_macros(tokens.clone(), &mut macros);
    }
    let mut breaches = Vec::new();
    for (file, tokens) in files {
        if file.starts_with(ROOM) {
            continue;
        }
        let mut found = Vec::new();
        find(tokens, &macros, &mut found);
        breaches.extend(found.into_iter().map(|(line, what)| Breach {
            rule: Rule::Unsafe,
            file: file.clone(),
            line,
            what: format!("{what} outside {ROOM}"),
        }));
    }
    Ok(breaches)
}

/// The names of macros in whose definitions there is an `unsafe`.
fn unsafe_macros(tokens: TokenStream, names: &mut BTreeSet<String>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        if let TokenTree::Group(group) = token {
            let name = match at.checked_sub(3).map(|from| &tokens[from..at]) {
                Some([TokenTree::Ident(word), _, TokenTree::Ident(name)])
                    if word == "macro_rules" =>
                {
                    Some(name.to_string())
                }
                _ => None,
            };
            let mut found = Vec::new();
            find(group.stream(), &BTreeSet::new(), &mut found);
            names.extend(name.filter(|_| !found.is_empty()));
            unsafe_macros(group.stream(), names);
        }
    }
}

/// Lines with an `unsafe`, or with the use of such a macro, and what is there.
fn find(tokens: TokenStream, macros: &BTreeSet<String>, found: &mut Vec<(usize, String)>) {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Group(group) => find(group.stream(), macros, found),
            TokenTree::Ident(ident) => {
                let name = ident.to_string();
                let line = ident.span().start().line;
                let called =
                    matches!(tokens.peek(), Some(TokenTree::Punct(p)) if p.as_char() == '!');
                if name == "unsafe" {
                    found.push((line, name));
                } else if called && macros.contains(&name) {
                    found.push((line, format!("{name}!, which holds unsafe,")));
                }
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

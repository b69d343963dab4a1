//! The rule that one name is one type.

use std::collections::BTreeMap;

use syn::visit::{self, Visit};
use syn::Item;

use crate::tree::parse;
use crate::{Breach, Rule, Sources};

/// Here types may share a name with others of the same room.
const LENIENT: &str = "lock/";

/// Each type that has the name of another one, but for those of the lenient room. Types of
/// functions and of tests count too; associated types, type parameters and re-exports are no
/// definitions.
pub fn breaches(sources: &Sources) -> Result<Vec<Breach>, String> {
    let mut defined: BTreeMap<String, Vec<(&str, usize)>> = BTreeMap::new();
    for file in sources.keys() {
        let mut types = Types::default();
        types.visit_file(&parse(sources, file)?);
        for (name, line) in types.found {
            defined.entry(name).or_default().push((file, line));
        }
    }
    let mut breaches = Vec::new();
    for (name, places) in &defined {
        let strict = places.iter().filter(|(file, _)| !file.starts_with(LENIENT));
        for here @ (file, line) in strict {
            let Some((other, there)) = places.iter().find(|place| *place != here) else {
                continue;
            };
            breaches.push(Breach {
                rule: Rule::Name,
                file: (*file).to_owned(),
                line: *line,
                what: format!("the type {name} is defined at {other}:{there} too"),
            });
        }
    }
    Ok(breaches)
}

/// Finds definitions of types: name and line.
#[derive(Default)]
struct Types {
    found: Vec<(String, usize)>,
}

impl<'ast> Visit<'ast> for Types {
    fn visit_item(&mut self, item: &'ast Item) {
        let name = match item {
            Item::Enum(item) => Some(&item.ident),
            Item::Struct(item) => Some(&item.ident),
            Item::Trait(item) => Some(&item.ident),
            Item::Type(item) => Some(&item.ident),
            Item::Union(item) => Some(&item.ident),
            _ => None,
        };
        let found = name.map(|name| (name.to_string(), name.span().start().line));
        self.found.extend(found);
        visit::visit_item(self, item);
    }
}

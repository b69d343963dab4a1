//! The rule that one name is one type.

use std::collections::BTreeMap;

use syn::visit::{self, Visit};
use syn::{Ident, ItemEnum, ItemStruct, ItemTrait, ItemType, ItemUnion};

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
    for (name, places) in defined {
        for (at, (file, line)) in places.iter().enumerate() {
            let mut others = places.iter().enumerate().filter(|(other, _)| *other != at);
            if let Some((_, (other, there))) = others.next().filter(|_| !file.starts_with(LENIENT))
            {
                breaches.push(Breach {
                    rule: Rule::Name,
                    file: (*file).to_owned(),
                    line: *line,
                    what: format!("the type {name} is defined at {other}:{there} too"),
                });
            }
        }
    }
    Ok(breaches)
}

/// Finds definitions of types: name and line.
#[derive(Default)]
struct Types {
    found: Vec<(String, usize)>,
}

impl Types {
    fn add(&mut self, name: &Ident) {
        self.found
            .push((name.to_string(), name.span().start().line));
    }
}

impl<'ast> Visit<'ast> for Types {
    fn visit_item_enum(&mut self, item: &'ast ItemEnum) {
        self.add(&item.ident);
        visit::visit_item_enum(self, item);
    }

    fn visit_item_struct(&mut self, item: &'ast ItemStruct) {
        self.add(&item.ident);
        visit::visit_item_struct(self, item);
    }

    fn visit_item_trait(&mut self, item: &'ast ItemTrait) {
        self.add(&item.ident);
        visit::visit_item_trait(self, item);
    }

    fn visit_item_type(&mut self, item: &'ast ItemType) {
        self.add(&item.ident);
        visit::visit_item_type(self, item);
    }

    fn visit_item_union(&mut self, item: &'ast ItemUnion) {
        self.add(&item.ident);
        visit::visit_item_union(self, item);
    }
}

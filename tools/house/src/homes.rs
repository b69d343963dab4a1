//! Where methods stand, and the rule that they stand with their type.

use std::collections::BTreeMap;

use syn::visit::{self, Visit};
use syn::{ImplItem, Item, ItemImpl, Path, Type};

use crate::cover::only_for_tests;
use crate::names::Meaning;
use crate::tree::{ModuleId, Tree};
use crate::{Breach, Rule};

/// A type, by the module that defines it and its name.
pub type TypeId = (ModuleId, String);

/// Methods that types of the standard library have too: a call of one says nothing
/// unless its receiver is known.
#[rustfmt::skip]
const COMMON: [&str; 30] = [
    "clear", "clone", "contains", "drain", "entry", "extend", "filter", "find", "first", "get",
    "get_mut", "insert", "is_empty", "iter", "join", "keys", "last", "len", "map", "next", "pop",
    "position", "push", "remove", "replace", "retain", "set", "split", "take", "values",
];

/// The inherent methods of the crate's types.
#[derive(Default)]
pub struct Methods {
    by_name: BTreeMap<String, BTreeMap<TypeId, ModuleId>>,
}

impl Methods {
    pub fn of(tree: &Tree) -> Self {
        let mut methods = Self::default();
        for (module, item) in impls(tree) {
            let (None, Some(of)) = (&item.trait_, self_type(tree, module, item)) else {
                continue;
            };
            for inner in &item.items {
                let ImplItem::Fn(method) = inner else {
                    continue;
                };
                if !only_for_tests(&method.attrs) {
                    let name = method.sig.ident.to_string();
                    let types = methods.by_name.entry(name).or_default();
                    types.insert(of.clone(), module);
                }
            }
        }
        methods
    }

    /// The module in which the type's method stands.
    pub fn home(&self, of: &TypeId, method: &str) -> Option<ModuleId> {
        self.by_name.get(method)?.get(of).copied()
    }

    /// The module in which the method stands if one type alone has one with its
    /// name, and it stands apart from that type.
    pub fn home_by_name(&self, method: &str) -> Option<ModuleId> {
        let types = self.by_name.get(method)?;
        if COMMON.contains(&method) {
            return None;
        }
        let (of, &home) = types.first_key_value()?;
        (types.len() == 1 && of.0 != home).then_some(home)
    }
}

/// All `impl` blocks with the modules that they stand in.
fn impls(tree: &Tree) -> impl Iterator<Item = (ModuleId, &ItemImpl)> {
    let modules = tree.modules.iter().enumerate();
    modules.flat_map(|(id, module)| {
        module.items.iter().filter_map(move |item| match item {
            Item::Impl(item) => Some((id, item)),
            _ => None,
        })
    })
}

/// The type of an `impl`, if it is one of the crate's.
pub fn self_type(tree: &Tree, module: ModuleId, item: &ItemImpl) -> Option<TypeId> {
    match &*item.self_ty {
        Type::Path(path) if path.qself.is_none() => defined(tree, module, &path.path),
        _ => None,
    }
}

fn defined(tree: &Tree, module: ModuleId, path: &Path) -> Option<TypeId> {
    let meanings = tree.meanings(module, &words(path));
    meanings.into_iter().find_map(|meaning| match meaning {
        Meaning::Item(module, name) => Some((module, name)),
        Meaning::Module(_) => None,
    })
}

/// The names that a path is made of.
pub fn words(path: &Path) -> Vec<String> {
    let segments = path.segments.iter();
    segments.map(|segment| segment.ident.to_string()).collect()
}

/// Each `impl` that stands neither with its type nor with its trait.
pub fn breaches(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for (module, item) in impls(tree) {
        let mut named = Named {
            tree,
            module,
            types: Vec::new(),
        };
        match &item.trait_ {
            None => named.types.extend(self_type(tree, module, item)),
            Some((path, _)) => {
                named.visit_path(path);
                named.visit_type(&item.self_ty);
            }
        }
        let at_home = |of: &TypeId| tree.is_within(module, of.0);
        if let (Some(of), false) = (named.types.first(), named.types.iter().any(at_home)) {
            breaches.push(Breach {
                rule: Rule::Impl,
                file: tree.modules[module].file.clone(),
                line: item.impl_token.span.start().line,
                what: format!(
                    "an impl for {}, which {} defines, stands in {}",
                    of.1, tree.modules[of.0].path, tree.modules[module].path
                ),
            });
        }
    }
    breaches
}

/// Collects the crate's own types and traits that something names.
struct Named<'a> {
    tree: &'a Tree,
    module: ModuleId,
    types: Vec<TypeId>,
}

impl<'ast> Visit<'ast> for Named<'_> {
    fn visit_path(&mut self, path: &'ast Path) {
        self.types.extend(defined(self.tree, self.module, path));
        visit::visit_path(self, path);
    }
}

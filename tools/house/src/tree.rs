//! The modules of a crate, read from its files: what each defines, and what it
//! imports. What is for tests only is left out.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};
use syn::{File, Item, ItemMod, ItemUse, UseTree, Visibility};

use crate::cover::only_for_tests;
use crate::Sources;

/// The place of a module in [`Tree::modules`]; the crate's own is 0.
pub type ModuleId = usize;

/// All modules.
pub struct Tree {
    pub modules: Vec<Module>,
}

/// One module.
pub struct Module {
    /// As in `lock::acquire`; the crate's own is `crate`.
    pub path: String,
    pub parent: Option<ModuleId>,
    pub file: String,
    pub items: Vec<Item>,
    /// The names of its types, functions and whatever else it defines.
    pub defines: BTreeSet<String>,
    pub children: BTreeMap<String, ModuleId>,
    pub imports: Vec<Import>,
}

/// One name that a `use` brings in.
pub struct Import {
    /// What it is called here; `*` for everything.
    pub name: String,
    pub path: Vec<String>,
    /// A `pub use`, whatever its reach.
    pub reexported: bool,
    pub line: usize,
}

impl Tree {
    /// Reads `lib.rs` and every module below it.
    pub fn of(sources: &Sources) -> Result<Self, String> {
        let mut tree = Tree {
            modules: Vec::new(),
        };
        let items = parse(sources, "lib.rs")?.items;
        tree.add(sources, None, "crate", "lib.rs", "", items)?;
        Ok(tree)
    }

    /// Whether a module is another or lies below it.
    pub fn is_within(&self, module: ModuleId, other: ModuleId) -> bool {
        let up = |&at: &ModuleId| self.modules[at].parent;
        std::iter::successors(Some(module), up).any(|at| at == other)
    }

    /// `folder`: where the files of its child modules are, with a slash at its end.
    fn add(
        &mut self,
        sources: &Sources,
        parent: Option<ModuleId>,
        path: &str,
        file: &str,
        folder: &str,
        items: Vec<Item>,
    ) -> Result<ModuleId, String> {
        let id = self.modules.len();
        let (inner, items): (Vec<Item>, Vec<Item>) = items
            .into_iter()
            .filter(|item| !only_for_tests(attributes(item)))
            .partition(|item| matches!(item, Item::Mod(_)));
        let mut found = Imports::default();
        items.iter().for_each(|item| found.visit_item(item));
        self.modules.push(Module {
            path: path.to_owned(),
            parent,
            file: file.to_owned(),
            defines: items.iter().filter_map(name).collect(),
            items,
            children: BTreeMap::new(),
            imports: found.imports,
        });
        for item in inner {
            let Item::Mod(module) = item else { continue };
            let name = module.ident.to_string();
            let path = match parent {
                None => name.clone(),
                Some(_) => format!("{path}::{name}"),
            };
            let (file, items) = content(sources, file, folder, module)?;
            let folder = format!("{folder}{name}/");
            let child = self.add(sources, Some(id), &path, &file, &folder, items)?;
            self.modules[id].children.insert(name, child);
        }
        Ok(id)
    }
}

/// Reads a file as Rust.
pub fn parse(sources: &Sources, file: &str) -> Result<File, String> {
    let text = sources.get(file).ok_or(format!("there is no {file}"))?;
    syn::parse_file(text).map_err(|error| {
        let line = error.span().start().line;
        format!("{file}:{line}: {error}")
    })
}

/// The file of a module and what is in it.
fn content(
    sources: &Sources,
    file: &str,
    folder: &str,
    module: ItemMod,
) -> Result<(String, Vec<Item>), String> {
    if let Some((_, items)) = module.content {
        return Ok((file.to_owned(), items));
    }
    let name = module.ident;
    let alone = format!("{folder}{name}.rs");
    let inside = format!("{folder}{name}/mod.rs");
    let file = if sources.contains_key(&alone) {
        alone
    } else {
        inside
    };
    let items = parse(sources, &file)?.items;
    Ok((file, items))
}

/// The name that an item defines.
fn name(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(one) => &one.ident,
        Item::Enum(one) => &one.ident,
        Item::Fn(one) => &one.sig.ident,
        Item::Macro(one) => one.ident.as_ref()?,
        Item::Static(one) => &one.ident,
        Item::Struct(one) => &one.ident,
        Item::Trait(one) => &one.ident,
        Item::Type(one) => &one.ident,
        Item::Union(one) => &one.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

/// The attributes of an item.
pub fn attributes(item: &Item) -> &[syn::Attribute] {
    match item {
        Item::Const(one) => &one.attrs,
        Item::Enum(one) => &one.attrs,
        Item::Fn(one) => &one.attrs,
        Item::ForeignMod(one) => &one.attrs,
        Item::Impl(one) => &one.attrs,
        Item::Macro(one) => &one.attrs,
        Item::Mod(one) => &one.attrs,
        Item::Static(one) => &one.attrs,
        Item::Struct(one) => &one.attrs,
        Item::Trait(one) => &one.attrs,
        Item::Type(one) => &one.attrs,
        Item::Union(one) => &one.attrs,
        Item::Use(one) => &one.attrs,
        _ => &[],
    }
}

/// Finds the imports of a module, those within its functions too.
#[derive(Default)]
struct Imports {
    imports: Vec<Import>,
}

impl<'ast> Visit<'ast> for Imports {
    fn visit_item(&mut self, item: &'ast Item) {
        if !only_for_tests(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        // `use ::name` is another crate.
        if item.leading_colon.is_none() {
            let reexported = !matches!(item.vis, Visibility::Inherited);
            self.add(&item.tree, &mut Vec::new(), reexported);
        }
    }
}

impl Imports {
    fn add(&mut self, tree: &UseTree, before: &mut Vec<String>, reexported: bool) {
        let mut import = |name: String, last: Option<String>, line: usize| {
            let path = before.iter().cloned().chain(last).collect();
            self.imports.push(Import {
                name,
                path,
                reexported,
                line,
            });
        };
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.add(&path.tree, before, reexported);
                before.pop();
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.add(tree, before, reexported);
                }
            }
            UseTree::Glob(glob) => import("*".into(), None, glob.star_token.span.start().line),
            UseTree::Name(one) => {
                let (name, line) = (one.ident.to_string(), one.ident.span().start().line);
                match (name.as_str(), before.last().cloned()) {
                    ("self", Some(last)) => import(last, None, line),
                    _ => import(name.clone(), Some(name), line),
                }
            }
            UseTree::Rename(one) => {
                let (name, line) = (one.ident.to_string(), one.ident.span().start().line);
                let last = (name != "self").then_some(name);
                import(one.rename.to_string(), last, line);
            }
        }
    }
}

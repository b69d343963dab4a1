//! Which module depends on which: by its imports, its paths, and its calls of
//! methods that stand apart from their types.

use std::collections::BTreeMap;

use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{
    Attribute, Expr, ExprMethodCall, Field, FieldValue, ImplItem, Item, ItemImpl, ItemUse, Local,
    Macro, Path, TraitItem, Visibility,
};

use crate::cover::only_for_tests;
use crate::homes::{self, Methods, TypeId};
use crate::names::Meaning;
use crate::tree::{attributes, ModuleId, Tree};

/// Which modules each module depends on, and the first line that says so.
pub type Uses = Vec<BTreeMap<ModuleId, usize>>;

/// Looks through all modules.
pub fn all(tree: &Tree, methods: &Methods) -> Uses {
    let of = |module: ModuleId| {
        let mut reader = Reader {
            tree,
            methods,
            module,
            self_type: None,
            uses: BTreeMap::new(),
        };
        reader.imports();
        for item in &tree.modules[module].items {
            reader.visit_item(item);
        }
        reader.uses
    };
    (0..tree.modules.len()).map(of).collect()
}

struct Reader<'a> {
    tree: &'a Tree,
    methods: &'a Methods,
    module: ModuleId,
    /// The type of the `impl` around.
    self_type: Option<TypeId>,
    uses: BTreeMap<ModuleId, usize>,
}

impl Reader<'_> {
    fn depends(&mut self, on: ModuleId, line: usize) {
        if on != self.module {
            let first = self.uses.entry(on).or_insert(line);
            *first = line.min(*first);
        }
    }

    /// An import is a dependency on what defines the thing. One of a module is
    /// none yet: the paths that begin with it are.
    fn imports(&mut self) {
        let tree = self.tree;
        let imports = tree.modules[self.module].imports.iter();
        for import in imports.filter(|import| !import.reexported) {
            for meaning in tree.meanings(self.module, &import.path) {
                if let Meaning::Item(module, _) = meaning {
                    self.depends(module, import.line);
                }
            }
        }
    }

    fn path(&mut self, words: &[String], span: Span) {
        let line = span.start().line;
        if let [first, method] = words {
            if first == "Self" {
                let of = self.self_type.clone();
                self.method_of(of.as_ref(), method, line);
            }
        }
        for meaning in self.tree.meanings(self.module, words) {
            if let Meaning::Item(module, name) = meaning {
                self.depends(module, line);
                if let Some(last) = words.last() {
                    self.method_of(Some(&(module, name)), last, line);
                }
            }
        }
    }

    /// A method of a type that is known; gives whether it has one with this name.
    fn method_of(&mut self, of: Option<&TypeId>, method: &str, line: usize) -> bool {
        let home = of.and_then(|of| self.methods.home(of, method));
        if let Some(home) = home {
            self.depends(home, line);
        }
        home.is_some()
    }

    fn method(&mut self, method: &str, of_self: bool, span: Span) {
        let line = span.start().line;
        let of = self.self_type.clone().filter(|_| of_self);
        if !self.method_of(of.as_ref(), method, line) {
            if let Some(home) = self.methods.home_by_name(method) {
                self.depends(home, line);
            }
        }
    }

    /// What a macro is given is no tree yet: paths and calls are found by their look.
    fn tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            let start = at;
            at += 1;
            match token {
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Ident(first) => {
                    let mut words = vec![first.to_string()];
                    while let Some(next) = path_goes_on(&tokens, at) {
                        words.push(next);
                        at += 3;
                    }
                    if start > 0 && is_punct(tokens.get(start - 1), '.') {
                        let before = start.checked_sub(2).and_then(|at| tokens.get(at));
                        let of_self = before.is_some_and(|token| token.to_string() == "self");
                        if is_call(&tokens, at) {
                            self.method(&words[0], of_self, first.span());
                        }
                    } else {
                        self.path(&words, first.span());
                    }
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
    }
}

fn is_punct(token: Option<&TokenTree>, wanted: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == wanted)
}

/// The next name of a path, if `::` and a name come now.
fn path_goes_on(tokens: &[TokenTree], at: usize) -> Option<String> {
    let colons = is_punct(tokens.get(at), ':') && is_punct(tokens.get(at + 1), ':');
    match tokens.get(at + 2) {
        Some(TokenTree::Ident(name)) if colons => Some(name.to_string()),
        _ => None,
    }
}

/// Whether arguments come now, or the types of a generic method.
fn is_call(tokens: &[TokenTree], at: usize) -> bool {
    match tokens.get(at) {
        Some(TokenTree::Group(group)) => group.delimiter() == Delimiter::Parenthesis,
        token => is_punct(token, ':') && is_punct(tokens.get(at + 1), ':'),
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if !only_for_tests(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        let attributes = match item {
            ImplItem::Const(one) => &one.attrs[..],
            ImplItem::Fn(one) => &one.attrs[..],
            _ => &[],
        };
        if !only_for_tests(attributes) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_trait_item(&mut self, item: &'ast TraitItem) {
        let attributes = match item {
            TraitItem::Fn(one) => &one.attrs[..],
            _ => &[],
        };
        if !only_for_tests(attributes) {
            visit::visit_trait_item(self, item);
        }
    }

    fn visit_field(&mut self, field: &'ast Field) {
        if !only_for_tests(&field.attrs) {
            visit::visit_field(self, field);
        }
    }

    fn visit_field_value(&mut self, value: &'ast FieldValue) {
        if !only_for_tests(&value.attrs) {
            visit::visit_field_value(self, value);
        }
    }

    fn visit_local(&mut self, local: &'ast Local) {
        if !only_for_tests(&local.attrs) {
            visit::visit_local(self, local);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        let of = homes::self_type(self.tree, self.module, item);
        let around = std::mem::replace(&mut self.self_type, of);
        visit::visit_item_impl(self, item);
        self.self_type = around;
    }

    fn visit_path(&mut self, path: &'ast Path) {
        if let (None, Some(first)) = (&path.leading_colon, path.segments.first()) {
            self.path(&homes::words(path), first.ident.span());
        }
        visit::visit_path(self, path);
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        let of_self = matches!(&*call.receiver, Expr::Path(it) if it.path.is_ident("self"));
        self.method(&call.method.to_string(), of_self, call.method.span());
        visit::visit_expr_method_call(self, call);
    }

    fn visit_macro(&mut self, called: &'ast Macro) {
        self.visit_path(&called.path);
        self.tokens(called.tokens.clone());
    }

    // Imports are read apart, and these hold paths that are no dependencies.
    fn visit_item_use(&mut self, _: &'ast ItemUse) {}
    fn visit_attribute(&mut self, _: &'ast Attribute) {}
    fn visit_visibility(&mut self, _: &'ast Visibility) {}
}

//! How long files and functions are, and how files begin.

use syn::visit::{self, Visit};
use syn::{Block, Expr, ImplItemFn, ItemFn, Pat, Signature, Stmt, TraitItemFn};

use crate::tree::parse;
use crate::{Breach, Rule, Sources};

const MOST_LINES_OF_FILE: usize = 400;
const MOST_LINES_OF_FUNCTION: usize = 70;

/// What is too long, or begins otherwise, in any file.
pub fn breaches(sources: &Sources) -> Result<Vec<Breach>, String> {
    let mut breaches = Vec::new();
    for (file, text) in sources {
        let mut breach = |rule, line, what| {
            breaches.push(Breach {
                rule,
                file: file.clone(),
                line,
                what,
            });
        };
        if !text.starts_with("//!") {
            let what = "the file does not begin with a //! line that says what it is for";
            breach(Rule::Opening, 1, what.into());
        }
        let lines = text.lines().count();
        if lines > MOST_LINES_OF_FILE {
            breach(Rule::Length, 1, format!("a file of {lines} lines"));
        }
        let mut functions = Functions::default();
        functions.visit_file(&parse(sources, file)?);
        for (name, line, lines) in functions.long {
            let what = format!("the function {name} has {lines} lines");
            breach(Rule::Function, line, what);
        }
    }
    Ok(breaches)
}

/// Finds functions that are too long: name, line, number of lines.
#[derive(Default)]
struct Functions {
    long: Vec<(String, usize, usize)>,
}

impl Functions {
    fn look_at(&mut self, signature: &Signature, body: &Block) {
        let first = signature.fn_token.span.start().line;
        let last = body.brace_token.span.close().end().line;
        let lines = last + 1 - first;
        if lines > MOST_LINES_OF_FUNCTION && !is_table(body) {
            self.long.push((signature.ident.to_string(), first, lines));
        }
    }
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        self.look_at(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        self.look_at(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast TraitItemFn) {
        if let Some(body) = &function.default {
            self.look_at(&function.sig, body);
        }
        visit::visit_trait_item_fn(self, function);
    }
}

/// Whether a function only lists: its body is one expression in which nothing
/// branches, or one `match` with arms like that.
fn is_table(body: &Block) -> bool {
    match &body.stmts[..] {
        [Stmt::Expr(Expr::Match(table), None)] => {
            let mut arms = table.arms.iter();
            arms.all(|arm| !matches!(arm.pat, Pat::Guard(_)) && is_plain(&arm.body))
        }
        [Stmt::Expr(expression, None)] => is_plain(expression),
        _ => false,
    }
}

fn is_plain(expression: &Expr) -> bool {
    let mut branches = Branches(false);
    branches.visit_expr(expression);
    !branches.0
}

/// Finds what is more than a value: blocks, conditions, loops, closures.
struct Branches(bool);

impl<'ast> Visit<'ast> for Branches {
    fn visit_expr(&mut self, expression: &'ast Expr) {
        let found = matches!(
            expression,
            Expr::Block(_)
                | Expr::Closure(_)
                | Expr::ForLoop(_)
                | Expr::If(_)
                | Expr::Loop(_)
                | Expr::Match(_)
                | Expr::Unsafe(_)
                | Expr::While(_)
        );
        self.0 |= found;
        visit::visit_expr(self, expression);
    }
}

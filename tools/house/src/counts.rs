//! What is to become less: counts that have a limit, which is what they were when they were
//! counted last, so that they can only fall.

use std::fmt;

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{ImplItem, Item};

use crate::cover::only_for_tests;
use crate::tree::{attributes, parse, Tree};
use crate::Sources;

/// What is counted, the most that may be found, and what it is to come to.
pub const LIMITS: [Limit; 4] = [
    Limit {
        what: "places in src/lock, outside kind/, that ask the kind of a lock",
        most: 15,
        target: 20,
    },
    Limit {
        what: "files of src/ that name permits",
        most: 59,
        target: 15,
    },
    Limit {
        what: "lines of src/lock without tests",
        most: 18_327,
        target: 9_500,
    },
    Limit {
        what: "files from RELEASE to the reply of the next waiter",
        most: 6,
        target: 8,
    },
];

/// Of one count.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    pub what: &'static str,
    pub most: usize,
    pub target: usize,
}

/// What was counted, with its limit.
#[derive(Clone, Copy, Debug)]
pub struct Count {
    pub limit: Limit,
    pub found: usize,
}

impl Count {
    pub fn is_over(&self) -> bool {
        self.found > self.limit.most
    }
}

/// As a row of a table.
impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Limit { what, most, target } = self.limit;
        let found = self.found;
        write!(f, "{what:<64} {found:>7} {most:>7} {target:>7}")?;
        match found {
            _ if found > most => f.write_str("  over the limit"),
            _ if found < most => write!(f, "  the limit can be {found}"),
            _ => Ok(()),
        }
    }
}

/// All of [`LIMITS`], in their order: of the crate whose files these are, and of the page that
/// tells the way of a request (docs/architecture.md).
pub fn counts(sources: &Sources, page: &str) -> Result<Vec<Count>, String> {
    let mut files: Vec<String> = Tree::of(sources)?
        .modules
        .into_iter()
        .map(|module| module.file)
        .collect();
    // Modules within a file have that file, too.
    files.sort();
    files.dedup();
    let (mut kinds, mut permits, mut lines) = (0, 0, 0);
    for file in files {
        let text = without_tests(sources, &file)?;
        let all: Vec<&str> = text.iter().map(|(_, line)| *line).collect();
        let all = all.join("\n");
        permits += usize::from(all.to_lowercase().contains("permit"));
        if file.starts_with("lock/") {
            lines += text.len();
            if !file.starts_with("lock/kind/") && file != "lock/kind.rs" {
                kinds += asks_of_kind(&file, &all)?;
            }
        }
    }
    let found = [kinds, permits, lines, files_of_release(page)?];
    let counts = LIMITS.into_iter().zip(found);
    Ok(counts
        .map(|(limit, found)| Count { limit, found })
        .collect())
}

/// The lines of a file, with their numbers, but for those of items that are for tests only.
fn without_tests<'a>(sources: &'a Sources, file: &str) -> Result<Vec<(usize, &'a str)>, String> {
    let mut tests = Tests::default();
    tests.visit_file(&parse(sources, file)?);
    let text = sources.get(file).map_or("", String::as_str);
    let lines = text.lines().zip(1..).map(|(line, number)| (number, line));
    let kept = lines.filter(|(number, _)| {
        let mut ranges = tests.0.iter();
        !ranges.any(|(first, last)| (first..=last).contains(&number))
    });
    Ok(kept.collect())
}

/// Finds the first and last lines of items that are for tests only.
#[derive(Default)]
struct Tests(Vec<(usize, usize)>);

impl Tests {
    fn add(&mut self, item: &impl Spanned) {
        // From its first attribute on.
        let span = item.span();
        self.0.push((span.start().line, span.end().line));
    }
}

impl<'ast> Visit<'ast> for Tests {
    fn visit_item(&mut self, item: &'ast Item) {
        if only_for_tests(attributes(item)) {
            self.add(item);
        } else {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        match item {
            ImplItem::Fn(one) if only_for_tests(&one.attrs) => self.add(one),
            _ => visit::visit_impl_item(self, item),
        }
    }
}

/// How often `Kind::` stands in the code, in macros too, and not in comments.
fn asks_of_kind(file: &str, text: &str) -> Result<usize, String> {
    let tokens: TokenStream = text.parse().map_err(|error| format!("{file}: {error}"))?;
    let mut flat = Vec::new();
    flatten(tokens, &mut flat);
    let asks = flat
        .windows(3)
        .filter(|three| three.iter().eq(["Kind", ":", ":"].iter()));
    Ok(asks.count())
}

fn flatten(tokens: TokenStream, into: &mut Vec<String>) {
    for token in tokens {
        match token {
            // What stands beside a group is not beside what is in it.
            TokenTree::Group(group) => {
                into.push(String::new());
                flatten(group.stream(), into);
                into.push(String::new());
            }
            TokenTree::Literal(_) => into.push(String::new()),
            other => into.push(other.to_string()),
        }
    }
}

/// How many files are numbered on the page on the way from RELEASE to the reply.
fn files_of_release(page: &str) -> Result<usize, String> {
    const TITLE: &str = "### From RELEASE to the reply of the next waiter";
    let (_, way) = page
        .split_once(TITLE)
        .ok_or(format!("there is no {TITLE:?} on the page"))?;
    let block = way.split("```").nth(1).unwrap_or_default();
    let numbered = block.lines().filter(|line| {
        let first = line.split_whitespace().next().unwrap_or_default();
        first.parse::<usize>().is_ok()
    });
    match numbered.count() {
        0 => Err(format!("no file is numbered below {TITLE:?}")),
        files => Ok(files),
    }
}

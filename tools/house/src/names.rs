//! What a path means: the module or the item that it leads to.

use crate::tree::{Import, ModuleId, Tree};

/// What a name stands for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Meaning {
    Module(ModuleId),
    /// A type, a function and so on, in the module that defines it.
    Item(ModuleId, String),
}

/// Names that are being looked up, so that two imports of each other end.
type Under<'a> = Vec<(ModuleId, &'a str)>;

impl Tree {
    /// All that a path written in `from` can mean: one name may be a module and a
    /// function too. Nothing, if it is of another crate or a local variable.
    pub fn meanings(&self, from: ModuleId, path: &[String]) -> Vec<Meaning> {
        self.follow(from, path, &mut Vec::new())
    }

    fn follow<'a>(
        &'a self,
        from: ModuleId,
        path: &'a [String],
        under: &mut Under<'a>,
    ) -> Vec<Meaning> {
        let Some((first, rest)) = path.split_first() else {
            return vec![Meaning::Module(from)];
        };
        let step = match first.as_str() {
            "crate" => Some(0),
            "self" => Some(from),
            "super" => self.modules[from].parent,
            _ => {
                let found = self.look_up(from, first, under);
                return self.go_on(found, rest, under);
            }
        };
        step.map_or(Vec::new(), |module| self.follow(module, rest, under))
    }

    /// What comes after the first name. Behind a type stand its variants, methods
    /// and so on, which are part of it.
    fn go_on<'a>(
        &'a self,
        found: Vec<Meaning>,
        rest: &'a [String],
        under: &mut Under<'a>,
    ) -> Vec<Meaning> {
        if rest.is_empty() {
            return found;
        }
        let mut meanings = Vec::new();
        for meaning in &found {
            if let Meaning::Module(module) = meaning {
                meanings.extend(self.follow(*module, rest, under));
            }
        }
        if meanings.is_empty() {
            meanings = found;
            meanings.retain(|meaning| matches!(meaning, Meaning::Item(..)));
        }
        meanings
    }

    fn look_up<'a>(
        &'a self,
        module: ModuleId,
        name: &'a str,
        under: &mut Under<'a>,
    ) -> Vec<Meaning> {
        if under.contains(&(module, name)) {
            return Vec::new();
        }
        under.push((module, name));
        let here = &self.modules[module];
        let mut found = Vec::new();
        if let Some(&child) = here.children.get(name) {
            found.push(Meaning::Module(child));
        }
        if here.defines.contains(name) {
            found.push(Meaning::Item(module, name.to_owned()));
        }
        let imported = |wanted: &'a str| move |import: &&Import| import.name == wanted;
        for import in here.imports.iter().filter(imported(name)) {
            found.extend(self.follow(module, &import.path, under));
        }
        if found.is_empty() {
            for glob in here.imports.iter().filter(imported("*")) {
                for meaning in self.follow(module, &glob.path, under) {
                    if let Meaning::Module(source) = meaning {
                        found.extend(self.look_up(source, name, under));
                    }
                }
            }
        }
        under.pop();
        found.sort();
        found.dedup();
        found
    }
}

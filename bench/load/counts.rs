//! Instructions as valgrind's callgrind counts them, by whose code they are.

use std::ffi::OsStr;
use std::path::Path;

use super::Outcome;

/// Instructions that a server took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub all: u64,
    /// In the module's code.
    pub module: u64,
    /// In libraries, such as the allocator. The rest is in the server's program.
    pub libraries: u64,
}

impl Counts {
    /// Reads one of callgrind's files, where the module is the file by this name.
    pub fn read(text: &str, module: Option<&OsStr>) -> Outcome<Self> {
        let mut counts = Self::default();
        // The names of objects, each of which is told once with its number.
        let mut objects: Vec<(&str, &str)> = Vec::new();
        let mut object = "";
        let mut is_call = false;
        for line in text.lines() {
            if let Some(total) = line.strip_prefix("totals: ") {
                counts.all = total.trim().parse()?;
            } else if let Some(id) = line.strip_prefix("c").unwrap_or(line).strip_prefix("ob=") {
                let (number, name) = id.split_once(' ').unwrap_or((id, ""));
                if !name.is_empty() {
                    objects.push((number, name));
                }
                if line.starts_with("ob=") {
                    let known = objects.iter().find(|(known, _)| *known == number);
                    object = known.map_or("", |(_, name)| name);
                }
            } else if line.starts_with("calls=") {
                // The next line is what was called, which is counted where it is.
                is_call = true;
            } else if line
                .starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first))
            {
                let own = !std::mem::take(&mut is_call);
                let count = line.split(' ').nth(1).filter(|_| own);
                let count: u64 = count.map_or(Ok(0), str::parse)?;
                let file = Path::new(object).file_name();
                if file.is_some() && file == module {
                    counts.module += count;
                } else if object.contains(".so") {
                    counts.libraries += count;
                }
            }
        }
        match counts.all {
            0 => Err("valgrind counted nothing".into()),
            _ => Ok(counts),
        }
    }

    /// All, the module's, the server's and the libraries', of one time, where this is for so
    /// many times more than `less`.
    pub fn each(self, less: Self, times: usize) -> [f64; 4] {
        let each = |more: u64, less: u64| more.saturating_sub(less) as f64 / times as f64;
        let all = each(self.all, less.all);
        let module = each(self.module, less.module);
        let libraries = each(self.libraries, less.libraries);
        [all, module, all - module - libraries, libraries]
    }
}

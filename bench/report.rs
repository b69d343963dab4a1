//! Tables that a person can read, the targets that figures must reach, and the file that has both.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use crate::load::Outcome;
use crate::picture::{self, Picture};

/// A target.
#[derive(Clone, Copy, Debug)]
pub enum Target {
    AtLeast(f64),
    AtMost(f64),
}

/// Prints tables as they are finished, remembers how figures stand to their targets, and
/// writes all of it to a file in the end, with pictures beside it.
pub struct Report {
    judges: bool,
    targets: Vec<[String; 4]>,
    missed: Vec<String>,
    facts: String,
    body: String,
    file: PathBuf,
    began: Instant,
}

const INTRODUCTION: &str = "\
One run of the command below: every figure, table and picture here is of that run. What is
compared is measured in turns, on the same machine; rates are medians over the turns, and a
ratio is the median of the ratios turn by turn. The ratios are what to look at: how fast a
machine is changes all the rest. What each part measures, and its targets, stands in
[testing.md](../docs/testing.md#figures); how it is done, below each table.
";

impl Target {
    /// Whether it is reached.
    pub fn is_reached(self, value: f64) -> bool {
        match self {
            Target::AtLeast(least) => value >= least,
            Target::AtMost(most) => value <= most,
        }
    }

    fn text(self) -> String {
        match self {
            Target::AtLeast(least) => format!("≥ {least}"),
            Target::AtMost(most) => format!("≤ {most}"),
        }
    }
}

impl Report {
    /// A report that will be this file. One that does not judge prints the targets and leaves
    /// the verdict open.
    pub fn new(file: PathBuf, judges: bool) -> Self {
        Report {
            judges,
            targets: Vec::new(),
            missed: Vec::new(),
            facts: String::new(),
            body: String::new(),
            file,
            began: Instant::now(),
        }
    }

    /// The targets that were missed, in words.
    pub fn missed(&self) -> &[String] {
        &self.missed
    }

    /// The cells for target and verdict, where `value` is held against `target`.
    pub fn verdict(&self, value: f64, target: Target) -> [String; 2] {
        let verdict = match (self.judges, target.is_reached(value)) {
            (false, _) => "not judged",
            (true, true) => "ok",
            (true, false) => "missed",
        };
        [target.text(), verdict.to_owned()]
    }

    /// The same; it stands among all targets of the report, and with those that are missed.
    pub fn judge(&mut self, what: &str, value: f64, target: Target) -> [String; 2] {
        let [text, verdict] = self.verdict(value, target);
        if verdict == "missed" {
            self.missed.push(format!("{what}: {value:.2}, not {text}"));
        }
        let figure = if value.abs() >= 100.0 {
            grouped(value)
        } else {
            format!("{value:.3}")
        };
        self.targets
            .push([what.to_owned(), figure, text.clone(), verdict.clone()]);
        [text, verdict]
    }

    /// Where the figures come from: the machine, versions.
    pub fn fact(&mut self, name: &str, value: &str) {
        println!("{name:<12} {value}");
        let line = format!("- {name}: {value}\n");
        // Two parts may say the same.
        if !self.facts.contains(&line) {
            self.facts += &line;
        }
    }

    /// A part begins.
    pub fn chapter(&mut self, title: &str, text: &str) {
        println!("\n{title}\n{}", "=".repeat(title.chars().count()));
        self.body += &format!("\n## {title}\n\n{text}\n");
    }

    /// Prints a table with what has to be said about it.
    pub fn print(&mut self, table: &Table) {
        println!("\n{}", table.text(false));
        self.body += &format!("\n### {}", table.text(true));
    }

    /// Prints a line.
    pub fn say(&mut self, line: &str) {
        println!("\n{line}");
        self.body += &format!("\n{line}\n");
    }

    /// Draws pictures into one file beside the report, one below the other.
    pub fn picture<P: Picture>(&mut self, name: &str, pictures: &[P]) -> Outcome<()> {
        let folder = self.pictures();
        fs::create_dir_all(&folder)?;
        picture::write(&folder.join(format!("{name}.svg")), pictures)?;
        let words: Vec<String> = pictures.iter().map(Picture::words).collect();
        let folder = folder.file_name().unwrap_or_default().to_string_lossy();
        self.body += &format!("\n![{}]({folder}/{name}.svg)\n", words.join("; "));
        Ok(())
    }

    /// Beside `report.md` it is `pictures`, beside `report-x.md` `pictures-x`.
    fn pictures(&self) -> PathBuf {
        let stem = self.file.file_stem().unwrap_or_default().to_string_lossy();
        self.file
            .with_file_name(stem.replacen("report", "pictures", 1))
    }

    /// Writes the file.
    pub fn write(&mut self) -> Outcome<()> {
        let minutes = self.began.elapsed().as_secs_f64() / 60.0;
        self.fact("took", &format!("{minutes:.0} minutes"));
        let mut targets = Table::new("Targets", &["what", "figure", "target", ""]);
        self.targets.iter().for_each(|row| targets.row(row.clone()));
        let targets = targets.text(true);
        if let Some(folder) = self.file.parent() {
            fs::create_dir_all(folder)?;
        }
        let text = format!(
            "# rlock benchmark\n\n{INTRODUCTION}\n{}\n## {targets}{}",
            self.facts, self.body
        );
        fs::write(&self.file, text)?;
        println!("\nreport: {}", self.file.display());
        Ok(())
    }
}

/// Rows under a title; the first row names the columns.
pub struct Table {
    title: String,
    rows: Vec<Vec<String>>,
    notes: Vec<String>,
}

impl Table {
    /// A table without rows.
    pub fn new(title: impl Into<String>, columns: &[&str]) -> Self {
        Table {
            title: title.into(),
            rows: vec![columns.iter().map(ToString::to_string).collect()],
            notes: Vec::new(),
        }
    }

    /// Adds a row; cells left out at its end are empty.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let mut row: Vec<String> = cells.into_iter().collect();
        row.resize(self.rows[0].len(), String::new());
        self.rows.push(row);
    }

    /// Adds a line that is printed below.
    pub fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// Its title and all below, as text or as markdown.
    fn text(&self, markdown: bool) -> String {
        let widths = self.widths();
        let line = |cells: &[String]| {
            let padded = cells.iter().zip(&widths).enumerate();
            let padded = padded.map(|(column, (cell, &width))| match column {
                0 => format!("{cell:<width$}"),
                _ => format!("{cell:>width$}"),
            });
            let cells: Vec<String> = padded.collect();
            match markdown {
                true => format!("| {} |\n", cells.join(" | ")),
                false => format!("  {}\n", cells.join("  ").trim_end()),
            }
        };
        let mut text = format!("{}\n\n", self.title);
        text += &line(&self.rows[0]);
        text += &line(&rule(&widths, markdown));
        self.rows[1..].iter().for_each(|row| text += &line(row));
        if !self.notes.is_empty() {
            text.push('\n');
        }
        let indent = if markdown { "" } else { "  " };
        self.notes
            .iter()
            .for_each(|note| text += &format!("{indent}{note}\n"));
        text
    }

    fn widths(&self) -> Vec<usize> {
        let width = |column: usize| {
            let cells = self.rows.iter().map(|row| row[column].chars().count());
            cells.max().unwrap_or_default()
        };
        (0..self.rows[0].len()).map(width).collect()
    }
}

/// The line below the names of the columns.
fn rule(widths: &[usize], markdown: bool) -> Vec<String> {
    let rule = |(column, &width): (usize, &usize)| match (markdown, column) {
        (false, _) | (true, 0) => "-".repeat(width.max(1)),
        (true, _) => format!("{}:", "-".repeat(width.saturating_sub(1).max(1))),
    };
    widths.iter().enumerate().map(rule).collect()
}

/// A count with its thousands apart: 1,234,567.
pub fn grouped(number: f64) -> String {
    let digits = format!("{:.0}", number.abs());
    let mut text = String::new();
    if number <= -0.5 {
        text.push('-');
    }
    for (place, digit) in digits.chars().enumerate() {
        let left = digits.len() - place;
        if place > 0 && left.is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

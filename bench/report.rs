//! Tables that a person can read, and the marks that figures must reach.

/// A mark.
#[derive(Clone, Copy, Debug)]
pub enum Mark {
    AtLeast(f64),
    AtMost(f64),
}

/// Prints tables as they are finished and remembers which marks were missed.
pub struct Report {
    markdown: bool,
    judges: bool,
    missed: Vec<String>,
}

impl Report {
    /// A report in text or markdown. One that does not judge prints the marks
    /// and leaves the verdict open.
    pub fn new(markdown: bool, judges: bool) -> Self {
        Report {
            markdown,
            judges,
            missed: Vec::new(),
        }
    }

    /// The marks that were missed, in words.
    pub fn missed(&self) -> &[String] {
        &self.missed
    }

    /// Holds `value` against `mark`; gives the cells for mark and verdict.
    pub fn judge(&mut self, what: &str, value: f64, mark: Mark) -> [String; 2] {
        let (text, reached) = match mark {
            Mark::AtLeast(least) => (format!("≥ {least}"), value >= least),
            Mark::AtMost(most) => (format!("≤ {most}"), value <= most),
        };
        let verdict = match (self.judges, reached) {
            (false, _) => "not judged",
            (true, true) => "ok",
            (true, false) => {
                self.missed.push(format!("{what}: {value:.2}, not {text}"));
                "missed"
            }
        };
        [text, verdict.into()]
    }

    /// Prints names and what they stand for.
    pub fn heading(&self, lines: &[(&str, String)]) {
        println!("{}rlock benchmark\n", if self.markdown { "# " } else { "" });
        for (name, value) in lines {
            if self.markdown {
                println!("- {name}: {value}");
            } else {
                println!("{name:<12} {value}");
            }
        }
    }

    /// Prints a table with what has to be said about it.
    pub fn print(&self, table: &Table) {
        if self.markdown {
            println!("\n## {}\n", table.title);
        } else {
            println!("\n{}\n", table.title);
        }
        let widths = table.widths();
        let line = |cells: &[String]| {
            let padded = cells.iter().zip(&widths).enumerate();
            let padded = padded.map(|(column, (cell, &width))| match column {
                0 => format!("{cell:<width$}"),
                _ => format!("{cell:>width$}"),
            });
            let cells: Vec<String> = padded.collect();
            if self.markdown {
                println!("| {} |", cells.join(" | "));
            } else {
                println!("  {}", cells.join("  ").trim_end());
            }
        };
        line(&table.rows[0]);
        line(&rule(&widths, self.markdown));
        table.rows[1..].iter().for_each(|row| line(row));
        println!();
        for note in &table.notes {
            println!("{}{note}", if self.markdown { "" } else { "  " });
        }
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

//! Text in columns.

/// Each column as wide as it needs; the last one is not filled up.
pub fn table<const N: usize>(head: [&str; N], rows: &[[String; N]]) -> String {
    let head = head.map(str::to_owned);
    let width = |column: usize| {
        let cells = rows
            .iter()
            .chain([&head])
            .map(|row| row[column].chars().count());
        cells.max().unwrap_or(0)
    };
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = String::new();
    for row in std::iter::once(&head).chain(rows) {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths) {
            line.push_str(&format!("{cell:width$}  "));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// A key or an owner as it may be shown: nothing in it moves the cursor.
pub fn plain(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}

/// Of the terminal, in characters: how wide and how high.
pub fn size() -> (usize, usize) {
    match crossterm::terminal::size() {
        Ok((width @ 1.., height @ 1..)) => (width.into(), height.into()),
        _ => (80, 24),
    }
}

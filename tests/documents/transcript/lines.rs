//! What stands in a transcript.

/// From so far right on there are only remarks.
const REMARKS: usize = 24;

#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// Said in this terminal.
    Say(u32, String),
    /// Seen in this one.
    See(u32, String),
    /// This one is closed.
    Close(u32),
    /// So many ms go by.
    Pass(i64),
}

/// A piece of a page between two lines of backquotes.
pub struct Block {
    /// What stands behind the first backquotes.
    pub language: String,
    pub text: String,
}

impl Block {
    pub fn is_transcript(&self) -> bool {
        prompt(&self.text).is_some()
    }
}

/// All of a page.
pub fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for line in page.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(language)) => {
                open = Some(Block {
                    language: language.to_owned(),
                    text: String::new(),
                });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(block), None) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, None) => (),
        }
    }
    assert!(open.is_none(), "a block that does not end");
    blocks
}

/// The lines of a transcript.
pub fn parse(text: &str) -> Vec<Line> {
    let mut terminal = 0;
    let mut lines = Vec::new();
    for line in text.lines() {
        let said = prompt(line);
        let rest = said.map_or(line, |(number, rest)| {
            terminal = number;
            rest
        });
        let (words, remark) = split(rest);
        lines.extend(later(remark).map(Line::Pass));
        if said.is_some() {
            lines.push(Line::Say(terminal, words.to_owned()));
        } else if !words.is_empty() {
            lines.push(Line::See(terminal, words.to_owned()));
        }
        if remark.contains("Ctrl-D in the other terminal") {
            lines.push(Line::Close(other(terminal)));
        } else if remark.contains("in the other terminal") && remark.ends_with(':') {
            terminal = other(terminal);
        }
    }
    lines
}

/// `2 s later`, in ms.
fn later(remark: &str) -> Option<i64> {
    let seconds = remark.split_once(" s later")?.0;
    seconds.parse::<i64>().ok().map(|seconds| 1000 * seconds)
}

/// Of two.
fn other(terminal: u32) -> u32 {
    3 - terminal
}

/// The terminal, and what is said there.
fn prompt(line: &str) -> Option<(u32, &str)> {
    let (number, rest) = line.split_once("> ")?;
    Some((number.parse().ok()?, rest))
}

/// What is said or seen, and the remark. Two blanks between quotes are no remark's.
fn split(line: &str) -> (&str, &str) {
    let from = line.len() - line.trim_start().len();
    if from >= REMARKS {
        return ("", line.trim());
    }
    let mut quoted = false;
    let mut before = ' ';
    for (at, c) in line.char_indices().skip_while(|(at, _)| *at < from) {
        match c {
            '"' if before != '\\' => quoted = !quoted,
            ' ' if before == ' ' && !quoted && !is_numbered(&line[at..]) => {
                return (line[..at].trim_end(), line[at..].trim());
            }
            _ => (),
        }
        before = c;
    }
    (line.trim_end(), "")
}

/// Whether an entry of a list or of a map is next.
fn is_numbered(rest: &str) -> bool {
    let rest = rest.trim_start();
    let behind = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    behind.len() < rest.len() && (behind.starts_with(") ") || behind.starts_with("# "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remarks_say_where_things_are_seen_and_are_no_part_of_them() {
        let text = "1> RLOCK.RELEASE k a    2 s later\n\
                    (integer) 0                   and in the other terminal:\n\
                    1)  1) \"a  b\"  a remark\n\
                    1)  1# \"a\" => (nil)  a remark\n\
                    \u{20}                            now Ctrl-D in the other terminal\n";
        let expected = [
            Line::Pass(2000),
            Line::Say(1, "RLOCK.RELEASE k a".to_owned()),
            Line::See(1, "(integer) 0".to_owned()),
            Line::See(2, "1)  1) \"a  b\"".to_owned()),
            Line::See(2, "1)  1# \"a\" => (nil)".to_owned()),
            Line::Close(1),
        ];
        assert_eq!(parse(text), expected);
    }
}

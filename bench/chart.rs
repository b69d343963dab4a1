//! A bar chart as SVG, written by hand. It has no background and takes its
//! colours from the reader's scheme, so that it can stand on light and dark.

use std::fmt::Write;

use crate::report::grouped;

const WIDTH: usize = 720;
const LEFT: usize = 130;
const LONGEST: f64 = 470.0;
const BAR: usize = 26;
const STEP: usize = 36;
const TITLE: usize = 44;

const STYLE: &str = "\
text { font: 14px system-ui, sans-serif; fill: #24292f; }
.title { font-weight: 600; }
.bar { fill: #8c959f; }
.first { fill: #0969da; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .bar { fill: #6e7681; }
  .first { fill: #4493f8; }
}";

/// Bars that share a scale; the first is the one to look at.
pub struct Panel {
    /// What is shown, in words.
    pub title: String,
    /// Names and values.
    pub bars: Vec<(&'static str, f64)>,
}

/// The panels, one below the other.
pub fn svg(panels: &[Panel]) -> String {
    let mut body = String::new();
    let mut top = 0;
    for panel in panels {
        top = draw(&mut body, panel, top);
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {top}\" \
         width=\"{WIDTH}\" height=\"{top}\" role=\"img\">\n\
         <title>{}</title>\n<style>\n{STYLE}\n</style>\n{body}</svg>\n",
        summary(panels)
    )
}

/// Draws one panel from `top` on and gives where it ends.
fn draw(body: &mut String, panel: &Panel, top: usize) -> usize {
    let largest = panel.bars.iter().map(|bar| bar.1).fold(1.0, f64::max);
    let mut line = |text: String| {
        // Writing to a string does not fail.
        let _ = writeln!(body, "{text}");
    };
    line(format!(
        "<text class=\"title\" x=\"0\" y=\"{}\">{}</text>",
        top + 22,
        panel.title
    ));
    for (index, (name, value)) in panel.bars.iter().enumerate() {
        let y = top + TITLE + index * STEP;
        let text_y = y + 18;
        let width = (value / largest * LONGEST).max(1.0);
        let class = if index == 0 { "bar first" } else { "bar" };
        line(format!(
            "<text x=\"{}\" y=\"{text_y}\" text-anchor=\"end\">{name}</text>",
            LEFT - 10
        ));
        line(format!(
            "<rect class=\"{class}\" x=\"{LEFT}\" y=\"{y}\" width=\"{width:.1}\" \
             height=\"{BAR}\" rx=\"3\"/>"
        ));
        line(format!(
            "<text x=\"{:.1}\" y=\"{text_y}\">{}</text>",
            LEFT as f64 + width + 8.0,
            grouped(*value)
        ));
    }
    top + TITLE + panel.bars.len() * STEP + 12
}

/// The whole chart in one sentence, for those who cannot see it.
fn summary(panels: &[Panel]) -> String {
    let panel = |panel: &Panel| {
        let bars = panel.bars.iter();
        let bars = bars.map(|(name, value)| format!("{name} {}", grouped(*value)));
        let bars: Vec<String> = bars.collect();
        format!("{}: {}", panel.title, bars.join(", "))
    };
    panels.iter().map(panel).collect::<Vec<_>>().join("; ")
}

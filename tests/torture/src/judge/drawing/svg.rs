//! A drawing along a line of time, as SVG.

use std::fmt::Write;

/// Of the drawing, and of what stands left of it.
const WIDTH: f64 = 1500.0;
const LEFT: f64 = 250.0;
pub const ROW: f64 = 28.0;
/// For the names of faults, and the times.
const HEAD: f64 = 84.0;

/// What it looks like.
const STYLE: &str = "text{font:11px sans-serif}.name{font:12px monospace}
.marked{fill:#b00020;font-weight:bold}
.line{stroke:#e8e8e8}.tick{stroke:#d0d7e2;stroke-dasharray:2 3}.time{fill:#667}
.hold{fill:#2e7d32}.might{fill:#2e7d32;opacity:.18}.wait{fill:#90a4ae}
.ask{fill:#1565c0}.back{fill:#6a1b9a}.no{fill:#c62828}.token{fill:#fff}.said{fill:#444}
.told{fill:#00838f}.lost{fill:#d50000}
.fault{fill:#ef6c00;fill-opacity:.22}.fault.above{fill:#b34700;fill-opacity:1}
.found{fill:#d50000;fill-opacity:.10}.found.above{fill:#b00020;fill-opacity:1}";

pub struct Svg {
    from: u64,
    to: u64,
    rows: usize,
    body: String,
}

pub fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}

impl Svg {
    pub fn new(from: u64, to: u64, rows: usize) -> Self {
        Self {
            from,
            to,
            rows,
            body: String::new(),
        }
    }

    fn x(&self, at: u64) -> f64 {
        let part = at.clamp(self.from, self.to) - self.from;
        let whole = (self.to - self.from).max(1);
        LEFT + (WIDTH - LEFT) * part as f64 / whole as f64
    }

    fn y(row: usize) -> f64 {
        HEAD + ROW * row as f64
    }

    fn bottom(&self) -> f64 {
        Self::y(self.rows) + 6.0
    }

    fn add(&mut self, element: &str) {
        self.body.push_str(element);
        self.body.push('\n');
    }

    /// A rectangle with what is told of it under the pointer.
    fn rect(&mut self, class: &str, (x, y): (f64, f64), (width, height): (f64, f64), tip: &str) {
        let tip = escape(tip);
        self.add(&format!(
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{height:.1}\"><title>{tip}</title></rect>",
            width.max(1.5)
        ));
    }

    fn text(&mut self, class: &str, (x, y): (f64, f64), text: &str) {
        let text = escape(text);
        self.add(&format!(
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>"
        ));
    }

    /// The name of a row, and a line under it.
    pub fn row(&mut self, row: usize, name: &str, marked: bool) {
        let y = Self::y(row);
        let class = if marked { "name marked" } else { "name" };
        self.text(class, (4.0, y + 18.0), name);
        let line = y + ROW;
        self.add(&format!("<path class=\"line\" d=\"M0 {line} H{WIDTH}\"/>"));
    }

    /// A bar in a row: its place in it, from the top, and how high it is.
    pub fn bar(
        &mut self,
        row: usize,
        class: &str,
        (from, to): (u64, u64),
        (top, high): (f64, f64),
        tip: &str,
    ) {
        if to < self.from || from > self.to {
            return;
        }
        let (x, end) = (self.x(from), self.x(to));
        self.rect(class, (x, Self::y(row) + top), (end - x, high), tip);
    }

    /// Words in a row from this moment on, or from where it comes into sight.
    pub fn label(&mut self, row: usize, class: &str, (from, to): (u64, u64), top: f64, text: &str) {
        if to > self.from {
            self.words(row, class, from.max(self.from), top, text);
        }
    }

    /// Words in a row from this moment on.
    pub fn words(&mut self, row: usize, class: &str, at: u64, top: f64, text: &str) {
        if (self.from..=self.to).contains(&at) {
            self.text(class, (self.x(at) + 2.0, Self::y(row) + top), text);
        }
    }

    /// A message that arrives: a triangle in the row.
    pub fn message(&mut self, row: usize, class: &str, at: u64, tip: &str) {
        if !(self.from..=self.to).contains(&at) {
            return;
        }
        let (x, y, tip) = (self.x(at), Self::y(row) + 27.0, escape(tip));
        self.add(&format!(
            "<path class=\"{class}\" d=\"M{:.1} {y:.1} h8 l-4 -8 z\"><title>{tip}</title></path>",
            x - 4.0
        ));
    }

    /// Something that goes through all rows. `level`: where its name stands.
    pub fn across(&mut self, class: &str, (from, to): (u64, u64), level: usize, name: &str) {
        if to < self.from || from > self.to {
            return;
        }
        let (x, end) = (self.x(from), self.x(to));
        let top = 14.0 + 12.0 * level as f64;
        self.rect(class, (x, top), (end - x, self.bottom() - top), name);
        self.text(&format!("{class} above"), (x + 3.0, top + 9.0), name);
    }

    /// Times, from the beginning of the round.
    fn axis(&mut self, zero: u64) {
        let span = (self.to - self.from).max(1);
        let steps = [
            100, 1_000, 5_000, 10_000, 50_000, 100_000, 500_000, 1_000_000, 5_000_000,
        ];
        let step = steps
            .into_iter()
            .find(|step| span / step <= 14)
            .unwrap_or(10_000_000);
        let mut at = zero + (self.from.saturating_sub(zero)).div_ceil(step) * step;
        while at <= self.to {
            let (x, bottom) = (self.x(at), self.bottom());
            self.add(&format!(
                "<path class=\"tick\" d=\"M{x:.1} {} V{bottom}\"/>",
                HEAD - 8.0
            ));
            let seconds = (at - zero) as f64 / 1e6;
            self.text("time", (x + 2.0, HEAD - 10.0), &format!("{seconds:.4} s"));
            at += step;
        }
    }

    pub fn finish(mut self, zero: u64) -> String {
        self.axis(zero);
        let mut out = String::new();
        let high = self.bottom() + 4.0;
        // A String takes whatever is written.
        let _ = write!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {high}\" width=\"{WIDTH}\" height=\"{high}\">\n<style>{STYLE}</style>\n{}</svg>\n",
            self.body
        );
        out
    }
}

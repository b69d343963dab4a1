//! Pictures of figures, as SVG: bars, and lines over a number that grows. On white, so that
//! they can stand on light and dark pages.

use std::path::Path;

use plotters::prelude::*;

use crate::load::Outcome;
use crate::report::grouped;

const WIDTH: u32 = 880;
/// For the names of bars, and for those of lines.
const NAMES: u32 = 270;
const BAR: u32 = 28;
const TITLE: u32 = 34;
const LINES: u32 = 420;
const FONT: &str = "sans-serif";
/// Of rlock's own, and of those beside it, from the first on.
const OURS: [RGBColor; 4] = [
    RGBColor(9, 105, 218),
    RGBColor(84, 174, 255),
    RGBColor(3, 61, 139),
    RGBColor(17, 138, 178),
];
const OTHERS: [RGBColor; 9] = [
    RGBColor(110, 119, 129),
    RGBColor(207, 34, 46),
    RGBColor(154, 103, 0),
    RGBColor(26, 127, 55),
    RGBColor(130, 80, 223),
    RGBColor(191, 57, 137),
    RGBColor(225, 111, 36),
    RGBColor(36, 41, 47),
    RGBColor(74, 194, 107),
];

/// Values by name.
pub struct Bars {
    /// What is shown, with its unit.
    pub title: String,
    pub bars: Vec<(String, f64)>,
}

/// Points with x and y greater than 0, by name.
pub type Series = Vec<(String, Vec<(f64, f64)>)>;

/// Adds a point to a line, or begins one; not where there was nothing.
pub fn add(series: &mut Series, name: &str, point: (f64, f64)) {
    if point.1 <= 0.0 {
        return;
    }
    match series.iter_mut().find(|(known, _)| known == name) {
        Some((_, points)) => points.push(point),
        None => series.push((name.to_owned(), vec![point])),
    }
}

/// Values over a number that grows, both by powers of ten. Those whose names end in *p99*
/// are dashed.
pub struct Lines {
    /// What is shown.
    pub title: String,
    /// What grows, and what is measured, with its unit.
    pub x: &'static str,
    pub y: &'static str,
    pub series: Series,
}

/// What can be drawn: how high it is, and how. What has a name that begins with *rlock*
/// has a colour of rlock's.
pub trait Picture {
    fn height(&self) -> u32;
    fn draw(&self, area: &Area<'_>) -> Result<(), Failure>;
    /// What it shows in words, for those who cannot see it.
    fn words(&self) -> String;
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type Failure = DrawingAreaErrorKind<std::io::Error>;

/// Draws pictures into a file, one below the other.
pub fn write<P: Picture>(file: &Path, pictures: &[P]) -> Outcome<()> {
    let height = pictures.iter().map(Picture::height).sum();
    draw(file, pictures, height).map_err(|error| error.to_string().into())
}

fn draw<P: Picture>(file: &Path, pictures: &[P], height: u32) -> Result<(), Failure> {
    let mut rest = SVGBackend::new(file, (WIDTH, height)).into_drawing_area();
    rest.fill(&WHITE)?;
    let all = rest.clone();
    for picture in pictures {
        let (area, below) = rest.split_vertically(picture.height());
        picture.draw(&area)?;
        rest = below;
    }
    all.present()
}

impl Picture for Bars {
    fn height(&self) -> u32 {
        TITLE + 16 + BAR * self.bars.len() as u32
    }

    fn draw(&self, area: &Area<'_>) -> Result<(), Failure> {
        title(area, &self.title)?;
        let largest = self
            .bars
            .iter()
            .map(|bar| bar.1)
            .fold(f64::MIN_POSITIVE, f64::max);
        let longest = f64::from(WIDTH - NAMES - 110);
        let text = (FONT, 14).into_font().color(&BLACK);
        for (index, (name, value)) in self.bars.iter().enumerate() {
            let top = (TITLE + 4 + BAR * index as u32) as i32;
            let left = NAMES as i32;
            let right = left + (value / largest * longest).max(1.0) as i32;
            let colour = if is_ours(name) { OURS[0] } else { OTHERS[0] };
            let bar = [(left, top), (right, top + BAR as i32 - 6)];
            area.draw(&Rectangle::new(bar, colour.filled()))?;
            area.draw(&Text::new(name.clone(), (14, top + 5), text.clone()))?;
            area.draw(&Text::new(
                figure(*value),
                (right + 6, top + 5),
                text.clone(),
            ))?;
        }
        Ok(())
    }

    fn words(&self) -> String {
        let bars = self.bars.iter();
        let bars = bars.map(|(name, value)| format!("{name} {}", figure(*value)));
        format!("{}: {}", self.title, bars.collect::<Vec<_>>().join(", "))
    }
}

impl Picture for Lines {
    fn height(&self) -> u32 {
        LINES
    }

    fn draw(&self, area: &Area<'_>) -> Result<(), Failure> {
        title(area, &self.title)?;
        let (area, names) = area.split_horizontally(WIDTH - NAMES);
        let points = || self.series.iter().flat_map(|(_, points)| points);
        let x = span(points().map(|point| point.0));
        let y = decades(points().map(|point| point.1));
        let mut chart = ChartBuilder::on(&area)
            .margin(12)
            .margin_top(TITLE)
            .x_label_area_size(44)
            .y_label_area_size(76)
            .build_cartesian_2d(x.log_scale(), y.log_scale())?;
        chart
            .configure_mesh()
            .x_desc(self.x)
            .y_desc(self.y)
            .label_style((FONT, 13))
            .axis_desc_style((FONT, 14))
            .x_label_formatter(&|value| figure(*value))
            .y_label_formatter(&|value| figure(*value))
            .light_line_style(TRANSPARENT)
            .draw()?;
        let mut drawn = Vec::new();
        let (mut ours, mut others) = (OURS.iter().cycle(), OTHERS.iter().cycle());
        for (name, points) in &self.series {
            let colours = if is_ours(name) {
                &mut ours
            } else {
                &mut others
            };
            let style = colours.next().unwrap_or(&BLACK).stroke_width(2);
            let dot = |point: &(f64, f64)| Circle::new(*point, 3, style.filled());
            chart.draw_series(points.iter().map(dot))?;
            if name.ends_with("p99") {
                let dashes = DashedLineSeries::new(points.iter().copied(), 6, 4, style);
                chart.draw_series(dashes)?;
            } else {
                chart.draw_series(LineSeries::new(points.iter().copied(), style))?;
            }
            let end = points.last().map_or(0.0, |point| point.1);
            drawn.push((end, name, style));
        }
        // In the order in which the lines end, from above.
        drawn.sort_by(|one, other| other.0.total_cmp(&one.0));
        let text = (FONT, 13).into_font().color(&BLACK);
        for (index, (_, name, style)) in drawn.into_iter().enumerate() {
            let y = TITLE as i32 + 12 + 22 * index as i32;
            let is_dashed = name.ends_with("p99");
            for from in if is_dashed { vec![0, 10] } else { vec![0] } {
                let to = if is_dashed { from + 6 } else { 16 };
                names.draw(&PathElement::new([(from, y), (to, y)], style))?;
            }
            names.draw(&Text::new(name.clone(), (22, y - 7), text.clone()))?;
        }
        Ok(())
    }

    fn words(&self) -> String {
        let series = self.series.iter();
        let names: Vec<&str> = series.map(|(name, _)| name.as_str()).collect();
        format!("{}: {}", self.title, names.join(", "))
    }
}

fn title(area: &Area<'_>, text: &str) -> Result<(), Failure> {
    let style = (FONT, 16).into_font().style(FontStyle::Bold).color(&BLACK);
    area.draw(&Text::new(text.to_owned(), (14, 10), style))
}

fn is_ours(name: &str) -> bool {
    name.starts_with("rlock")
}

/// All values, and a little room at both ends.
fn span(values: impl Iterator<Item = f64> + Clone) -> std::ops::Range<f64> {
    let least = values.clone().fold(f64::INFINITY, f64::min).max(1e-3);
    let most = values.fold(least, f64::max);
    least * 0.85..most * 1.2
}

/// The powers of ten around all values.
fn decades(values: impl Iterator<Item = f64> + Clone) -> std::ops::Range<f64> {
    let least = values.clone().fold(f64::INFINITY, f64::min).max(1e-3);
    let most = values.fold(least, f64::max);
    10_f64.powf(least.log10().floor())..10_f64.powf((most.log10() + 1e-9).ceil()).max(least * 10.0)
}

/// A number as a reader wants it.
fn figure(value: f64) -> String {
    match value {
        value if value >= 10.0 || value.fract() == 0.0 => grouped(value),
        value if value >= 1.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

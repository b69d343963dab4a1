//! Pictures of figures, as SVG: bars, and lines over a number that grows.

use std::path::Path;

use plotters::prelude::*;

use crate::load::Outcome;
use crate::report::grouped;

const WIDTH: u32 = 760;
const FONT: &str = "sans-serif";
/// Of rlock's own, and of those beside it.
const OURS: RGBColor = RGBColor(9, 105, 218);
const OTHERS: [RGBColor; 7] = [
    RGBColor(191, 57, 137),
    RGBColor(188, 76, 0),
    RGBColor(26, 127, 55),
    RGBColor(110, 119, 129),
    RGBColor(130, 80, 223),
    RGBColor(154, 103, 0),
    RGBColor(207, 34, 46),
];

/// Values by name; the first is the one to look at.
pub struct Bars {
    /// What is shown, in words.
    pub title: String,
    pub bars: Vec<(String, f64)>,
}

/// Values over a number that grows, both by powers of ten.
pub struct Lines {
    /// What is shown, in words.
    pub title: String,
    /// What grows, and what is measured.
    pub x: &'static str,
    pub y: &'static str,
    /// By name, points with x and y greater than 0. Names that begin with *rlock* are drawn
    /// as its own.
    pub series: Vec<(String, Vec<(f64, f64)>)>,
}

/// What can be drawn: how high it is, and how.
pub trait Picture {
    fn height(&self) -> u32;
    fn draw(&self, area: &Area<'_>) -> Outcome<()>;
    /// What it shows in words, for those who cannot see it.
    fn words(&self) -> String;
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// Draws pictures into a file, one below the other.
pub fn write<P: Picture>(file: &Path, pictures: &[P]) -> Outcome<()> {
    let height = pictures.iter().map(Picture::height).sum();
    let mut rest = SVGBackend::new(file, (WIDTH, height)).into_drawing_area();
    rest.fill(&WHITE).map_err(|error| error.to_string())?;
    let all = rest.clone();
    for picture in pictures {
        let (area, below) = rest.split_vertically(picture.height());
        picture.draw(&area)?;
        rest = below;
    }
    all.present().map_err(|error| error.to_string())?;
    Ok(())
}

impl Picture for Bars {
    fn height(&self) -> u32 {
        70 + 36 * self.bars.len() as u32
    }

    fn draw(&self, area: &Area<'_>) -> Outcome<()> {
        self.try_draw(area)
            .map_err(|error| error.to_string().into())
    }

    fn words(&self) -> String {
        let bars = self.bars.iter();
        let bars = bars.map(|(name, value)| format!("{name} {}", figure(*value)));
        format!("{}: {}", self.title, bars.collect::<Vec<_>>().join(", "))
    }
}

impl Bars {
    fn try_draw(&self, area: &Area<'_>) -> Result<(), Failure<'_>> {
        let largest = self.bars.iter().map(|bar| bar.1).fold(0.0, f64::max);
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, (FONT, 16))
            .margin(12)
            .build_cartesian_2d(-largest * 0.35..largest * 1.15, 0.0..self.bars.len() as f64)?;
        let names = (FONT, 14).into_font().color(&BLACK);
        for (index, (name, value)) in self.bars.iter().enumerate() {
            let top = (self.bars.len() - index) as f64;
            let colour = if index == 0 { OURS } else { OTHERS[3] };
            let bar = [(0.0, top - 0.15), (*value, top - 0.85)];
            chart.draw_series([Rectangle::new(bar, colour.filled())])?;
            let text = |text: String, x: f64| Text::new(text, (x, top - 0.35), names.clone());
            chart.draw_series([text(name.clone(), -largest * 0.34)])?;
            chart.draw_series([text(figure(*value), value + largest * 0.01)])?;
        }
        Ok(())
    }
}

impl Picture for Lines {
    fn height(&self) -> u32 {
        420
    }

    fn draw(&self, area: &Area<'_>) -> Outcome<()> {
        self.try_draw(area)
            .map_err(|error| error.to_string().into())
    }

    fn words(&self) -> String {
        let series = self.series.iter();
        let names: Vec<&str> = series.map(|(name, _)| name.as_str()).collect();
        format!("{}: {}", self.title, names.join(", "))
    }
}

impl Lines {
    fn try_draw(&self, area: &Area<'_>) -> Result<(), Failure<'_>> {
        let points = || self.series.iter().flat_map(|(_, points)| points);
        let (x, y) = (
            decades(points().map(|point| point.0)),
            decades(points().map(|point| point.1)),
        );
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, (FONT, 16))
            .margin(12)
            .x_label_area_size(44)
            .y_label_area_size(76)
            .build_cartesian_2d(x.log_scale(), y.log_scale())?;
        chart
            .configure_mesh()
            .x_desc(self.x)
            .y_desc(self.y)
            .x_label_formatter(&|value| figure(*value))
            .y_label_formatter(&|value| figure(*value))
            .light_line_style(TRANSPARENT)
            .draw()?;
        let mut others = OTHERS.iter().cycle();
        for (name, points) in &self.series {
            let style = match name.strip_prefix("rlock") {
                Some("") => OURS.stroke_width(3),
                Some(_) => OURS.mix(0.6).stroke_width(2),
                None => others.next().unwrap_or(&OURS).stroke_width(2),
            };
            let line = LineSeries::new(points.iter().copied(), style).point_size(3);
            chart
                .draw_series(line)?
                .label(name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::LowerLeft)
            .background_style(WHITE.mix(0.85))
            .draw()?;
        Ok(())
    }
}

type Failure<'a> = DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>;

/// The powers of ten around all values.
fn decades(values: impl Iterator<Item = f64> + Clone) -> std::ops::Range<f64> {
    let least = values.clone().fold(f64::INFINITY, f64::min).max(1e-3);
    let most = values.fold(least, f64::max);
    10_f64.powf(least.log10().floor())..10_f64.powf((most.log10() + 1e-9).ceil()).max(least * 10.0)
}

/// A number as a reader wants it.
fn figure(value: f64) -> String {
    match value {
        value if value >= 10.0 => grouped(value),
        value if value >= 1.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

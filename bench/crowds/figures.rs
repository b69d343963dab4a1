//! What a cell of the table is measured by.

use std::thread::sleep;
use std::time::Duration;

use super::crowd::Crowd;
use super::rows::Row;
use super::scene::{How, Scene};
use super::script::Happen;
use crate::load::Outcome;
use crate::options::Options;
use crate::waits::{Pinger, EVERY};

/// How many there are, from one column to the next.
const SIZES: [usize; 3] = [100, 10_000, 100_000];
const QUICK_SIZES: [usize; 2] = [100, 1_000];

/// No more of what happens at once, or in turn, are counted.
const AT_ONCE: usize = 20_000;
const IN_TURN: usize = 1_024;

/// So much of the server's time, in ms, can be told apart from none: beside PINGs, and without.
const LEAST_BESIDE: f64 = 5.0;
const LEAST: f64 = 1.0;

/// A figure for each of some sizes.
pub type Sized = Vec<(f64, f64)>;

/// What was measured of a row, or why it could not be.
pub type Measured<T> = Result<T, String>;

/// By time.
#[derive(Clone, Copy, Debug)]
pub struct Timed {
    /// The longest PING, in ms.
    pub ping: f64,
    /// The server's time for a piece, in us.
    pub us: f64,
}

impl Timed {
    /// The lesser figures of both.
    pub fn least(self, other: Self) -> Self {
        Timed {
            ping: self.ping.min(other.ping),
            us: self.us.min(other.us),
        }
    }
}

/// How all is measured.
pub struct Figures<'a> {
    pub sizes: &'static [usize],
    /// Whether instructions are counted.
    pub counts: bool,
    options: &'a Options,
}

impl<'a> Figures<'a> {
    pub fn new(options: &'a Options) -> Self {
        Figures {
            sizes: match options.quick {
                true => &QUICK_SIZES,
                false => &SIZES,
            },
            // It takes long.
            counts: !options.no_counts && (!options.quick || !options.row.is_empty()),
            options,
        }
    }

    /// Whether a crowd is to be measured: nodes of a cluster take seconds to meet, and --quick
    /// has none for that.
    pub fn has_time_for(&self, crowd: &Crowd) -> bool {
        !(crowd.in_a_cluster && self.options.quick && self.options.row.is_empty())
    }

    /// How often, where it is so often in full.
    pub fn turns(&self, full: usize) -> usize {
        self.options.count(full, 1)
    }

    /// How many there can be, from few to the most.
    fn sizes_of(&self, crowd: &Crowd) -> Vec<usize> {
        let mut sizes: Vec<usize> = self.sizes.iter().map(|&n| n.min(crowd.most)).collect();
        sizes.dedup();
        sizes
    }

    pub fn most_of(&self, crowd: &Crowd) -> usize {
        self.sizes_of(crowd).last().copied().unwrap_or_default()
    }

    /// Instructions of a piece, of each of these rows, which follow each other on one server.
    pub fn counted(&self, crowd: &Crowd, rows: &[&Row]) -> Vec<Measured<Sized>> {
        let mut all = vec![Ok(Sized::new()); rows.len()];
        let most = match rows.iter().all(|row| row.happen.spares()) {
            true => usize::MAX,
            false => AT_ONCE,
        };
        let sizes = self.sizes_of(crowd).into_iter();
        for size in sizes.filter(|&size| size <= most) {
            let counts = self.each(crowd, rows, size, true, |scene, row| {
                count(scene, &row.happen)
            });
            for (one, count) in all.iter_mut().zip(counts) {
                match (one.as_mut(), count) {
                    (Ok(one), Ok(count)) => one.push((size as f64, count)),
                    (_, Err(error)) => *one = Err(error),
                    (Err(_), _) => {}
                }
            }
        }
        all
    }

    /// The longest PING beside each of these rows, and the server's time, with the most.
    pub fn timed(&self, crowd: &Crowd, rows: &[&Row]) -> Vec<Measured<Timed>> {
        self.each(crowd, rows, self.most_of(crowd), false, |scene, row| {
            time_beside_pings(scene, &row.happen)
        })
    }

    /// The server's time with fewer, where it is not counted with the most: a figure that the
    /// time with the most can be held against.
    pub fn timed_with_fewer(&self, crowd: &Crowd, row: &Row) -> Measured<Option<(f64, f64)>> {
        let sizes = self.sizes_of(crowd);
        let [.., fewer, most] = sizes[..] else {
            return Ok(None);
        };
        if row.happen.spares() || most <= AT_ONCE {
            return Ok(None);
        }
        let us = self.each(crowd, &[row], fewer, false, |scene, row| {
            time(scene, &row.happen)
        });
        us.into_iter()
            .map(|us| us.map(|us| (fewer as f64, us)))
            .next()
            .transpose()
    }

    pub fn size_of_like(&self, row: &Row, crowd: &Crowd) -> usize {
        self.most_of(crowd).min(row.like.crowd.most)
    }

    /// The longest PING beside the like, on a server without the module.
    pub fn like(&self, row: &Row, crowd: &Crowd) -> Outcome<f64> {
        let how = How {
            counted: false,
            with_module: false,
            hurry: self.options.quick,
        };
        let size = self.size_of_like(row, crowd);
        let mut scene = Scene::with(&row.like.crowd, size, how, self.options)?;
        Ok(time_beside_pings(&mut scene, &row.like.happen)?.ping)
    }

    /// Something of each of these rows, on one server with the module.
    fn each<T>(
        &self,
        crowd: &Crowd,
        rows: &[&Row],
        size: usize,
        counted: bool,
        what: impl Fn(&mut Scene, &Row) -> Outcome<T>,
    ) -> Vec<Measured<T>> {
        let how = How {
            counted,
            with_module: true,
            hurry: self.options.quick,
        };
        match Scene::with(crowd, size, how, self.options) {
            Ok(mut scene) => rows
                .iter()
                .map(|row| what(&mut scene, row).map_err(|error| error.to_string()))
                .collect(),
            Err(error) => rows.iter().map(|_| Err(error.to_string())).collect(),
        }
    }
}

/// The instructions of a piece.
fn count(scene: &mut Scene, happen: &Happen) -> Outcome<f64> {
    scene.prepare(happen)?;
    scene.server.count(true)?;
    let pieces = scene.let_happen(happen, IN_TURN)?;
    let counts = scene.server.instructions()?;
    scene.server.count(false)?;
    Ok(counts.all as f64 / pieces as f64)
}

/// The server's time for a piece, in us.
fn time(scene: &mut Scene, happen: &Happen) -> Outcome<f64> {
    scene.prepare(happen)?;
    let processor = scene.server.processor()?;
    let before = processor.spent()?;
    let pieces = scene.let_happen(happen, usize::MAX)?;
    let ran = processor.since(before)?.ran;
    Ok(ran.max(LEAST) * 1e3 / pieces as f64)
}

/// The longest PING, and the server's time for a piece, in us, without those of PINGs.
fn time_beside_pings(scene: &mut Scene, happen: &Happen) -> Outcome<Timed> {
    scene.prepare(happen)?;
    let processor = scene.server.processor()?;
    let pinger = Pinger::start(&scene.server, EVERY)?;
    sleep(Duration::from_millis(50));
    let before = processor.spent()?;
    let pieces = scene.let_happen(happen, usize::MAX)?;
    let ran = processor.since(before)?.ran;
    // Who asks while it is under way has been answered by then.
    sleep(Duration::from_millis(20));
    let waits = pinger.waits()?;
    let own = (ran - waits.work_at_rest()).max(LEAST_BESIDE);
    Ok(Timed {
        ping: waits.longest(),
        us: own * 1e3 / pieces as f64,
    })
}

/// How much more a piece takes from one size to the next, beyond the logarithm: the most.
pub fn growth(figures: &[(f64, f64)]) -> f64 {
    let steps = figures.windows(2).map(|pair| {
        let ((n, of), (more, of_more)) = (pair[0], pair[1]);
        of_more / of / (more.ln() / n.ln())
    });
    steps.fold(0.0, f64::max)
}

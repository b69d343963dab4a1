//! The few figures that a report needs from many samples.

/// The value that a share of the samples (0.0 to 1.0) does not exceed.
pub fn quantile(samples: &[f64], share: f64) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        count => {
            let rank = (share * count as f64).ceil() as usize;
            sorted[rank.clamp(1, count) - 1]
        }
    }
}

/// The middle of the samples.
pub fn median(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

/// Half the width of the 95 % confidence interval of the median, from the
/// quartiles (the notch of a box plot), so that single outliers do not count.
pub fn error_of_median(samples: &[f64]) -> f64 {
    let spread = quantile(samples, 0.75) - quantile(samples, 0.25);
    1.57 * spread / (samples.len() as f64).sqrt()
}

/// One series divided by another, sample by sample.
pub fn ratios(of: &[f64], to: &[f64]) -> Vec<f64> {
    of.iter().zip(to).map(|(of, to)| of / to).collect()
}

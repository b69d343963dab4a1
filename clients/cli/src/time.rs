//! Times as people write and read them.

use std::time::Duration;

/// `10s`, `5m`, `1h30m`, `250ms`. A bare number says nothing of its unit.
pub fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no time: use 250ms, 10s, 5m, 1h or 1h30m");
    let mut rest = text;
    let mut sum = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
        let (number, after) = rest.split_at(digits);
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let end = after
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let unit: u64 = match unit {
            "ms" => 1,
            "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(wrong()),
        };
        let ms = number.checked_mul(unit).ok_or_else(wrong)?;
        sum = sum
            .checked_add(Duration::from_millis(ms))
            .ok_or_else(wrong)?;
        rest = after;
    }
    if text.is_empty() || sum > Duration::from_secs(10 * 365 * 86_400) {
        return Err(wrong());
    }
    Ok(sum)
}

/// In at most two units: `850ms`, `12.3s`, `4m 10s`, `3h 2m`, `2d 5h`.
pub fn show(ms: u64) -> String {
    let seconds = ms / 1000;
    match ms {
        0..1000 => format!("{ms}ms"),
        1000..60_000 => format!("{seconds}.{}s", ms % 1000 / 100),
        60_000..3_600_000 => format!("{}m {}s", seconds / 60, seconds % 60),
        3_600_000..86_400_000 => format!("{}h {}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d {}h", seconds / 86_400, seconds / 3600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_their_unit() {
        assert_eq!(parse("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse("1h30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(parse("0s"), Ok(Duration::ZERO));
        for wrong in [
            "",
            "10",
            "s",
            "10x",
            "1h30",
            "-1s",
            "1.5s",
            "99999999999999999999s",
            "10 s",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn times_are_shown_in_two_units() {
        let shown = [850, 12_345, 250_000, 10_920_000, 190_800_000].map(show);
        assert_eq!(shown, ["850ms", "12.3s", "4m 10s", "3h 2m", "2d 5h"]);
    }
}

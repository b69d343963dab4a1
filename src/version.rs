//! Which version of rlock this is, as Cargo.toml has it, and of which commit.

/// `1.2.3`.
pub const TEXT: &str = env!("CARGO_PKG_VERSION");

/// 1.2.3 as 10203, as MODULE LIST shows it.
pub const NUMBER: i32 = number(
    env!("CARGO_PKG_VERSION_MAJOR"),
    env!("CARGO_PKG_VERSION_MINOR"),
    env!("CARGO_PKG_VERSION_PATCH"),
);

/// The commit that it was built from, where the builder said it, as `make dist` does.
pub const BUILD: &str = match option_env!("RLOCK_BUILD") {
    Some(commit) => commit,
    None => "unknown",
};

const fn number(major: &str, minor: &str, patch: &str) -> i32 {
    let minors = part(major).saturating_mul(100).saturating_add(part(minor));
    minors.saturating_mul(100).saturating_add(part(patch))
}

/// Cargo has made sure that it is a number.
const fn part(text: &str) -> i32 {
    match i32::from_str_radix(text, 10) {
        Ok(number) => number,
        Err(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_digits_for_each_part() {
        assert_eq!(number("1", "2", "3"), 10203);
        assert_eq!(number("0", "9", "0"), 900);
        assert_eq!(number("12", "0", "34"), 120_034);
    }
}

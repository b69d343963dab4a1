//! Which version of rlock this is, as Cargo.toml has it, and of which commit.

/// `1.2.3`.
pub const TEXT: &str = env!("CARGO_PKG_VERSION");

/// 1.2.3 as 10203, as MODULE LIST shows it.
pub const NUMBER: i32 = number(
    env!("CARGO_PKG_VERSION_MAJOR"),
    env!("CARGO_PKG_VERSION_MINOR"),
    env!("CARGO_PKG_VERSION_PATCH"),
);

/// The commit that it was built from, where the builder gave it, as `make dist` does.
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

    /// The files, and what stands before the version there. Cargo's lock files are kept right by
    /// `--locked`.
    const ALSO: [(&str, &str); 25] = [
        ("README.md", "rlock-module_"),
        ("README.md", "librlock-"),
        ("README.md", "rlock-valkey-"),
        ("README.md", "rlock-valkey:"),
        ("README.md", "rlock-cli_"),
        ("README.md", "rlock-cli-"),
        ("clients/cli/README.md", "`rlock-cli_"),
        ("clients/Cargo.toml", "[workspace.package]\nversion = \""),
        ("clients/Cargo.toml", "rlock-client = { version = \""),
        ("clients/model/Cargo.toml", "\nversion = \""),
        ("clients/README.md", "`rlock-python-"),
        ("clients/python/pyproject.toml", "\nversion = \""),
        ("clients/python/src/rlock/_ask.py", "\nVERSION = \""),
        ("clients/node/package.json", "\n  \"version\": \""),
        (
            "clients/node/package-lock.json",
            "{\n  \"name\": \"rlock-client\",\n  \"version\": \"",
        ),
        (
            "clients/node/package-lock.json",
            "{\n      \"name\": \"rlock-client\",\n      \"version\": \"",
        ),
        ("clients/node/src/link.js", "NAME = 'rlock-node-"),
        ("clients/node/README.md", "`rlock-node-"),
        ("clients/go/open.go", "ownName = \"rlock-go-"),
        ("clients/go/README.md", "clients/go@v"),
        ("clients/php/src/Version.php", "TEXT = '"),
        ("lua-compat/parts/01-head.lua", "VERSION = '"),
        (
            "clients/java/pom.xml",
            "<artifactId>rlock-client</artifactId>\n  <version>",
        ),
        (
            "clients/java/README.md",
            "<artifactId>rlock-client</artifactId>\n      <version>",
        ),
        (
            "clients/java/src/main/java/dev/rlock/Locks.java",
            " VERSION = \"",
        ),
    ];

    #[test]
    fn the_clients_are_of_the_same_version() {
        for (file, before) in ALSO {
            let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
            let text = std::fs::read_to_string(path).unwrap();
            let mut said = text.split(before).skip(1).peekable();
            assert!(said.peek().is_some(), "{file} has no {before:?}");
            for after in said {
                let rest = after.strip_prefix(TEXT);
                let is_it =
                    rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()));
                assert!(is_it, "{file}: {before:?} is not followed by {TEXT}");
            }
        }
    }
}

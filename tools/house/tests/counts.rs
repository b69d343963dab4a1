//! What is counted, on small crates.

use rlock_house::{counts, Sources};

const PAGE: &str = "\
### From RELEASE to the reply of the next waiter

Two files.

```
 1 command/release.rs   reads the arguments
 2 lock/decide.rs       begins the decision
   |                    … back in 1
10 server/answers.rs
```

```
 1 another way
```
";

/// What is found of each, in the order of the limits.
fn found(files: &[(&str, &str)]) -> Vec<usize> {
    let sources: Sources = files
        .iter()
        .map(|(name, text)| (name.to_string(), text.to_string()))
        .collect();
    let counts = counts(&sources, PAGE).expect("it is Rust");
    counts.iter().map(|count| count.found).collect()
}

const A: &str = r#"/// Kind::Plain
fn f(k: Kind) -> bool {
    // Kind::Plain
    matches!(k, Kind::Plain | Kind::Shared) && g("Kind::Plain") && GrantKind::Nest
}
#[cfg(test)]
mod tests {
    fn f() { Kind::Plain; }
}
"#;

#[test]
fn kinds_are_counted_in_code_but_not_in_comments_tests_or_their_own_folder() {
    let files = [
        ("lib.rs", "mod lock;\nfn f() { Kind::Plain; }"),
        ("lock/mod.rs", "mod a;\nmod kind;\n#[cfg(test)]\nmod tests;"),
        ("lock/a.rs", A),
        ("lock/kind/mod.rs", "fn f() { Kind::Plain; }"),
        ("lock/tests.rs", "fn f() { Kind::Plain; }"),
    ];
    assert_eq!(found(&files), [2, 0, 2 + 5 + 1, 3]);
}

#[test]
fn files_that_name_permits_are_counted_once_each_wherever_they_stand() {
    let files = [
        ("lib.rs", "mod a;\nmod b;\nmod c;"),
        ("a.rs", "struct Permit;\nfn permits() {}"),
        ("b.rs", "// PERMITS\nmod inner {}"),
        ("c.rs", "impl X {\n    #[cfg(test)]\n    fn permit() {}\n}"),
    ];
    assert_eq!(found(&files), [0, 2, 0, 3]);
}

#[test]
fn a_count_over_its_limit_is_told() {
    let sources = Sources::from([("lib.rs".to_owned(), String::new())]);
    let counted = counts(&sources, PAGE).expect("it is Rust");
    assert!(counted.iter().all(|count| !count.is_over()));
    let mut over = counted[0];
    over.found = over.limit.most + 1;
    assert!(over.is_over());
    assert!(over.to_string().ends_with("over the limit"));
}

#[test]
fn a_page_without_the_way_of_a_release_is_refused() {
    let sources = Sources::from([("lib.rs".to_owned(), String::new())]);
    assert!(counts(&sources, "### From a key event to a grant").is_err());
}

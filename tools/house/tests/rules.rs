//! Each rule on a small crate that breaks it, and on one that does not.

use rlock_house::{check, Breach, Rule, Sources};

/// The crate of these files, each of which begins as it should.
fn sources(files: &[(&str, &str)]) -> Sources {
    let file = |(name, text): &(&str, &str)| (name.to_string(), format!("//! A file.\n{text}"));
    files.iter().map(file).collect()
}

fn breaches(files: &[(&str, &str)]) -> Vec<Breach> {
    check(&sources(files), &[]).expect("it is Rust")
}

/// What is said of a crate, a line each.
fn said(files: &[(&str, &str)]) -> Vec<String> {
    breaches(files).iter().map(ToString::to_string).collect()
}

/// Which rules a crate breaks.
fn broken(files: &[(&str, &str)]) -> Vec<Rule> {
    breaches(files).iter().map(|breach| breach.rule).collect()
}

const TWO: (&str, &str) = ("lib.rs", "mod a;\nmod b;\n");

#[test]
fn a_cycle_of_imports_is_found_at_each_of_its_modules() {
    let lines = said(&[
        TWO,
        ("a.rs", "\nuse crate::b::B;\npub struct A(B);"),
        ("b.rs", "use super::a::A;\npub struct B(Box<A>);"),
    ]);
    assert_eq!(
        lines,
        [
            "a.rs:3: a cycle of modules: a -> b -> a",
            "b.rs:2: a cycle of modules: b -> a -> b"
        ]
    );
}

#[test]
fn modules_that_depend_on_each_other_one_way_are_no_cycle() {
    let files = [
        TWO,
        (
            "a.rs",
            "use crate::b::{self, B};\npub fn f() -> B { b::g() }",
        ),
        ("b.rs", "pub struct B;\npub fn g() -> B { B }"),
    ];
    assert_eq!(said(&files), [""; 0]);
}

#[test]
fn a_cycle_of_three_is_told_by_its_shortest_way() {
    let lines = said(&[
        ("lib.rs", "mod a;\nmod b;\nmod c;"),
        ("a.rs", "pub fn f() { crate::b::f() }"),
        ("b.rs", "pub fn f() { crate::c::f() }"),
        ("c.rs", "pub fn f() { crate::a::f() }"),
    ]);
    assert_eq!(lines[0], "a.rs:2: a cycle of modules: a -> b -> c -> a");
    assert_eq!(lines.len(), 3);
}

#[test]
fn paths_inside_code_count_as_imports_do() {
    for use_of_a in [
        "pub fn g() { super::a::f() }",
        "pub fn g() { let it: Option<crate::a::A> = None; }",
        "pub fn g() { vec![super::a::f()]; }",
        "pub fn g() { use crate::a::f; f() }",
        "use crate::a;\npub fn g() { a::f() }",
        "use crate::a as other;\npub fn g() { other::A::new(); }",
        "use crate::a::*;\npub fn g() { f() }",
        "use crate::a::A::*;",
        "struct B;\nimpl crate::a::T for B {}",
        "pub fn g(it: impl crate::a::T) {}",
        "macro_rules! m { () => { $crate::a::f() } }",
    ] {
        let a = "pub struct A;\npub trait T {}\npub fn f() { crate::b::h() }";
        let b = format!("{use_of_a}\npub fn h() {{}}");
        let files = [TWO, ("a.rs", a), ("b.rs", &b)];
        assert_eq!(broken(&files), [Rule::Cycle; 2], "{use_of_a}");
    }
}

#[test]
fn a_macro_of_another_module_is_a_dependency() {
    let files = [
        TWO,
        (
            "a.rs",
            "macro_rules! m { () => {} }\npub(crate) use m;\nuse super::b::B;",
        ),
        ("b.rs", "use super::a::m;\npub struct B;\nfn f() { m!() }"),
    ];
    assert_eq!(broken(&files), [Rule::Cycle; 2]);
}

#[test]
fn what_a_parent_hands_on_belongs_to_the_module_that_defines_it() {
    // `c` takes from `a` what its child `d` defines, and `a` itself from nobody.
    let files = [
        ("lib.rs", "mod a;\nmod c;"),
        (
            "a/mod.rs",
            "mod d;\nmod e;\npub use d::D;\npub use self::e::E;",
        ),
        ("a/d.rs", "pub struct D;"),
        ("a/e.rs", "use crate::c::C;\npub struct E(C);"),
        ("c.rs", "use crate::a::D;\npub struct C(D);"),
    ];
    assert_eq!(said(&files), [""; 0]);
}

#[test]
fn a_cycle_is_found_through_what_a_parent_hands_on() {
    let lines = said(&[
        ("lib.rs", "mod a;\nmod c;"),
        ("a/mod.rs", "mod d;\npub use d::D;"),
        ("a/d.rs", "use crate::c::C;\npub struct D(C);"),
        ("c.rs", "use crate::a;\npub struct C(Box<a::D>);"),
    ]);
    assert_eq!(
        lines,
        [
            "a/d.rs:2: a cycle of modules: a::d -> c -> a::d",
            "c.rs:3: a cycle of modules: c -> a::d -> c"
        ]
    );
}

#[test]
fn a_parent_that_uses_what_it_declares_and_is_used_by_it_is_a_cycle() {
    let files = [
        ("lib.rs", "mod a;"),
        ("a/mod.rs", "mod b;\nuse b::B;\npub struct A(B);"),
        ("a/b.rs", "use super::A;\npub struct B(Box<A>);"),
    ];
    assert_eq!(broken(&files), [Rule::Cycle; 2]);
}

#[test]
fn what_is_for_tests_makes_no_cycle() {
    for test in [
        "#[cfg(test)]\nuse crate::b::B;",
        "#[cfg(all(test, unix))]\nuse crate::b::B;",
        "#[cfg(test)]\nmod tests { use crate::b::B; }",
        "#[cfg(test)]\nmod tests;",
        "struct A;\nimpl A { #[cfg(test)] fn f() { crate::b::f() } }",
        "struct A { #[cfg(test)] b: crate::b::B }",
    ] {
        let b = "use crate::a::f;\npub struct B;\npub fn f() {}";
        let files = [
            TWO,
            ("a.rs", test),
            ("b.rs", b),
            ("a/tests.rs", "use crate::b::B;"),
        ];
        assert_eq!(said(&files), [""; 0], "{test}");
    }
    // This is in other builds too.
    let checked = "#[cfg(any(test, debug_assertions))]\nuse crate::b::B;\npub fn f() {}";
    let b = "use crate::a::f;\npub struct B;";
    let files = [TWO, ("a.rs", checked), ("b.rs", b)];
    assert_eq!(broken(&files), [Rule::Cycle; 2]);
}

#[test]
fn two_methods_below_their_type_that_call_each_other_are_a_cycle() {
    for call in [
        "self.g()",
        "Self::g(self)",
        "assert!(self.g())",
        "Core::g(self)",
    ] {
        let b = format!("use super::Core;\nimpl Core {{ pub fn f(&self) {{ {call}; }} }}");
        let c = "use super::Core;\nimpl Core { pub fn g(&self) { self.f() } }";
        let files = [
            ("lib.rs", "mod a;"),
            ("a/mod.rs", "mod b;\nmod c;\npub struct Core;"),
            ("a/b.rs", &b),
            ("a/c.rs", c),
        ];
        assert_eq!(broken(&files), [Rule::Cycle; 2], "{call}");
    }
}

#[test]
fn a_method_below_its_type_is_known_by_a_name_that_no_other_type_has() {
    let called_by = |call: &str, other: &str| {
        let root = "mod a;\nmod d;\nmod e;\nmod f;";
        let d = format!("fn f(held: &crate::e::E) {{ {call} }}\npub struct D;");
        let files = [
            ("lib.rs", root),
            ("a/mod.rs", "mod b;\npub struct Core;"),
            (
                "a/b.rs",
                "use crate::d::D;\nimpl super::Core { pub fn give(&self, d: D) {} }",
            ),
            ("d.rs", &d),
            ("e.rs", "pub struct E;"),
            ("f.rs", other),
        ];
        broken(&files)
    };
    assert_eq!(called_by("held.core.give()", ""), [Rule::Cycle; 2]);
    assert_eq!(called_by("held.core.take()", ""), []);
    assert_eq!(called_by("held.list.pop()", ""), []);
    let other = "struct F;\nimpl F { fn give(&self) {} }";
    assert_eq!(called_by("held.core.give()", other), []);
}

#[test]
fn methods_stand_with_their_type() {
    let a = "pub struct A;\nimpl A { fn f(&self) {} }";
    let lines = said(&[
        TWO,
        ("a.rs", a),
        ("b.rs", "use crate::a::A;\n\nimpl A { fn g(&self) {} }"),
    ]);
    assert_eq!(
        lines,
        ["b.rs:4: an impl for A, which a defines, stands in b"]
    );
    let below = "use super::A;\nimpl A { fn g(&self) {} }";
    let files = [
        ("lib.rs", "mod a;"),
        ("a/mod.rs", "mod c;\npub struct A;"),
        ("a/c.rs", below),
    ];
    assert_eq!(said(&files), [""; 0]);
}

#[test]
fn a_trait_is_implemented_with_itself_or_with_the_type() {
    let impl_in = |a: &str, b: &str, c: &str| {
        let a = format!("pub trait T {{}}\n{a}");
        let b = format!("pub struct B;\n{b}");
        broken(&[
            ("lib.rs", "mod a;\nmod b;\nmod c;"),
            ("a.rs", &a),
            ("b.rs", &b),
            ("c.rs", c),
        ])
    };
    let here = "impl crate::a::T for crate::b::B {}";
    assert_eq!(impl_in(here, "", ""), []);
    assert_eq!(impl_in("", here, ""), []);
    assert_eq!(impl_in("", "", here), [Rule::Impl]);
    assert_eq!(
        impl_in("", "", "impl Drop for crate::b::B {}"),
        [Rule::Impl]
    );
    assert_eq!(impl_in("", "", "struct C;\nimpl crate::a::T for C {}"), []);
    assert_eq!(
        impl_in("", "", "struct C;\nimpl From<C> for crate::b::B {}"),
        []
    );
}

/// A function of so many lines.
fn function(lines: usize) -> String {
    format!("fn f() {{\n{}}}\n", "    g();\n".repeat(lines - 2))
}

#[test]
fn a_function_of_more_than_seventy_lines_is_found_wherever_it_stands() {
    assert_eq!(said(&[("lib.rs", &function(70))]), [""; 0]);
    let long = function(71);
    assert_eq!(
        said(&[("lib.rs", &long)]),
        ["lib.rs:2: the function f has 71 lines"]
    );
    for around in ["impl A", "trait T", "mod a"] {
        let text = format!("{around} {{ /// Words.\n#[inline]\n{long} }}\nstruct A;");
        assert_eq!(broken(&[("lib.rs", &text)]), [Rule::Function], "{around}");
    }
}

#[test]
fn a_plain_table_may_be_long() {
    let arms = |arm: &str| format!("fn f() {{ match it {{\n{} _ => 0 }} }}", arm.repeat(80));
    let table = arms("    1 => \"one\",\n");
    assert_eq!(said(&[("lib.rs", &table)]), [""; 0]);
    let list = format!("fn f() -> Vec<u8> {{ vec![\n{}] }}", "    1,\n".repeat(80));
    assert_eq!(said(&[("lib.rs", &list)]), [""; 0]);
    for arm in [
        "    1 => { g() }\n",
        "    1 if g() => 2,\n",
        "    1 => g(|it| it),\n",
    ] {
        assert_eq!(broken(&[("lib.rs", &arms(arm))]), [Rule::Function], "{arm}");
    }
    let then = format!(
        "{table}\nfn g() {{ h(); match it {{\n{} }} }}",
        "1 => 2,\n".repeat(80)
    );
    assert_eq!(broken(&[("lib.rs", &then)]), [Rule::Function]);
}

#[test]
fn unsafe_is_in_one_room() {
    let code = "//! What is unsafe.\n/// unsafe\nfn f() { g(\"unsafe\"); unsafe { h() } }";
    let modules = ("lib.rs", "#![deny(unsafe_code)]\nmod a;\nmod server;");
    let files = [
        modules,
        ("a.rs", code),
        ("server/mod.rs", "mod sys;"),
        ("server/sys/mod.rs", code),
    ];
    assert_eq!(said(&files), ["a.rs:4: unsafe outside server/sys/"]);
}

#[test]
fn a_macro_with_unsafe_takes_it_along() {
    let files = [
        ("lib.rs", "mod a;\nmod server;"),
        (
            "a.rs",
            "use crate::server::sys::{api, fine};\nfn f() { fine!(); g(api!(x)) }",
        ),
        ("server/mod.rs", "pub mod sys;"),
        (
            "server/sys/mod.rs",
            "macro_rules! api { ($x:ident) => { unsafe { $x() } } }\n\
             macro_rules! fine { () => {} }\npub(crate) use {api, fine};\nfn g() { api!(y) }",
        ),
    ];
    let lines = said(&files);
    assert_eq!(
        lines,
        ["a.rs:3: api!, which holds unsafe, outside server/sys/"]
    );
}

#[test]
fn a_file_says_what_it_is_for() {
    let mut files = sources(&[("lib.rs", "mod a;")]);
    files.insert("a.rs".into(), "/// Words.\nstruct A;".into());
    let breaches = check(&files, &[]).expect("it is Rust");
    assert_eq!(breaches.len(), 1);
    assert_eq!((breaches[0].rule, breaches[0].line), (Rule::Opening, 1));
}

#[test]
fn a_file_of_more_than_four_hundred_lines_is_found() {
    let text = "// 1\n".repeat(399);
    assert_eq!(said(&[("lib.rs", &text)]), [""; 0]);
    let longer = "// 1\n".repeat(400);
    assert_eq!(
        said(&[("lib.rs", &longer)]),
        ["lib.rs:1: a file of 401 lines"]
    );
}

#[test]
fn a_name_is_one_type() {
    let lines = said(&[
        TWO,
        ("a.rs", "pub struct One;\npub enum Two {}"),
        (
            "b.rs",
            "mod tests {\n    type One = u8;\n}\nfn f() { union Two { a: u8 } }",
        ),
    ]);
    assert_eq!(
        lines,
        [
            "a.rs:2: the type One is defined at b.rs:3 too",
            "a.rs:3: the type Two is defined at b.rs:5 too",
            "b.rs:3: the type One is defined at a.rs:2 too",
            "b.rs:5: the type Two is defined at a.rs:3 too",
        ]
    );
    let there = |text| {
        [
            TWO,
            ("a.rs", "pub struct One;\npub trait Two {}"),
            ("b.rs", text),
        ]
    };
    for other in [
        "pub use super::a::One;",
        "use super::a::One as Three;",
        "fn f<One>(it: One) {}",
        "trait Three { type One; }",
        "impl Iterator for Three { type One = u8; }\nstruct Three;",
        "enum Three { One, Two }",
    ] {
        assert_eq!(said(&there(other)), [""; 0], "{other}");
    }
}

#[test]
fn in_the_core_a_name_can_be_several_types() {
    let in_the_core = [
        ("lib.rs", "mod lock;"),
        ("lock/mod.rs", "mod a;\nmod b;"),
        ("lock/a.rs", "pub struct One;"),
        ("lock/b.rs", "pub struct One;"),
    ];
    assert_eq!(said(&in_the_core), [""; 0]);
    let outside = [
        ("lib.rs", "mod lock;\nstruct One;"),
        ("lock/mod.rs", "pub struct One;"),
    ];
    let line = "lib.rs:3: the type One is defined at lock/mod.rs:2 too";
    assert_eq!(said(&outside), [line]);
}

#[test]
fn a_floor_uses_no_floor_above_it() {
    let files = sources(&[
        ("lib.rs", "mod low;\nmod high;"),
        ("low/mod.rs", "mod a;\nmod b;"),
        ("low/a.rs", "use crate::high::High;\npub struct A(High);"),
        ("low/b.rs", "use super::a::A;\npub struct B(A);"),
        ("high.rs", "pub struct High;"),
    ]);
    let said = |floors: &[&[&str]]| {
        let breaches = check(&files, floors).expect("it is Rust");
        breaches.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let upwards = ["low/a.rs:2: low::a uses high, a floor above"];
    assert_eq!(said(&[&["low"], &["high"]]), upwards);
    assert_eq!(said(&[&["high"], &["low"]]), [""; 0]);
    // A part of a room can have a floor of its own; what has none may use anything.
    let upwards = ["low/b.rs:2: low::b uses low::a, a floor above"];
    assert_eq!(said(&[&["low"], &["high"], &["low::a"]]), upwards);
    assert_eq!(said(&[&["high"]]), [""; 0]);
}

#[test]
fn what_is_no_rust_or_not_there_is_an_error() {
    let broken = check(&sources(&[("lib.rs", "fn f() {\nlet x = ;\n}")]), &[]);
    assert!(broken.expect_err("it is no Rust").starts_with("lib.rs:3:"));
    let missing = check(&sources(&[("lib.rs", "mod a;")]), &[]);
    assert_eq!(
        missing.expect_err("it is not there"),
        "there is no a/mod.rs"
    );
}

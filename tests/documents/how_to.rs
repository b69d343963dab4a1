//! The first lock and the pages by task: what they show of `redis-cli` is what a server answers.

use std::fs;
use std::path::{Path, PathBuf};

use super::session::play;
use crate::support::{text, Ask, Server};

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs")
}

#[test]
fn the_first_lock_is_had_as_its_page_shows() {
    assert_eq!(play(&docs().join("start.md"), &Server::start()), 1);
}

#[test]
fn the_pages_by_task_show_what_a_server_answers() {
    let files = fs::read_dir(docs().join("how-to")).expect("a folder");
    let mut played = 0;
    for file in files {
        let path = file.expect("a file").path();
        if path.ends_with("without-module.md") {
            continue;
        }
        played += play(&path, &Server::start());
    }
    assert!(played >= 6, "{played}");
}

#[test]
fn the_page_without_the_module_shows_what_the_library_answers() {
    let server = Server::start_bare(&[]);
    let library = fs::read_to_string(docs().join("../lua-compat/rlock.lua")).expect("the library");
    let loaded = server.raw().ask(&["FUNCTION", "LOAD", &library]);
    assert_eq!(text(loaded), "rlock1");
    let page = docs().join("how-to/without-module.md");
    assert_eq!(play(&page, &server), 1);
}

/// The first page of Python is the example that the client's own tests run.
#[test]
fn the_first_program_is_the_one_that_the_clients_tests_run() {
    let page = fs::read_to_string(docs().join("start.md")).expect("a page");
    let example = docs().join("../clients/python/examples/first.py");
    let example = fs::read_to_string(example).expect("an example");
    assert!(page.contains(&format!("```python\n{example}```")));
}

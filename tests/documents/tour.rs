//! The first page and the tour: what they show of `redis-cli` is what a server answers.

use std::path::Path;

use super::session::play;
use crate::support::Server;

fn played(page: &str) -> usize {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join(page);
    play(&page, &Server::start())
}

#[test]
fn the_first_page_shows_what_a_server_answers() {
    assert_eq!(played("README.md"), 1);
}

#[test]
fn the_tour_shows_what_a_server_answers() {
    assert_eq!(played("docs/tour.md"), 10);
}

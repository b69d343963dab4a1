//! The first page and the tour: what they show of `redis-cli` is what a server answers. Each is
//! one session, from the first of its transcripts to the last.

use std::fs;
use std::path::Path;

use super::transcript::{blocks, Block, Play};
use crate::support::Server;

/// Plays a page, and gives its number of transcripts.
fn play(page: &str) -> usize {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(page);
    let text = fs::read_to_string(path).expect(page);
    let server = Server::start();
    let mut play = Play::on(&server, 3);
    let transcripts = blocks(&text).into_iter().filter(Block::is_transcript);
    let played = transcripts.map(|block| {
        println!("{page}:\n{}", block.text);
        play.play(&block.text);
    });
    played.count()
}

#[test]
fn the_first_page_shows_what_a_server_answers() {
    assert_eq!(play("README.md"), 1);
}

#[test]
fn the_tour_shows_what_a_server_answers() {
    assert_eq!(play("docs/tour.md"), 10);
}

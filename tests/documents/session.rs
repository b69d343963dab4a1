//! A page is one session, from the first of its transcripts to the last.

use std::fs;
use std::path::Path;

use super::transcript::{blocks, Block, Play};
use crate::support::Server;

/// Plays a page, and gives its number of transcripts.
pub fn play(page: &Path, server: &Server) -> usize {
    let text = fs::read_to_string(page).expect("a page");
    let mut play = Play::on(server, 3);
    let transcripts = blocks(&text).into_iter().filter(Block::is_transcript);
    let played = transcripts.map(|block| {
        println!("{}:\n{}", page.display(), block.text);
        play.play(&block.text);
    });
    played.count()
}

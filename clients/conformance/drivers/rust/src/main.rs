//! Speaks JSON lines on standard input and output: see clients/conformance/README.md.

mod acquire;
mod callback;
mod count;
mod open;
mod quorum;
mod sticky;
mod wanted;
mod way;
mod world;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader, stdin};

use crate::world::World;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let world = World::start();
    let mut lines = BufReader::new(stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        match serde_json::from_str::<Value>(&line) {
            Ok(request) => world.serve(request),
            Err(error) => world.say(json!({"error": "argument", "text": error.to_string()})),
        }
    }
    world.close().await;
    std::process::exit(0);
}

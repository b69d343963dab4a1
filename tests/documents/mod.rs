//! What pages show and say, beside a real server.

mod commands;
mod how_to;
mod session;
mod tour;
mod transcript;

//! What pages show and say, beside a real server.

mod commands;
mod tour;
mod transcript;

//! What pages show and say, beside a real server.

mod commands;
mod transcript;

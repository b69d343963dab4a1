//! The suite: every test talks to a real server that has the module loaded.

mod smoke;
mod support;

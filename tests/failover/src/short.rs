//! The short form, for CI: what must hold whatever the machine does.

use std::io;
use std::path::Path;

pub fn run(_dir: &Path) -> io::Result<bool> {
    Ok(true)
}

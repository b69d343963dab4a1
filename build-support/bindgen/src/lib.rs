//! Stands in for bindgen in the build of redis-module, so that a C compiler is
//! all that the build needs. It offers just what the build script of
//! redis-module calls and hands out `bindings.rs`, which the real bindgen made
//! (`make bindings`). Bindings that do not fit the header would be undefined
//! behaviour, so it refuses any header and any version but the ones in
//! `made-from`.

use std::{env, fs, io, path::Path};

pub mod callbacks;

use callbacks::ParseCallbacks;

const BINDINGS: &str = include_str!("../bindings.rs");
/// Name and version of the package, then CRC and length of its header as
/// `cksum` prints them.
const MADE_FROM: &str = include_str!("../made-from");

/// Takes the options of the real one; all are already in the bindings.
#[derive(Default)]
pub struct Builder {
    header: String,
}

impl Builder {
    pub fn header(mut self, path: impl Into<String>) -> Self {
        self.header = path.into();
        self
    }

    pub fn clang_arg(self, _: impl Into<String>) -> Self {
        self
    }

    pub fn allowlist_var(self, _: impl AsRef<str>) -> Self {
        self
    }

    pub fn allowlist_type(self, _: impl AsRef<str>) -> Self {
        self
    }

    pub fn blocklist_type(self, _: impl AsRef<str>) -> Self {
        self
    }

    pub fn parse_callbacks(self, _: Box<dyn ParseCallbacks>) -> Self {
        self
    }

    pub fn size_t_is_usize(self, _: bool) -> Self {
        self
    }

    pub fn generate(self) -> Result<Bindings, String> {
        let header = fs::read(&self.header).map_err(|error| format!("{}: {error}", self.header))?;
        let asked = format!(
            "{} {} {} {}",
            env::var("CARGO_PKG_NAME").unwrap_or_default(),
            env::var("CARGO_PKG_VERSION").unwrap_or_default(),
            cksum(&header),
            header.len()
        );
        if asked == MADE_FROM.trim_end() {
            Ok(Bindings)
        } else {
            Err(format!(
                "the checked-in bindings were made from `{}`, but this is `{asked}`: \
                 run `make bindings` to make them anew",
                MADE_FROM.trim_end()
            ))
        }
    }
}

#[derive(Debug)]
pub struct Bindings;

impl Bindings {
    pub fn write_to_file(&self, path: impl AsRef<Path>) -> io::Result<()> {
        fs::write(path, BINDINGS)
    }
}

/// The CRC of POSIX `cksum`.
fn cksum(bytes: &[u8]) -> u32 {
    let length = bytes.len().to_le_bytes();
    let significant = length
        .iter()
        .rposition(|&b| b != 0)
        .map_or(0, |last| last + 1);
    let crc = bytes
        .iter()
        .chain(&length[..significant])
        .fold(0u32, |crc, &byte| {
            (0..8).fold(crc ^ (u32::from(byte) << 24), |crc, _| {
                (crc << 1) ^ ((crc >> 31) * 0x04c1_1db7)
            })
        });
    !crc
}

//! A power cut: what a server has written and not brought to the disk is lost.

use std::collections::HashMap;
use std::env;
use std::fs::{self, File};
use std::io::{self, Error};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

const NOTES: &str = "synced";

/// Has all servers from now on note what they bring to the disk. `false`: there is no C
/// compiler. To be called before there are threads.
pub fn prepare(dir: &Path) -> io::Result<bool> {
    let shim = dir.join("synced.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("synced.c");
    let made = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .args([&shim, &source])
        .arg("-ldl")
        .status();
    if !made.is_ok_and(|status| status.success()) {
        return Ok(false);
    }
    let program = env::var("RLOCK_SERVER").unwrap_or("redis-server".to_owned());
    let run = dir.join("server");
    let text = format!(
        "#!/bin/sh\nexport RLOCK_SYNCED=\"$PWD/{NOTES}\" LD_PRELOAD='{}'\nexec '{program}' \"$@\"\n",
        shim.display()
    );
    fs::write(&run, text)?;
    fs::set_permissions(&run, fs::Permissions::from_mode(0o755))?;
    env::set_var("RLOCK_SERVER", &run);
    Ok(true)
}

/// Takes away the end of the AOF that was not on the disk: so many bytes.
pub fn cut(dir: &Path) -> io::Result<u64> {
    let notes = fs::read(dir.join(NOTES))?;
    let mut synced: HashMap<u64, u64> = HashMap::new();
    for note in notes.chunks_exact(16) {
        let number = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_ne_bytes);
        let (inode, length) = (number(&note[..8]), number(&note[8..]));
        let most = synced.entry(inode).or_default();
        *most = length.max(*most);
    }
    let path = last(&dir.join("appendonlydir"))?;
    let file = File::options().write(true).open(&path)?;
    let about = file.metadata()?;
    let kept = synced.get(&about.ino()).copied().unwrap_or(0);
    file.set_len(kept.min(about.len()))?;
    Ok(about.len().saturating_sub(kept))
}

/// The file that is written to now.
fn last(folder: &Path) -> io::Result<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let mut parts = name.rsplit('.');
        if let (Some("aof"), Some("incr"), Some(number)) =
            (parts.next(), parts.next(), parts.next())
        {
            all.push((number.parse::<u64>().unwrap_or(0), path.clone()));
        }
    }
    let newest = all.into_iter().max();
    newest
        .map(|(_, path)| path)
        .ok_or(Error::other("no AOF to cut"))
}

//! A small disk for a server, which can be filled: a tmpfs, mounted where nobody but us and
//! our children sees it, so that it is gone when we are, however we end.

use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, Error, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::null;

const BALLAST: &str = "ballast";

pub struct Disk {
    dir: PathBuf,
}

impl Disk {
    pub fn mount(dir: &Path, mb: u64) -> io::Result<Self> {
        fs::create_dir_all(dir)?;
        let size = format!("size={mb}m,mode=0755");
        mount(Some("tmpfs"), dir, 0, Some(&size))?;
        let dir = dir.to_owned();
        Ok(Self { dir })
    }

    /// Until not a byte goes on it any more.
    pub fn fill(&self) -> io::Result<()> {
        let mut file = File::create(self.dir.join(BALLAST))?;
        let chunk = vec![0x55; 1 << 20];
        let mut size = chunk.len();
        while size > 0 {
            match file.write(&chunk[..size]) {
                Ok(_) => (),
                Err(error) if error.raw_os_error() == Some(libc::ENOSPC) => size /= 2,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    pub fn free(&self) -> io::Result<()> {
        fs::remove_file(self.dir.join(BALLAST))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if let Ok(dir) = CString::new(self.dir.as_os_str().as_bytes()) {
            // SAFETY: the path lives through the call.
            unsafe { libc::umount2(dir.as_ptr(), libc::MNT_DETACH) };
        }
    }
}

/// Mounts of ours are from now on nobody else's. To be called before there are threads.
pub fn keep_to_ourselves(dir: &Path) -> io::Result<()> {
    unshare(libc::CLONE_NEWNS).or_else(|_| {
        // Who is not root may be so in a world of its own.
        let ids = ids();
        unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS)?;
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("{0} {0} 1", ids.0))?;
        fs::write("/proc/self/gid_map", format!("{0} {0} 1", ids.1))
    })?;
    mount(None, Path::new("/"), libc::MS_REC | libc::MS_PRIVATE, None)?;
    let probe = dir.join("disk-probe");
    Disk::mount(&probe, 1)?.fill()?;
    fs::remove_dir(&probe)
}

fn ids() -> (u32, u32) {
    // SAFETY: these cannot fail, and touch no memory of ours.
    unsafe { (libc::getuid(), libc::getgid()) }
}

fn unshare(flags: i32) -> io::Result<()> {
    // SAFETY: no memory of ours is touched.
    match unsafe { libc::unshare(flags) } {
        0 => Ok(()),
        _ => Err(Error::last_os_error()),
    }
}

fn mount(kind: Option<&str>, dir: &Path, flags: u64, data: Option<&str>) -> io::Result<()> {
    let kind = kind.map(CString::new).transpose()?;
    let data = data.map(CString::new).transpose()?;
    let dir = CString::new(dir.as_os_str().as_bytes())?;
    let pointer = |text: &Option<CString>| text.as_ref().map_or(null(), |one| one.as_ptr());
    let (kind, data) = (pointer(&kind), pointer(&data));
    // SAFETY: the texts live through the call.
    match unsafe { libc::mount(kind, dir.as_ptr(), kind, flags, data.cast()) } {
        0 => Ok(()),
        _ => Err(Error::last_os_error()),
    }
}

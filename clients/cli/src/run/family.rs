//! All processes that come from this one, also those that have left its group or its session.
//!
//! A process that adopts is the parent of whoever below it has lost its own, in the place of
//! init. So nobody below leaves the tree that /proc shows, and who has no children at all is
//! alone.

use std::collections::HashMap;
use std::fs::{read, read_dir};
use std::io::Error;
use std::sync::OnceLock;
use std::thread::sleep;
use std::time::Duration;

use super::signals;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct One {
    pub id: i32,
    pub group: i32,
}

/// Children from before, of whoever has become this process by exec: they are nobody's here.
static STRANGERS: OnceLock<Vec<i32>> = OnceLock::new();

/// To be said by a process for itself, before it has children of its own, who do not inherit it.
pub fn adopt() -> Result<(), Error> {
    let Ok(before) = living() else {
        return Err(Error::other("it needs /proc, to find what it has to end"));
    };
    _ = STRANGERS.set(before.iter().map(|one| one.id).collect());
    // SAFETY: takes numbers.
    match unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) } {
        0 => Ok(()),
        _ => Err(Error::last_os_error()),
    }
}

/// Who comes from this process and has not ended. Who is forked or orphaned meanwhile may be
/// missing: `reap` is what shows that nobody is left.
pub fn living() -> Result<Vec<One>, Error> {
    let mut children: HashMap<i32, Vec<One>> = HashMap::new();
    for entry in read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(id) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // Names need not be UTF-8.
        let stat = read(format!("/proc/{id}/stat")).unwrap_or_default();
        if let Some((parent, one)) = parse(id, &String::from_utf8_lossy(&stat)) {
            children.entry(parent).or_default().push(one);
        }
    }
    let strangers = STRANGERS.get().map_or(&[][..], Vec::as_slice);
    let mut found = Vec::new();
    let mut parents = vec![i32::try_from(std::process::id()).unwrap_or(0)];
    while let Some(parent) = parents.pop() {
        let its = children.remove(&parent).unwrap_or_default();
        for one in its.into_iter().filter(|one| !strangers.contains(&one.id)) {
            parents.push(one.id);
            found.push(one);
        }
    }
    Ok(found)
}

/// So many fields stand between the group and the number of threads (proc_pid_stat(5)).
const THREADS: usize = 14;

/// Of a line of /proc/ID/stat the parent, the group and whether it lives. The name before them
/// may have spaces and brackets in it.
fn parse(id: i32, stat: &str) -> Option<(i32, One)> {
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut words = rest.split(' ');
    let state = words.next()?;
    let parent = words.next()?.parse().ok()?;
    let group = words.next()?.parse().ok()?;
    // Its first thread may have ended, while others go on.
    let threads: u32 = words.nth(THREADS)?.parse().ok()?;
    let has_ended = state == "X" || (state == "Z" && threads <= 1);
    (!has_ended).then_some((parent, One { id, group }))
}

/// Takes the status of each child that has ended. True: there is no other, but for strangers.
pub fn reap() -> bool {
    loop {
        // SAFETY: no status is asked for.
        match unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) } {
            0 if STRANGERS.get().is_none_or(Vec::is_empty) => return false,
            0 => return living().is_ok_and(|left| left.is_empty()),
            -1 => return Error::last_os_error().raw_os_error() == Some(libc::ECHILD),
            _ => {}
        }
    }
}

/// The same, but for one child, whose status is kept.
pub fn reap_but(kept: i32) {
    loop {
        // SAFETY: zeros are a value of it, and it may be written.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        let ends = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        // SAFETY: as above; then it is zero, or what waitid has filled in for a child.
        let id = unsafe {
            libc::waitid(libc::P_ALL, 0, &mut info, ends);
            info.si_pid()
        };
        if id == 0 || id == kept {
            return;
        }
        // SAFETY: a child that has ended.
        unsafe { libc::waitpid(id, std::ptr::null_mut(), 0) };
    }
}

/// To a group at once, and to each of the others.
pub fn send(group: i32, signal: i32) {
    signals::send(group, signal);
    send_but(group, signal);
}

/// To each who is not of this group.
pub fn send_but(group: i32, signal: i32) {
    for one in living().unwrap_or_default() {
        if one.group != group {
            signals::send_one(one.id, signal);
        }
    }
}

/// KILL to all, and to those who were forked meanwhile.
pub fn kill() {
    for _ in 0..10 {
        let left = living().unwrap_or_default();
        if left.is_empty() {
            return;
        }
        for one in left {
            signals::send_one(one.id, libc::SIGKILL);
        }
        sleep(Duration::from_millis(2));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_be_anything() {
        let one = One { id: 7, group: 5 };
        let line = |begin: &str, threads: u32| {
            format!("{begin} 3 5 5 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 {threads} 0 7272213")
        };
        assert_eq!(parse(7, &line("7 (a) b (c) S", 1)), Some((3, one)));
        assert_eq!(parse(7, &line("7 (sh) Z", 1)), None);
        // Its first thread has ended, and the others go on.
        let one = One { id: 7, group: 5 };
        assert_eq!(parse(7, &line("7 (sh) Z", 2)), Some((3, one)));
        assert_eq!(parse(7, ""), None);
    }

    #[test]
    fn a_child_is_found_and_a_zombie_is_not() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let id = i32::try_from(child.id()).unwrap();
        let is_there = || living().unwrap().iter().any(|one| one.id == id);
        assert!(is_there());
        child.kill().unwrap();
        // It is not waited for: it stays a zombie.
        let end = std::time::Instant::now() + Duration::from_secs(10);
        while is_there() && std::time::Instant::now() < end {
            sleep(Duration::from_millis(5));
        }
        assert!(!is_there());
        child.wait().unwrap();
    }
}

//! What is said of the server's backend: to the program, and once in its log.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::backend::Backend;

use super::actor::Actor;

const ALL: [Backend; 3] = [Backend::Module, Backend::Functions, Backend::Script];

/// Once in a process, and when it changes.
static SAID: AtomicU8 = AtomicU8::new(0);

/// From its number, which is 0 when it is not known.
pub(super) fn backend(number: u8) -> Option<Backend> {
    ALL.get(usize::from(number).checked_sub(1)?).copied()
}

impl Actor {
    /// In a cluster that of the node that has least.
    pub fn say_backend(&mut self) {
        let Some(least) = self.nodes.iter().filter_map(|node| node.backend).max() else {
            return;
        };
        let number = ALL.iter().take_while(|&&one| one <= least).count();
        let number = u8::try_from(number).unwrap_or(0);
        self.backend.store(number, Ordering::Relaxed);
        if SAID.swap(number, Ordering::Relaxed) == number || least == Backend::Module {
            return;
        }
        let runtime = self.runtime.clone();
        // The logger is the program's: it keeps nobody waiting here.
        self.after.push(Box::new(move || {
            runtime.spawn_blocking(move || {
                log::warn!(
                    "rlock: the server has no rlock module, so locks go by {least}: without order \
                     and instant hand-over of waits, the server's watchdog, notice of a loss, and \
                     detection of deadlocks"
                );
            });
        }));
    }
}

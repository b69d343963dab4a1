//! What is walked of connections that are silent, or want to know that somebody waits.

use super::plan::{ALL, J, K, R};
use super::universe::Universe;
use crate::lock::tests::family::model::Mode;

/// Sessions that say that they are alive, and are silent: some wait by BLOCK, some by QUEUE.
pub fn silent() -> Universe {
    let mut all = Universe::new("sessions that are silent", &[K]);
    all.asks(&[0, 1], &[K], Mode::Plain, true);
    all.queues(&[2, 3], &[K], Mode::Plain, true);
    all.gives_back(&ALL, K, Mode::Plain);
    all.say_that_they_are_alive(&ALL);
    all.all_are_the_same();
    all
}

/// Readers and writers that are.
pub fn silent_readers() -> Universe {
    let mut all = Universe::new("readers and writers that are silent", &[R]);
    for mode in [Mode::Read, Mode::Write] {
        all.queues(&[0, 2, 3], &[R], mode, true);
        all.gives_back(&[0, 2, 3], R, mode);
    }
    all.say_that_they_are_alive(&[0, 2, 3]);
    all.two_are_the_same();
    all
}

/// Who holds one of two locks wants to know that somebody waits for it, or for both.
pub fn wanted() -> Universe {
    let mut all = Universe::new("holders who want to know", &[J, K]);
    all.wants_to_know(&[0, 2, 3], &[K], Mode::Plain);
    all.asks(&[0, 2, 3], &[J, K], Mode::Plain, false);
    all.gives_back(&[0, 2, 3], K, Mode::Plain);
    all.gives_back(&[0, 2, 3], J, Mode::Plain);
    all.two_are_the_same();
    all
}

/// Readers and writers do.
pub fn wanted_readers() -> Universe {
    let mut all = Universe::new("readers and writers who want to know", &[R]);
    for mode in [Mode::Read, Mode::Write] {
        all.wants_to_know(&[0, 2, 3], &[R], mode);
        all.gives_back(&[0, 2, 3], R, mode);
    }
    all.two_are_the_same();
    all
}

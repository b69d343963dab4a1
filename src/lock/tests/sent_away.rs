//! Very many who wait for one lock are refused at once: their cost, and that it is done in parts.

use super::crowds::{grows_no_faster, names, spent};
use super::request::by;
use super::shell::{key, Shell};
use crate::lock::{Cause, Slot};

#[test]
fn all_who_wait_for_a_lock_whose_slot_goes_are_sent_away() {
    grows_no_faster(|count| {
        let names = names(4 * count);
        let mut s = Shell::new();
        s.get(by("other"));
        for name in &names {
            s.wait(by(name).queue(0).from(1_000_001).tag(name));
        }
        s.ks.slot = Slot::Others;
        // Some at a time, also where it is only found out who they are.
        let mut heard = s.clone();
        heard.piece_us = 10_000;
        heard.changed(&key(0, "k"), Cause::Removed);
        heard.tick();
        heard.tick();
        let told = heard.told.len();
        assert!((1..100).contains(&told), "{told} at once");
        let began = spent();
        s.changed(&key(0, "k"), Cause::Removed);
        s.read_notes();
        while s.core.queues.queued() > 0 {
            s.tick();
        }
        spent() - began
    });
}

#[test]
fn all_who_want_more_permits_than_there_are_now_are_refused() {
    grows_no_faster(|count| {
        let names = names(4 * count);
        let limit = |s: &mut Shell, n| s.step(|d| crate::lock::limit(d, 0, b"k", n));
        let mut s = Shell::new();
        s.get(by("other").permits(2, 2));
        for name in &names {
            s.wait(by(name).permits(2, 2).queue(0).from(1_000_001).tag(name));
        }
        let fewest = s.wait(by("few").permits(1, 2).queue(0).from(1_000_001).tag("few"));
        let began = spent();
        s.piece_us = 10_000;
        assert_eq!(limit(&mut s, 1), Ok(2));
        s.tick();
        let told = s.told.len();
        assert!((1..=300).contains(&told), "{told} at once");
        s.piece_us = 0;
        while s.core.queues.any_sent_away() {
            s.tick();
        }
        assert!(s.core.queues.get(fewest).is_some());
        assert_eq!(s.core.queues.queued(), 1);
        spent() - began
    });
}

//! Nothing is left, and drivers end as they should.

use crate::finding::Findings;
use crate::past::Past;

pub fn check(past: &Past, found: &mut Findings) {
    for left in &past.left {
        found.checked("left");
        if !left.what.is_empty() {
            let text = format!("after {}: {}", left.when, left.what.join(", "));
            found.add("left", text, &[], past.round.at);
        }
    }
    for life in &past.lives {
        found.checked("ends");
        if let Some(wrong) = &life.wrong {
            let name = &past.round.drivers[life.driver];
            let text = format!("driver {} ({name}): {wrong}", life.driver);
            found.add("ends", text, &[], life.to);
        }
    }
}

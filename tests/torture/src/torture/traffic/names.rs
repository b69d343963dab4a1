//! What locks there are. Their names say what is done with them.

use fastrand::Rng;

/// Few keys for one thing each, so that much can be said of them:
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// plain locks, each owner used once;
    Plain,
    /// read/write locks, each owner used once;
    Shared,
    /// plain locks, one by one and by MACQUIRE;
    Many,
    /// all of it, by few owners who hold several at a time, and by hand;
    Mixed,
    /// permits, each owner used once;
    Permits,
    /// such as sessions keep for long, and seldom one of the others asks for;
    Long,
    /// very many, seldom contended.
    Wide,
}

impl Class {
    pub fn draw(rng: &mut Rng) -> Self {
        match rng.u32(0..100) {
            0..30 => Self::Plain,
            30..52 => Self::Shared,
            52..64 => Self::Many,
            64..75 => Self::Mixed,
            75..90 => Self::Permits,
            90 => Self::Long,
            _ => Self::Wide,
        }
    }

    /// The class of a key.
    pub fn of(key: &str) -> Self {
        match key[tag_of(key).len()..].chars().next() {
            Some('p') => Self::Plain,
            Some('r') => Self::Shared,
            Some('m') => Self::Many,
            Some('x') => Self::Mixed,
            Some('t' | 'u') => Self::Permits,
            Some('l') => Self::Long,
            _ => Self::Wide,
        }
    }

    /// A key of this class, with its hash tag; and whether it is a read/write lock.
    pub fn key(self, tag: &str, rng: &mut Rng) -> (String, bool) {
        let (letter, number, shared) = match self {
            Self::Plain => ("p", rng.u32(0..3), false),
            Self::Shared => ("r", rng.u32(0..3), true),
            Self::Many => ("m", rng.u32(0..4), false),
            Self::Mixed => {
                let number = rng.u32(0..4);
                ("x", number, number > 1)
            }
            // Of one of them the limit is changed meanwhile.
            Self::Permits => match rng.u32(0..5) {
                3.. => ("u", 0, false),
                number => ("t", number, false),
            },
            Self::Long => {
                let number = rng.u32(0..5);
                ("l", number, number > 3)
            }
            Self::Wide => {
                let number = rng.u32(0..300);
                ("n", number, number % 2 == 1)
            }
        };
        (format!("{tag}{letter}{number}"), shared)
    }
}

/// The keys that are watched, and that others lay hands on.
pub fn hot(tag: &str) -> Vec<String> {
    let all = [
        ("p", 3),
        ("r", 3),
        ("m", 4),
        ("x", 4),
        ("t", 3),
        ("u", 1),
        ("l", 5),
    ];
    let names = all
        .iter()
        .flat_map(|(letter, count)| (0..*count).map(move |n| format!("{tag}{letter}{n}")));
    names.collect()
}

/// How many permits there are of a lock of the class that has some.
pub fn limit(key: &str) -> Option<u32> {
    match &key[tag_of(key).len()..] {
        "t0" => Some(2),
        "t1" => Some(3),
        "t2" => Some(5),
        "u0" => Some(4),
        _ => None,
    }
}

/// One for each slot that is used: outside a cluster a single, empty one.
pub fn tags(cluster: bool) -> &'static [&'static str] {
    match cluster {
        true => &["{A}", "{B}"],
        false => &[""],
    }
}

pub fn tag_of(key: &str) -> &str {
    match key.find('}') {
        Some(end) => &key[..=end],
        None => "",
    }
}

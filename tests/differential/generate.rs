//! Random steps: rlock's commands with good and bad arguments, commands of others,
//! time.

use super::foreign;
use super::pair::Setting;
use super::scene::{Scene, Tried, SHORT};
use super::step::{Step, Words};
use crate::support::Random;

/// Short enough to be told, long enough for a lock to see much.
const STEPS: usize = 60;

/// The steps that belong to a seed.
pub fn sequence(seed: u64) -> (Setting, Vec<Step>) {
    let mut random = Random::new(seed);
    let setting = Setting {
        resp3: random.one_in(3),
        server_expires: random.one_in(2),
    };
    let mut scene = Scene::new(&mut random);
    // In some nobody meddles.
    let meddling = *random.of(&[0, 0, 1, 2, 4]);
    let mut steps = Vec::new();
    while steps.len() < STEPS {
        let step = one(&mut random, &mut scene, meddling);
        let ends_soon = step.words().iter().any(|word| word == SHORT.as_bytes());
        steps.push(step);
        if ends_soon {
            steps.push(Step::Pass {
                look: random.one_in(2),
            });
        }
    }
    (setting, steps)
}

#[derive(Clone, Copy)]
enum Sort {
    Lock,
    Garbled,
    Refused,
    Foreign,
}

fn one(random: &mut Random, scene: &mut Scene, meddling: usize) -> Step {
    use Sort::*;
    let sorts = [
        (24, Lock),
        (4, Garbled),
        (1, Refused),
        (meddling * 3, Foreign),
    ];
    match random.weighed(&sorts) {
        Lock => Step::Lock(command(random, scene)),
        Garbled => Step::Lock(garbled(random, scene)),
        Refused => Step::Refused(refused(random, scene)),
        Foreign => foreign::step(random, scene),
    }
}

/// A command with good arguments.
fn command(random: &mut Random, scene: &mut Scene) -> Words {
    let mut names = vec![
        (30, "ACQUIRE"),
        (18, "RELEASE"),
        (9, "RENEW"),
        (9, "MACQUIRE"),
        (6, "MRELEASE"),
        (3, "MRENEW"),
        (3, "FORCE"),
        (2, "INFO"),
    ];
    if scene.has_permits() {
        names.push((4, "LIMIT"));
    }
    let name = *random.weighed(&names);
    let takes = name.ends_with("ACQUIRE");
    let many = name.starts_with('M');
    let mode = *random.of(scene.modes);
    let mut tried = Tried {
        locks: match many {
            true => scene.some_locks(random),
            false => vec![scene.lock(random)],
        },
        owner: scene.owner(random),
        mode: mode.filter(|_| !many),
    };
    // Most of those who release or renew have acquired before.
    if !takes && !random.one_in(4) {
        tried = scene
            .tried(random, many, name.ends_with("RELEASE"))
            .unwrap_or(tried);
    }
    if takes {
        scene.remember(&tried);
    }
    let mut words: Words = vec![format!("RLOCK.{name}").into_bytes()];
    if random.one_in(20) {
        words[0].make_ascii_lowercase();
    }
    if many {
        words.push(tried.locks.len().to_string().into_bytes());
    }
    words.extend(tried.locks);
    if name == "FORCE" && random.one_in(2) {
        words.extend([b"IFOWNER".to_vec(), tried.owner]);
        return words;
    }
    if name == "LIMIT" {
        words.push((1 + random.below(4)).to_string().into_bytes());
        return words;
    }
    if name == "INFO" && random.one_in(3) {
        let most = (1 + random.below(3)).to_string();
        words.extend([b"COUNT".to_vec(), most.into_bytes()]);
    }
    if matches!(name, "FORCE" | "INFO") {
        return words;
    }
    words.push(tried.owner);
    if !name.ends_with("RELEASE") {
        words.push(scene.lease(random));
    }
    let extra = match name {
        "RELEASE" => *random.of(&[None, None, None, Some("ALL"), Some("IFHELD")]),
        "ACQUIRE" | "MACQUIRE" if random.one_in(3) => Some("ONCE"),
        // Far below all tokens: the counter is that of the hold then.
        "RENEW" if random.one_in(8) => Some("FENCE 9007199254740990"),
        "RENEW" if random.one_in(4) => Some("FENCE 7"),
        "RENEW" if random.one_in(3) => Some("TOKEN"),
        _ => None,
    };
    let mut options = match tried.mode {
        Some("PERMITS") => permits(random, scene, name, extra == Some("ALL")),
        mode => mode.into_iter().map(str::to_owned).collect(),
    };
    options.extend(extra.map(str::to_owned));
    if random.one_in(2) {
        options.reverse();
    }
    let options = options.iter().flat_map(|option| option.split(' '));
    for option in options {
        words.push(match random.one_in(5) {
            true => option.to_lowercase().into_bytes(),
            false => option.into(),
        });
    }
    words
}

/// What a command says of permits: each with its number.
fn permits(random: &mut Random, scene: &Scene, name: &str, all: bool) -> Vec<String> {
    let count = 1 + usize::from(random.one_in(3));
    match name {
        "ACQUIRE" => {
            let limit = match random.one_in(16) {
                true => 2 + random.below(3),
                false => scene.limit,
            };
            let count = (count > 1 || random.one_in(4)).then(|| format!("PERMITS {count}"));
            [format!("LIMIT {limit}")]
                .into_iter()
                .chain(count)
                .collect()
        }
        "RELEASE" if !all && random.one_in(2) => vec![format!("PERMITS {count}")],
        _ => vec!["PERMITS".to_owned()],
    }
}

/// What an argument may be and should not, most of the time.
const NASTY: &[&[u8]] = &[
    b"",
    b"1e3",
    b"0x10",
    b" 5",
    b"5 ",
    b"+5",
    b"-1",
    b"01",
    b"0",
    b"00",
    b"-0",
    b"5.0",
    b"nan",
    b"inf",
    b"5\x00",
    b"1025",
    b"9007199254740991",
    b"9007199254740992",
    b"9223372036854775807",
    b"9223372036854775808",
    b"99999999999999999999999",
    b"mode",
    b"x:write",
    b":write",
    b"MODE",
    b"READ",
    b"write",
    b"ONCE",
    b"all",
    b"ifheld",
    b"IFOWNER",
    b"EXCLUSIVE",
    b"COUNT",
    b"FENCE",
    b"TOKEN",
    b"LIMIT",
    b"PERMITS",
    b"2",
    b"1000000",
    b"1000001",
    b"a'b\\c\n\xff",
];

/// A command with an argument too many, too few, or one that is wrong.
fn garbled(random: &mut Random, scene: &mut Scene) -> Words {
    let mut words = command(random, scene);
    for _ in 0..=random.below(2) {
        let at = 1 + random.below(words.len());
        let nasty = match random.below(24) {
            0 => vec![b'x'; 512],
            1 => vec![b'x'; 513],
            2 => vec![b'\xff'; 200],
            _ => random.of(NASTY).to_vec(),
        };
        match random.below(5) {
            0 if words.len() > 1 => {
                words.pop();
            }
            1 => words.insert(at, nasty),
            2 => {
                let again = words[at.min(words.len() - 1)].clone();
                words.insert(at, again);
            }
            _ => match words.get_mut(at) {
                Some(word) => *word = nasty,
                None => words.push(nasty),
            },
        }
    }
    words
}

/// A good command, with one of the things that only the module can do.
fn refused(random: &mut Random, scene: &Scene) -> Words {
    let lock = scene.lock(random);
    let owner = scene.owner(random);
    let text = |line: &str| -> Words { line.split(' ').map(|word| word.into()).collect() };
    let [name, tail] = *random.of(&[
        ["ACQUIRE", "OWNER 100000 BLOCK 0"],
        ["ACQUIRE", "OWNER 100000 READ block 1000"],
        ["ACQUIRE", "OWNER 100000 WATCHDOG"],
        ["ACQUIRE", "OWNER 100000 ONCE BLOCK 10 WATCHDOG WRITE"],
        ["ACQUIRE", "OWNER 100000 LIMIT 2 BLOCK 0"],
        ["ACQUIRE", "OWNER 100000 WATCHDOG PERMITS 2 LIMIT 2"],
        ["ACQUIRE", "* 100000"],
        ["RELEASE", "*"],
        ["RELEASE", "* READ ALL"],
        ["RELEASE", "OWNER ALL IFTOKEN 1795272565176233"],
        ["RELEASE", "OWNER PERMITS 2 IFTOKEN 1795272565176233"],
        ["FORCE", "IFTOKEN 1795272565176233"],
        ["FORCE", "IFOWNER *"],
        ["RENEW", "* 100000"],
        ["RENEW", "OWNER 100000 watchdog"],
        ["RENEW", "OWNER 100000 READ WATCHDOG"],
        ["RENEW", "OWNER 100000 PERMITS WATCHDOG"],
        ["MACQUIRE", "OWNER 100000 BLOCK 0"],
        ["MACQUIRE", "OWNER 100000 ONCE WATCHDOG"],
        ["MACQUIRE", "* 100000"],
        ["MRELEASE", "*"],
        ["MRENEW", "* 100000"],
    ]);
    let mut words = text(&format!("RLOCK.{name}"));
    if name.starts_with('M') {
        words.push(b"1".to_vec());
    }
    words.push(lock);
    let tail = text(tail).into_iter().map(|word| match word.as_slice() {
        b"OWNER" => owner.clone(),
        _ => word,
    });
    words.extend(tail);
    words
}

//! Names come and go, and are found where they are.

use super::*;

fn name(number: usize) -> Bytes {
    Bytes::from(format!("name {number}").as_bytes())
}

/// At most so many from this name on, or behind it.
fn from<'a, T>(names: &'a Names<T>, begin: Bound<&[u8]>, most: usize) -> Vec<(&'a Bytes, &'a T)> {
    let first = names.first_part(begin);
    page(
        (first, begin),
        most,
        |part| names.of_part(part),
        |(name, _)| name,
    )
}

/// All names, in pages of so many.
fn pages(names: &Names<usize>, most: usize) -> Vec<Bytes> {
    let mut all: Vec<Bytes> = Vec::new();
    loop {
        let begin = all
            .last()
            .map_or(Bound::Unbounded, |last| Bound::Excluded(&last[..]));
        let page = from(names, begin, most);
        assert!(page.len() <= most);
        if page.is_empty() {
            return all;
        }
        let page: Vec<Bytes> = page.iter().map(|(name, _)| (*name).clone()).collect();
        all.extend(page);
    }
}

#[test]
fn pages_go_through_all_names_in_one_order() {
    const MANY: usize = 3000;
    let mut names = Names::default();
    assert_eq!(pages(&names, 10), [] as [Bytes; 0]);
    for number in 0..MANY {
        *names.get_or_insert(&name(number), || 0) = number;
    }
    let whole = from(&names, Bound::Unbounded, usize::MAX);
    let whole: Vec<Bytes> = whole.iter().map(|(name, _)| (*name).clone()).collect();
    let mut sorted = whole.clone();
    sorted.sort();
    sorted.dedup();
    assert_eq!(sorted.len(), MANY);
    for most in [1, 7, 1000] {
        assert_eq!(pages(&names, most), whole, "{most}");
    }
    for (at, name) in whole.iter().enumerate() {
        let from = from(&names, Bound::Included(name), 2);
        let from: Vec<_> = from.iter().map(|(name, _)| (*name).clone()).collect();
        assert_eq!(from, whole[at..MANY.min(at + 2)]);
    }
    // From the place of one that has gone.
    names.remove_if(&whole[1], |_| true);
    assert_eq!(from(&names, Bound::Excluded(&whole[1]), 1)[0].0, &whole[2]);
    assert_eq!(from(&names, Bound::Included(&whole[1]), 1)[0].0, &whole[2]);
}

/// Whatever is added and removed beside it, each name is found where it is.
#[test]
fn what_is_remembered_of_a_name_is_true() {
    let mut names = Names::default();
    let mut known = std::collections::HashMap::new();
    let mut draw = 1_usize;
    for step in 0..20_000 {
        draw = draw.wrapping_mul(25_214_903_917).wrapping_add(11);
        // Few enough to be added and removed often, and more than are remembered.
        let (what, number) = (draw >> 20 & 3, draw >> 24 & 63);
        let name = name(number);
        match what {
            0 => *names.get_or_insert(&name, || 0) = *known.entry(number).or_insert(step),
            1 => names.remove_if(&name, |known| *known % 2 == 0),
            2 => names.get_mut(&name).into_iter().for_each(|it| *it = step),
            _ => {}
        }
        match (what, known.get_mut(&number)) {
            (1, Some(step)) if *step % 2 == 0 => drop(known.remove(&number)),
            (2, Some(it)) => *it = step,
            _ => {}
        }
        for number in [number, number ^ 1, draw >> 32 & 63] {
            let found = names.get(&self::name(number)).map(|(_, it)| *it);
            assert_eq!(found, known.get(&number).copied(), "{step}");
        }
    }
    assert!(known.len() > 10);
}

#[test]
fn room_is_given_back() {
    const MANY: usize = 100_000;
    let mut names = Names::default();
    let room = |names: &Names<usize>| {
        let parts = names.parts.iter().chain([&names.last]);
        parts.map(IndexMap::capacity).sum::<usize>()
    };
    for number in 0..MANY {
        names.get_or_insert(&name(number), || number);
    }
    assert!(room(&names) >= MANY);
    for number in 1..MANY {
        names.remove_if(&name(number), |_| true);
    }
    assert!(room(&names) <= PARTS * ROOM, "{}", room(&names));
    assert!(!names.is_empty());
    names.remove_if(&name(0), |_| true);
    assert!(names.is_empty());
    assert_eq!(room(&names), 0);
    // One that comes and goes finds room.
    names.get_or_insert(&name(0), || 0);
    names.remove_if(&name(0), |_| true);
    assert!(room(&names) > 0);
}

#[test]
fn each_table_has_an_order_of_its_own() {
    let (one, other) = (Names::<usize>::default(), Names::<usize>::default());
    assert_ne!(one.order(), other.order());
    assert_eq!(one.order(), one.clone().order());
}

/// On the way from the end some are removed and others added.
#[test]
fn none_that_stays_is_passed_over() {
    const MANY: usize = 5000;
    let mut names = Names::default();
    for number in 0..MANY {
        *names.get_or_insert(&name(number), || 0) = number;
    }
    let mut place = Place::END;
    let mut seen = vec![false; MANY];
    let mut steps = 0;
    while let Some((_, number)) = names.before(&mut place) {
        let number = *number;
        if number < MANY {
            seen[number] = true;
        }
        steps += 1;
        if number % 3 == 0 {
            names.remove_if(&name(number), |_| true);
        }
        names.remove_if(&name(steps * 7 % MANY), |number| *number % 2 == 0);
        names.get_or_insert(&name(MANY + steps), || MANY);
    }
    for number in (0..MANY).filter(|number| number % 2 == 1) {
        assert!(seen[number], "{number}");
        assert_eq!(names.get(&name(number)).is_some(), number % 3 != 0);
    }
}

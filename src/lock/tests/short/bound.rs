//! Holds that are bound to connections, and waits by message.

use super::{is_short, shell};
use crate::lock::tests::shell::{answers, by, Shell};
use crate::lock::{self, ClientId, Ended, Mode, Notice, Outcome, Reason, Refusal};

#[test]
fn a_hold_that_is_bound_goes_by_it_too() {
    let mut s = shell();
    let request = by("a").watched().tag("t").from(1);
    assert!(is_short(&mut s, |s| s.get(request)).0);
    assert!(s.core.is_watching() && !s.core.sessions.is_empty());
    assert_eq!(s.core.watchdogs.count(), 1);
    s.core.check();
    let tag = "t".as_bytes().into();
    let again = s.acquire(by("b").on("l").tag("t").from(1));
    assert_eq!(again, Err(Refusal::TagInUse { tag }));
    s.told.clear();
    // Its own connection knows, another's is told.
    let by_another = release_by(&mut s, "a", 2);
    assert_eq!(by_another, (true, Ok(0)));
    assert!(
        matches!(&s.told[..], [Notice::Lost(loss), Notice::Wake { .. }]
        if loss.reason == Reason::Released && loss.address.is_some())
    );
    assert!(s.core.sessions.is_empty() && !s.core.is_watching());
    s.core.check();

    s.get(request);
    s.told.clear();
    assert_eq!(release_by(&mut s, "a", 1), (true, Ok(0)));
    assert!(matches!(s.told[..], [Notice::Wake { .. }]));
    assert!(s.core.sessions.is_empty() && s.core.is_idle());
}

fn release_by(s: &mut Shell, owner: &str, client: u64) -> (bool, Result<i64, Refusal>) {
    let ended = Ended {
        db: 0,
        owner: owner.as_bytes(),
        client: ClientId::new(client),
        mode: Mode::Exclusive,
        count: Some(1),
        only: None,
    };
    is_short(s, |s| s.asks(|with| lock::release(with, b"k", &ended)))
}

#[test]
fn who_waits_by_messages_is_handed_the_lock_by_it_if_it_hears() {
    let mut s = shell();
    s.get(by("a").from(1));
    let request = by("b").watched().queue(0).tag("t").from(2);
    let b = s.wait(request);
    s.told.clear();
    assert_eq!(release_by(&mut s, "a", 1), (true, Ok(0)));
    let is_told = |told: &Notice| matches!(told, Notice::Answer { waiter, to: Some(_), outcome: Outcome::Granted(_), .. } if *waiter == b);
    assert!(s.told.iter().any(is_told), "{:?}", s.told);
    assert_eq!(s.core.watchdogs.count(), 1);
    s.core.check();
    s.core.confirm(b);
    // It would be renewed now.
    s.pass_and_tick(400);
    assert_eq!(s.held(), Some(("b".to_owned(), 1, Some(1000))));

    let (deaf, next) = (s.wait(by("c").queue(0).tag("u").from(3)), s.wait(by("d")));
    s.ks.deaf.insert(ClientId::new(3).unwrap());
    s.told.clear();
    assert!(
        !release_by(&mut s, "b", 2).0,
        "it is passed over by the long way"
    );
    let granted = answers(&s.told);
    assert!(matches!(granted[..], [(id, Outcome::Granted(_))] if id == next && id != deaf));
    s.core.check();
}

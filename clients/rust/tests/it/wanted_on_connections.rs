//! What a session asks for to know whether its holds are wanted, and when: on each connection, and of
//! older modules.

use rlock_client::{Locks, Reason};

use crate::proxy::Proxy;
use crate::server::{Server, client, ms, s, soon, until};
use crate::wanted::{World, has};

/// As an older module has no such word.
const OLD: &str = "WANTEB";

#[tokio::test]
async fn a_renewal_that_is_under_way_stays() {
    let world = World::start().await;
    for plain in [true, false] {
        let acquire = world.locks.acquire("jobs").lease(s(20));
        let acquire = if plain { acquire.plain() } else { acquire };
        let hold = soon(acquire).await.unwrap();
        let asked = world.said("WANTED");
        world.proxy.freeze(true);
        let long = s(600);
        let (renewed, ()) = tokio::join!(hold.renew(long), async {
            assert!(!hold.is_wanted());
            world.proxy.freeze(false);
        });
        renewed.unwrap();
        world.asked("WANTED", asked + 1).await;
        world.is_read().await;
        assert!(world.server.ask::<i64>("PTTL jobs") > 300_000);
        hold.release().await.unwrap();
    }
}

#[tokio::test]
async fn the_next_connection_is_asked_too() {
    let world = World::start().await;
    let hold = world.plain(60).await;
    let wanted = tokio::spawn(hold.wanted());
    world.asked("WANTED", 1).await;
    world.is_read().await;
    world.proxy.freeze(true);
    world.proxy.close();
    let waits = world.waits().await;
    assert!(!hold.is_wanted() && !wanted.is_finished());
    world.proxy.freeze(false);
    assert!(soon(wanted).await.unwrap());
    hold.release().await.unwrap();
    has(waits).await;
}

#[tokio::test]
async fn a_first_use_without_a_connection_waits_for_nothing() {
    let world = World::start().await;
    let hold = world.plain(60).await;
    world.proxy.freeze(true);
    world.proxy.close();
    assert!(!hold.is_wanted());
    let wanted = tokio::spawn(hold.wanted());
    world.proxy.freeze(false);
    world.is_read().await;
    assert!(!wanted.is_finished());
    let waits = world.waits().await;
    assert!(soon(wanted).await.unwrap());
    hold.release().await.unwrap();
    has(waits).await;
}

#[tokio::test]
async fn what_ends_with_its_connection_is_not_wanted_any_more() {
    let world = World::start().await;
    let hold = world.hold().await;
    let wanted = hold.wanted();
    world.proxy.close();
    assert!(!soon(wanted).await);
    assert_eq!(soon(hold.lost()).await, Reason::Connection);
    assert!(!hold.is_wanted());
}

/// Two that somebody waits for are not, and nothing else is different.
async fn is_never_wanted(world: &World, word: &str) {
    // For the server renews none whose user may not.
    let watched = world.locks.acquire("jobs").lease(s(120));
    let plain = world.locks.acquire("plain").plain().lease(s(120));
    let (watched, plain) = (soon(watched).await.unwrap(), soon(plain).await.unwrap());
    let all = [tokio::spawn(watched.wanted()), tokio::spawn(plain.wanted())];
    let waits = [
        world.waits().await,
        world.waits_for("plain", |ask| ask).await,
    ];
    world.is_read().await;
    let third = soon(world.locks.acquire("third")).await.unwrap();
    for hold in [&watched, &plain, &third] {
        assert!(!hold.is_wanted() && !hold.is_lost());
    }
    // Nor is it asked again.
    tokio::time::sleep(ms(1_500)).await;
    world.is_read().await;
    assert!(all.iter().all(|wanted| !wanted.is_finished()));
    assert!((1..=2).contains(&world.said(word)));
    watched.release().await.unwrap();
    plain.release().await.unwrap();
    for one in waits {
        has(one).await;
    }
}

#[tokio::test]
async fn an_older_module_is_not_asked_again() {
    let world = World::start().await;
    world.proxy.unknown("WANTED", OLD);
    is_never_wanted(&world, OLD).await;
}

#[tokio::test]
async fn who_may_not_ask_is_not_wanted() {
    let world = World::start().await;
    let taken = "ACL SETUSER default -rlock.renew";
    world.server.ask::<String>(taken);
    is_never_wanted(&world, "WANTED").await;
}

#[tokio::test]
async fn what_an_older_module_says_nothing_of_is_regained() {
    let world = World::start().await;
    let hold = world.plain(60).await;
    let wanted = hold.wanted();
    world.asked("WANTED", 1).await;
    world.is_read().await;
    world.proxy.unknown("WANTED", OLD);
    world.proxy.close();
    world.asked(OLD, 1).await;
    // The second comes behind what was asked after the refusal.
    world.is_read().await;
    world.is_read().await;
    world.server.ask::<i64>("RLOCK.FORCE jobs");
    assert_eq!(soon(hold.lost()).await, Reason::Forced);
    assert!(!soon(wanted).await);
    assert_eq!(world.said(OLD), 1);
}

#[tokio::test]
async fn what_the_server_does_not_do_now_is_asked_for_again() {
    let world = World::start().await;
    let hold = world.hold().await;
    let needs = |n: u32| format!("CONFIG SET min-replicas-to-write {n}");
    world.server.ask::<String>(&needs(1));
    let wanted = hold.wanted();
    world.asked("WANTED", 2).await;
    world.server.ask::<String>(&needs(0));
    let waits = world.waits().await;
    assert!(soon(wanted).await);
    hold.release().await.unwrap();
    has(waits).await;
}

#[tokio::test]
async fn without_the_module_nothing_is_said() {
    let server = Server::bare(&[]);
    let proxy = Proxy::before(server.port).await;
    let locks = Locks::new(client(proxy.port));
    let hold = soon(locks.acquire("jobs").lease(s(9))).await.unwrap();
    assert!(!hold.is_wanted());
    until(|| proxy.asked().contains("rlock1_renew")).await;
    // The library has it in its text.
    assert!(proxy.asked().lines().all(|word| word != "WANTED"));
    assert_eq!(hold.release().await, Ok(()));
}

/// More words may follow the token.
#[tokio::test]
async fn a_grant_may_say_that_it_is_wanted() {
    let world = World::start().await;
    let once = ("$4\r\nONCE\r\n", "$6\r\nWANTED\r\n");
    world.proxy.unknown(once.0, once.1);
    world.server.ask::<i64>("RLOCK.ACQUIRE jobs other 60000");
    let first = tokio::spawn(world.locks.acquire("jobs").wait_forever().into_future());
    world.server.waiting("jobs", 1).await;
    let second = world.others.acquire("jobs").wait_forever();
    let second = tokio::spawn(second.into_future());
    world.server.waiting("jobs", 2).await;
    world.server.ask::<i64>("RLOCK.RELEASE jobs other");
    let hold = soon(first).await.unwrap().unwrap();
    assert!(hold.token() > 0);
    hold.release().await.unwrap();
    has(second).await;
}

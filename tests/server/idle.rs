//! A server that has nothing to do runs no command of the module's: none is seen in MONITOR, and
//! none is counted.

use std::time::Duration;

use crate::support::{eventually, now_ms, pass, Ask, Server, Session, Waiter};

const CHANNEL: &str = "redisson_lock__channel:{job}";

/// Longer than whatever is looked at now and then is left alone.
const LONG: Duration = Duration::from_millis(1500);

/// The commands that have run since the last CONFIG RESETSTAT, but for that one.
#[track_caller]
fn commands(control: &mut impl Ask) -> Vec<String> {
    let stats = control.text("INFO commandstats");
    let names = stats
        .lines()
        .filter_map(|line| line.strip_prefix("cmdstat_"));
    let others = names.filter(|name| !name.starts_with("config"));
    others.map(str::to_owned).collect()
}

#[track_caller]
fn runs_no_command(server: &Server, when: &str) {
    let mut control = server.raw();
    // What came before may have to be told yet.
    eventually(&format!("nothing more comes of it {when}"), || {
        control.ok("CONFIG RESETSTAT");
        pass(now_ms() + 300);
        commands(&mut control).is_empty()
    });
    let mut monitor = server.raw();
    monitor.ok("MONITOR");
    control.ask("PING");
    let seen = format!("{:?}", monitor.read());
    assert!(seen.contains("PING"), "{seen}");
    control.ok("CONFIG RESETSTAT");
    let seen = monitor.read_within(LONG);
    assert_eq!((seen, commands(&mut control)), (None, Vec::new()), "{when}");
}

#[test]
fn without_any_lock() {
    runs_no_command(&Server::start(), "at the start");
}

#[test]
fn with_locks_that_are_held_and_waited_for_and_after_them() {
    let server = Server::start();
    let mut client = server.raw();
    let mut session = Session::new(&server);
    client.take("plain", "a");
    client.take_read("read", "a");
    client.take_write("write", "a");
    client.take_permits("permits", "a", "LIMIT 4");
    session.hold("told", "a", "", "t1");
    session.hold("watched", "a", "WATCHDOG", "t2");
    session.hold("watched-read", "a", "READ WATCHDOG", "t3");
    session.hold("watched-permits", "a", "LIMIT 4 PERMITS 2 WATCHDOG", "t4");
    runs_no_command(&server, "while they are held");
    session.queue("plain", "b", "t5");
    let mut waiter = Waiter::new(&server, "watched", "b");
    runs_no_command(&server, "while somebody waits");
    client.release("plain", "a");
    session.granted("t5");
    for (key, words) in [
        ("plain", "b"),
        ("read", "a READ"),
        ("write", "a WRITE"),
        ("told", "a"),
        ("watched", "a"),
        ("watched-read", "a READ"),
    ] {
        let left = client.int(&format!("RLOCK.RELEASE {key} {words}"));
        assert_eq!(left, 0, "{key}");
    }
    client.give_back("permits", "a", 1);
    client.give_back("watched-permits", "a", 2);
    waiter.token();
    client.release("watched", "b");
    client.nothing_left("plain");
    runs_no_command(&server, "after they were released");
}

#[test]
fn with_somebody_who_waits_as_redisson_does_and_after_that() {
    let server = Server::start();
    let mut client = server.raw();
    client.take("job", "a");
    let mut subscriber = server.raw();
    subscriber.ask(&["SUBSCRIBE", CHANNEL]);
    runs_no_command(&server, "while somebody listens");
    client.release("job", "a");
    let message = format!("{:?}", subscriber.read());
    assert!(message.contains("message"), "{message}");
    runs_no_command(&server, "when it was woken");
    subscriber.close();
    for _ in 0..2 {
        // One that nobody has taken in its turn was released for the next.
        eventually("it can be taken", || {
            !client.refused("RLOCK.ACQUIRE job a 60000")
        });
        client.release("job", "a");
        runs_no_command(&server, "when it has gone");
    }
}

#[test]
fn what_is_released_has_somebody_looked_for_only_where_there_are_channels() {
    let server = Server::start();
    let mut control = server.raw();
    let mut pairs = |compat: &str| {
        control.ok(&format!("CONFIG SET rlock.redisson-compat {compat}"));
        control.ok("CONFIG RESETSTAT");
        for _ in 0..10 {
            control.take("k", "a");
            control.release("k", "a");
            pass(now_ms() + 50);
        }
        let all = commands(&mut control);
        all.iter().any(|name| name.starts_with("pubsub"))
    };
    assert!(!pairs("yes"), "without channels");
    let mut subscriber = server.raw();
    subscriber.ask("SUBSCRIBE redisson_x");
    assert!(!pairs("no"), "without compatibility");
    assert!(pairs("yes"));
}

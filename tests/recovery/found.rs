//! When the recovery scan runs: after a load, a promotion, and when the module is loaded.

use super::{expires_nothing, loaded_after, plain, presumed, soon, written};
use crate::support::{eventually, now_ms, wait_for, Ask, Listener, RawClient, Server, Waiter};

/// Far more than it takes. The server itself expires nothing here: without rlock these keys
/// would not end before somebody looks at them.
const IN_TIME_MS: i64 = 5000;

/// Locks that nobody asked this server for.
fn locks(until: i64) -> Vec<String> {
    let other = "SELECT 3".to_owned();
    let back = "SELECT 0".to_owned();
    [
        plain("quiet", until),
        plain("waited", until),
        written("rw", until),
        vec![other],
        plain("far", until),
        vec![back],
    ]
    .concat()
}

/// They end when they are to: who waits has it, and who subscribes is told.
#[track_caller]
fn end_in_time(server: &Server, until: i64) {
    let mut control = server.raw();
    presumed(&mut control, 4);
    expires_nothing(&mut control);
    let mut told = Subscriber::new(server, "redisson_lock__channel:{quiet}");
    let mut shared = Subscriber::new(server, "redisson_rwlock:{rw}");
    let mut elsewhere = Subscriber::new(server, "redisson_lock__channel:{far}");
    let mut events = Listener::keyspace(server, 0);
    let mut waiter = Waiter::new(server, "waited", "b");
    assert_eq!(control.counter("rlock_recovery_presumed"), 3);
    assert!(now_ms() < until, "this machine is too slow for the test");
    waiter.token();
    let granted = now_ms();
    assert_eq!(told.message(), "0");
    assert_eq!(shared.message(), "1");
    assert_eq!(elsewhere.message(), "0");
    let all = now_ms();
    for (what, at) in [("granted", granted), ("told", all)] {
        let late = at - until;
        assert!((0..IN_TIME_MS).contains(&late), "{what} {late} ms late");
    }
    presumed(&mut control, 0);
    let events = events.events();
    let expired = |key: &str| {
        let ours = ("rlock.expired".to_owned(), key.to_owned());
        let its = ("expired".to_owned(), key.to_owned());
        (events.contains(&its), events.contains(&ours))
    };
    // The one that was touched is told of.
    assert!(expired("waited").1, "{events:?}");
    assert_eq!(expired("quiet"), (true, false), "{events:?}");
    assert_eq!(expired("rw"), (true, false), "{events:?}");
    assert_eq!(control.counter("rlock_expired"), 1);
    server.unharmed();
}

/// One who waits as Redisson does.
struct Subscriber(RawClient);

impl Subscriber {
    #[track_caller]
    fn new(server: &Server, channel: &str) -> Self {
        let mut client = server.raw();
        client.ask(&["SUBSCRIBE", channel]);
        Self(client)
    }

    #[track_caller]
    fn message(&mut self) -> String {
        let parts = self.0.read();
        let parts: Vec<String> = redis::from_redis_value(parts).expect("a message");
        parts[2].clone()
    }
}

#[test]
fn when_the_module_is_loaded_into_a_running_server() {
    let until = soon();
    let server = loaded_after(&[], &locks(until));
    end_in_time(&server, until);
}

#[test]
fn after_a_restart_from_an_rdb() {
    let mut server = Server::start();
    let mut control = server.raw();
    let until = soon();
    control.succeed(&locks(until));
    control.ok("SAVE");
    server.kill();
    server.start_again();
    end_in_time(&server, until);
}

#[test]
fn after_a_restart_from_an_aof() {
    let mut server = Server::start_with(&["--appendonly", "yes"]);
    let mut control = server.raw();
    let until = soon();
    control.succeed(&locks(until));
    server.restart();
    end_in_time(&server, until);
}

#[test]
fn after_debug_reload() {
    let server = Server::start();
    let mut control = server.raw();
    let until = soon();
    control.succeed(&locks(until));
    control.ok("DEBUG RELOAD");
    end_in_time(&server, until);
}

/// A replica does nothing about its locks before it is master.
#[test]
fn after_a_promotion() {
    let master = Server::start();
    let replica = Server::start_replica_of(&master);
    let (mut control, mut copy) = (master.raw(), replica.raw());
    let until = soon();
    control.succeed(&locks(until));
    assert_eq!(control.int("WAIT 1 10000"), 1);
    presumed(&mut copy, 0);
    copy.ok("REPLICAOF NO ONE");
    end_in_time(&replica, until);
    // A server that is no master any more presumes nothing.
    control.succeed(&locks(super::late()));
    control.ok("DEBUG RELOAD");
    presumed(&mut control, 4);
    control.ok(&format!("REPLICAOF 127.0.0.1 {}", replica.port()));
    presumed(&mut control, 0);
}

/// A full sync is a load too, and none of a replica's business.
#[test]
fn not_after_a_full_sync() {
    let master = Server::start();
    master.raw().succeed(&locks(super::late()));
    let replica = Server::start_replica_of(&master);
    let mut copy = replica.raw();
    wait_for("the sync is through", || {
        (copy.int("DBSIZE") == 3).then_some(())
    });
    assert_eq!(copy.counter("rlock_recovery_running"), 0);
    assert_eq!(copy.counter("rlock_recovery_presumed"), 0);
}

/// While writes are paused nothing is looked at, and then the walk goes on.
#[test]
fn a_pause_makes_it_wait() {
    let server = Server::start();
    let mut control = server.raw();
    control.succeed(&locks(super::late()));
    control.succeed(&["CLIENT PAUSE 100000 WRITE", "DEBUG RELOAD"]);
    let mut turns = 0;
    eventually("a while goes by", || {
        turns += 1;
        turns > 30
    });
    assert_eq!(control.counter("rlock_recovery_running"), 1);
    assert_eq!(control.counter("rlock_recovery_presumed"), 0);
    control.ok("CLIENT UNPAUSE");
    presumed(&mut control, 4);
}

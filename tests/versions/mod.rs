//! From the last release to this one, and back, while locks are held, waited for and watched.
//! `make test-upgrade` builds the last release; without it these tests are skipped.

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use redis::{PushKind, Value};

use crate::support::{
    cluster_of, code, eventually, id, module, poll, same_on_both, Ask, Bound, RawClient, Server,
    Session, Waiter, BOUND, LONG,
};

/// From one module to the other, in both directions; none where there is no last release.
fn ways() -> Vec<(PathBuf, PathBuf)> {
    let Some(last) = env::var_os("RLOCK_LAST_MODULE").map(PathBuf::from) else {
        println!("skipped: RLOCK_LAST_MODULE does not say where the last release is");
        return Vec::new();
    };
    vec![(last.clone(), module()), (module(), last)]
}

/// Locks of each kind; the token of the plain one.
#[track_caller]
fn hold_some(client: &mut RawClient) -> i64 {
    client.take_read("{k}doc", "ann");
    client.take_read("{k}doc", "bob");
    client.take_write("{k}book", "ann");
    client.token(&format!(
        "RLOCK.ACQUIRE {{k}}gpu ann {LONG} LIMIT 4 PERMITS 3"
    ));
    client.token(&format!("RLOCK.MACQUIRE 2 {{k}}x {{k}}y ann {LONG}"));
    client.take("{k}nested", "ann");
    client.take("{k}nested", "ann");
    client.take("{k}held", "ann")
}

/// The same locks are held, and can be nested, refused, renewed and released.
#[track_caller]
fn are_held(client: &mut RawClient, token: i64) {
    for (key, held) in [
        ("{k}doc", "ann read 1, bob read 1"),
        ("{k}book", "ann write 1"),
        ("{k}gpu", "ann permits 3"),
        ("{k}x", "ann exclusive 1"),
        ("{k}nested", "ann exclusive 2"),
        ("{k}held", "ann exclusive 1"),
    ] {
        assert_eq!(client.held_by(key), held, "{key}");
    }
    for refused in [
        "{k}held eve 1000",
        "{k}doc eve 1000 WRITE",
        "{k}gpu eve 1000 LIMIT 4 PERMITS 2",
    ] {
        assert_eq!(
            client.ask(&format!("RLOCK.ACQUIRE {refused}")),
            Value::Nil,
            "{refused}"
        );
    }
    assert_eq!(client.int(&format!("RLOCK.RENEW {{k}}held ann {LONG}")), 1);
    assert_eq!(client.int("RLOCK.RELEASE {k}nested ann"), 1);
    assert_eq!(client.int("RLOCK.MRELEASE 2 {k}x {k}y ann"), 2);
    client.release("{k}held", "ann");
    assert!(client.take("{k}held", "bob") > token, "tokens go on rising");
}

#[test]
fn a_restart_with_the_other_version_keeps_what_is_held() {
    for (from, to) in ways() {
        let mut server = Server::start_of(from, &["--appendonly", "yes"]);
        let token = hold_some(&mut server.raw());
        server.restart_with(to);
        are_held(&mut server.raw(), token);
    }
}

/// What happens to who is connected to a master while it is replaced.
struct Connected {
    blocked: Waiter,
    queued: Session,
    bound: Bound,
}

impl Connected {
    #[track_caller]
    fn to(master: &Server) -> Self {
        let blocked = Waiter::new(master, "{k}held", "blocked");
        let bound = Bound::new(master, "{k}watched", "bound");
        let mut queued = Session::new(master);
        queued.queue("{k}held", "queued", "t1");
        Self {
            blocked,
            queued,
            bound,
        }
    }

    /// The waiters are told to ask elsewhere, and the watched hold's connection is closed. On the
    /// new master the hold lives on by its lease, and its owner has it again by RENEW.
    #[track_caller]
    fn are_sent_on(mut self, new: &Server) {
        let reply = self.blocked.client.read();
        assert!(
            ["UNBLOCKED", "MOVED"].contains(&code(&reply).as_str()),
            "{reply:?}"
        );
        // In a cluster the server itself takes the session's channel away.
        let is_told = poll(BOUND, || {
            let (kind, words) = self.queued.client.push_within(BOUND)?;
            let words = words
                .into_iter()
                .filter_map(|word| redis::from_redis_value(word).ok());
            let words: Vec<String> = words.collect();
            let is_over = words.iter().any(|word| word.starts_with("error t1 "));
            (is_over || kind == PushKind::SUnsubscribe).then_some(())
        });
        assert!(is_told.is_some(), "that the wait is over");
        assert!(self.bound.client.is_closed());
        let mut again = new.raw();
        assert_eq!(again.int("RLOCK.RENEW {k}watched bound 1000 WATCHDOG"), 1);
        let mut other = new.raw();
        assert_eq!(other.ask("RLOCK.ACQUIRE {k}watched eve 1000"), Value::Nil);
        again.close();
        other.goes_free("{k}watched");
    }
}

#[test]
fn a_pair_changes_its_version_by_a_failover_and_no_lock_is_lost() {
    for (from, to) in ways() {
        let options = ["--appendonly", "yes"];
        let mut old = Server::start_of(from.clone(), &options);
        let port = old.port().to_string();
        let following = [&options[..], &["--replicaof", "127.0.0.1", &port]].concat();
        let mut new = Server::start_of(from, &following);
        new.is_in_sync();
        let token = hold_some(&mut old.raw());
        let connected = Connected::to(&old);

        new.restart_with(to.clone());
        new.is_in_sync();
        old.counts_its_replica();
        same_on_both(&mut old.raw(), &mut new.raw(), "the replica's upgrade");
        old.raw().ok(&format!(
            "FAILOVER TO 127.0.0.1 {} TIMEOUT 30000",
            new.port()
        ));
        eventually("the roles are changed", || {
            let role = |server: &Server| server.info_field("replication", "role");
            role(&new).as_deref() == Some("master") && role(&old).as_deref() == Some("slave")
        });
        connected.are_sent_on(&new);
        are_held(&mut new.raw(), token);

        // It started as a master, and is told whom to follow, as in its redis.conf.
        old.restart_with(to);
        old.raw().ok(&format!("REPLICAOF 127.0.0.1 {}", new.port()));
        old.is_in_sync();
        same_on_both(&mut new.raw(), &mut old.raw(), "the other's upgrade");
        old.unharmed();
        new.unharmed();
    }
}

#[test]
fn a_cluster_changes_its_version_node_by_node_and_no_lock_is_lost() {
    for (from, to) in ways() {
        let [mut old, mut new] = cluster_of(|options| Server::start_of(from.clone(), options));
        let token = hold_some(&mut old.raw());
        let connected = Connected::to(&old);

        new.restart_with(to.clone());
        new.is_in_sync();
        old.counts_its_replica();
        // Else it does not hear that the master votes for it.
        let name = id(&mut new.raw());
        eventually("the master has reached it again", || {
            let nodes = old.raw().text("CLUSTER NODES");
            let mut lines = nodes.lines();
            lines.any(|line| line.starts_with(&name) && line.ends_with(" connected"))
        });
        let is_master = || {
            let role = new.info_field("replication", "role");
            (role.as_deref() == Some("master")).then_some(())
        };
        // Retried it begins anew.
        let tries = || {
            new.raw().ask("CLUSTER FAILOVER");
            poll(Duration::from_secs(10), is_master)
        };
        assert!(poll(2 * BOUND, tries).is_some(), "the failover is over");
        connected.are_sent_on(&new);
        are_held(&mut new.raw(), token);

        old.restart_with(to);
        old.is_in_sync();
        old.unharmed();
        new.unharmed();
    }
}

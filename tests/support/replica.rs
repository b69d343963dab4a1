//! A master and its replica.

use redis::Value;

use super::{eventually, Ask, RawClient, Server};

impl Server {
    /// Waits until it counts its replica as online, which is up to a second after the
    /// replica is in sync.
    #[track_caller]
    pub fn counts_its_replica(&self) {
        eventually("the master counts its replica", || {
            let line = self.info_field("replication", "slave0");
            line.is_some_and(|line| line.contains("state=online"))
        });
    }

    /// It lives, tripped over nothing, and refused no write of the module's.
    #[track_caller]
    pub fn unharmed(&self) {
        self.alive();
        let log = self.log();
        for harm in [
            "ASSERTION FAILED",
            "BUG REPORT",
            "the server refused a write",
        ] {
            assert!(!log.contains(harm), "{log}");
        }
    }
}

/// A master, and its replica, which it counts.
pub fn pair(options: &[&str]) -> (Server, Server) {
    let server = Server::start_with(options);
    let replica = Server::start_replica_of(&server);
    server.counts_its_replica();
    // Its cron has counted it too.
    let needs = options.contains(&"--min-replicas-to-write");
    eventually("it may write", || {
        !needs || server.raw().ask("SET probe 1") == Value::Okay
    });
    (server, replica)
}

/// Neither is harmed, and the replica has the lock as the master has it.
#[track_caller]
pub fn unharmed(server: &Server, replica: &Server, key: &str) {
    server.unharmed();
    replica.unharmed();
    let (mut control, mut copy) = (server.raw(), replica.raw());
    eventually("the replica has the same", || {
        copy.hash(key) == control.hash(key)
    });
}

/// Waits until the replica has all keys that the master has, with their deadlines.
#[track_caller]
pub fn same_on_both(master: &mut RawClient, replica: &mut RawClient, after: &str) {
    // Of the master anew each time: a lease may end meanwhile.
    eventually(&format!("the replica is the same after {after}"), || {
        replica.everything() == master.everything()
    });
}

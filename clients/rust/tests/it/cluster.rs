//! Three nodes with a third of the slots each: `b` is on the first, `c` and `a` on the others.

use redis::{Client, Value};
use rlock_client::{Error, Locks};

use crate::ports::free_port;
use crate::server::{Server, client, reason, s, soon, until};

pub struct Cluster(pub [Server; 3]);

impl Cluster {
    async fn start() -> Self {
        Self::of(Server::with).await
    }

    /// With the module, or without.
    pub async fn of(start: fn(&[&str]) -> Server) -> Self {
        let node = || start(&["--cluster-enabled", "yes"]);
        let nodes = [node(), node(), node()];
        for (n, (node, slots)) in nodes
            .iter()
            .zip(["0 5460", "5461 10922", "10923 16383"])
            .enumerate()
        {
            node.ask::<()>(&format!("CLUSTER ADDSLOTSRANGE {slots}"));
            node.ask::<()>(&format!("CLUSTER SET-CONFIG-EPOCH {}", n + 1));
            nodes[0].ask::<()>(&format!("CLUSTER MEET 127.0.0.1 {}", node.port));
        }
        let is_whole = |node: &Server| {
            let info: String = node.ask("CLUSTER INFO");
            info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3")
        };
        until(|| nodes.iter().all(is_whole)).await;
        Self(nodes)
    }

    /// Found by the last node, after one that is not there.
    pub fn locks(&self) -> Locks {
        let nobody: Client = client(free_port());
        Locks::cluster([nobody, self.0[2].client()])
    }

    /// As resharding does it.
    pub fn move_slot(&self, key: &str, from: usize, to: usize) {
        let nodes = &self.0;
        let slot: u16 = nodes[0].ask(&format!("CLUSTER KEYSLOT {key}"));
        let id = |node: usize| nodes[node].ask::<String>("CLUSTER MYID");
        let (source, target) = (id(from), id(to));
        nodes[to].ask::<()>(&format!("CLUSTER SETSLOT {slot} IMPORTING {source}"));
        nodes[from].ask::<()>(&format!("CLUSTER SETSLOT {slot} MIGRATING {target}"));
        let keys: Vec<String> = nodes[from].ask(&format!("CLUSTER GETKEYSINSLOT {slot} 100"));
        for key in keys {
            let port = nodes[to].port;
            nodes[from].ask::<Value>(&format!("MIGRATE 127.0.0.1 {port} {key} 0 5000"));
        }
        for node in [to, from, 3 - from - to] {
            nodes[node].ask::<()>(&format!("CLUSTER SETSLOT {slot} NODE {target}"));
        }
    }
}

#[tokio::test]
async fn keys_on_every_node() {
    let cluster = Cluster::start().await;
    let locks = cluster.locks();
    let mut holds = Vec::new();
    for (key, node) in [("b", 0), ("c", 1), ("a", 2)] {
        holds.push(soon(locks.acquire(key)).await.unwrap());
        assert!(!cluster.0[node].is_free(key));
    }
    assert!(matches!(
        locks.acquire("a").await.unwrap_err(),
        Error::NotAcquired { .. }
    ));
    for hold in holds {
        hold.release().await.unwrap();
    }
    let error = locks.acquire_many(["a", "b"]).await.unwrap_err();
    assert!(matches!(error, Error::Argument(_)), "{error:?}");
    let both = locks.acquire_many(["{b}1", "{b}2"]).await.unwrap();
    both.release().await.unwrap();
    cluster.0[0].free("{b}1").await;
    locks.close().await;
}

#[tokio::test]
async fn a_slot_that_moves() {
    let cluster = Cluster::start().await;
    let (locks, theirs) = (cluster.locks(), cluster.locks());
    let held = soon(theirs.acquire("b")).await.unwrap();
    let waits = tokio::spawn(locks.acquire("b").wait(s(30)).into_future());
    cluster.0[0].waiting("b", 1).await;
    cluster.move_slot("b", 0, 1);
    // What was held is lost and released at the new node, where the wait goes on.
    assert_eq!(reason(&held).await, "moved");
    let hold = soon(waits).await.unwrap().unwrap();
    assert!(!cluster.0[1].is_free("b"));
    assert!(matches!(held.release().await, Err(Error::Lost(_))));
    hold.release().await.unwrap();
    cluster.0[1].free("b").await;
}

#[tokio::test]
async fn a_node_that_is_killed_loses_its_own_holds_only() {
    let mut cluster = Cluster::start().await;
    let locks = cluster.locks();
    let lost = soon(locks.acquire("a")).await.unwrap();
    let stays = soon(locks.acquire("b")).await.unwrap();
    cluster.0[2].kill();
    assert_eq!(reason(&lost).await, "connection");
    assert!(!stays.is_lost());
    stays.renew(s(20)).await.unwrap();
    cluster.0[2].restart();
    let again = soon(locks.acquire("a").wait(s(20))).await.unwrap();
    again.release().await.unwrap();
    stays.release().await.unwrap();
}

#[tokio::test]
async fn nobody_there() {
    let locks = Locks::cluster_with_timeout([client(free_port())], s(1));
    let error = soon(locks.acquire("a")).await.unwrap_err();
    assert!(matches!(error, Error::Connection(_)), "{error:?}");
}

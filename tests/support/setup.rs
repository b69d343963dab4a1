//! What tests set up beyond a server: users, a cluster, a listener that waits.

use redis::Value;

use crate::support::ask::Ask;
use crate::support::{eventually, Listener, RawClient, Server};

/// A connection of a user with these rules.
#[track_caller]
pub fn user(server: &Server, rules: &str) -> RawClient {
    let mut admin = server.raw();
    admin.ok(&format!("ACL SETUSER worker reset on >secret {rules}"));
    let mut client = server.raw();
    client.ok("AUTH worker secret");
    client
}

/// Whether the server refuses the request for want of permission.
#[track_caller]
pub fn denied(client: &mut RawClient, request: &str) -> bool {
    match client.ask(request) {
        error @ Value::ServerError(_) => {
            let line = crate::support::ask::error_line(error);
            assert!(line.starts_with("NOPERM "), "{request}: {line}");
            true
        }
        _ => false,
    }
}

/// A cluster of one node that has all slots.
#[track_caller]
pub fn cluster() -> Server {
    let server = Server::start_with(&["--cluster-enabled", "yes"]);
    let mut client = server.raw();
    client.ok("CLUSTER ADDSLOTSRANGE 0 16383");
    eventually("the cluster is well", || {
        client.text("CLUSTER INFO").contains("cluster_state:ok")
    });
    server
}

/// Collects until the message came that ends what is expected.
#[track_caller]
pub fn until(listener: &mut Listener, last: &(String, String)) -> Vec<(String, String)> {
    let mut seen = Vec::new();
    eventually(&last.0, || {
        seen.extend(listener.messages());
        seen.last() == Some(last)
    });
    seen
}

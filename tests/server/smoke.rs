//! The module loads.

use std::collections::HashMap;

use redis::Value;

use crate::support::Server;

#[test]
fn the_server_lists_the_module() {
    let server = Server::start();
    let modules: Vec<HashMap<String, Value>> = redis::cmd("MODULE")
        .arg("LIST")
        .query(&mut server.connect())
        .unwrap();
    let rlock = Value::BulkString(b"rlock".to_vec());
    assert!(modules.iter().any(|m| m["name"] == rlock), "{modules:?}");
    server.alive();
}

//! Users of the server's, and what they may do.

use super::{Ask, RawClient, Server};

/// A connection of a user with these rules.
#[track_caller]
pub fn user(server: &Server, rules: &str) -> RawClient {
    let mut admin = server.raw();
    admin.ok(&format!("ACL SETUSER worker reset on >secret {rules}"));
    let mut client = server.raw();
    client.ok("AUTH worker secret");
    client
}

impl RawClient {
    /// Whether the server refuses the request for want of permission.
    #[track_caller]
    pub fn denied(&mut self, request: &str) -> bool {
        match self.ask(request) {
            error @ redis::Value::ServerError(_) => {
                let line = super::error(error);
                assert!(line.starts_with("NOPERM "), "{request}: {line}");
                true
            }
            _ => false,
        }
    }
}

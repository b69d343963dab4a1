//! As `user`, `cluster` and `listener`.

pub use super::cluster::cluster;
pub use super::user::user;
use super::{Listener, RawClient};

#[track_caller]
pub fn denied(client: &mut RawClient, request: &str) -> bool {
    client.denied(request)
}

#[track_caller]
pub fn until(listener: &mut Listener, last: &(String, String)) -> Vec<(String, String)> {
    listener.until(last)
}

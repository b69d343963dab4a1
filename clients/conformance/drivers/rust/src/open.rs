//! The program's client, and the locks over it.

use redis::{Client, TlsCertificates};
use rlock_client::Locks;
use serde_json::{Value, json};

use crate::world::{Answer, World, argument, duration, failed, text};

impl World {
    pub fn open(&self, request: &Value) -> Answer {
        let client = client(request)?;
        let locks = match (duration(request, "timeout"), request["cluster"] == true) {
            (Some(timeout), false) => Locks::with_timeout(client, timeout),
            (None, false) => Locks::new(client),
            (Some(timeout), true) => Locks::cluster_with_timeout([client], timeout),
            (None, true) => Locks::cluster([client]),
        };
        let locks = match text(request, "backend").as_str() {
            "" => locks,
            _ => locks.require_module(),
        };
        let locks = match duration(request, "ask_again_ms") {
            Some(time) => locks.ask_again_every(time),
            None => locks,
        };
        let locks = match request.get("patience") {
            None => locks,
            Some(patience) => {
                let time = duration(request, "patience");
                if time.is_none() && !patience.is_null() {
                    return Err(argument("patience is a number of ms, or null"));
                }
                locks.patience(time).map_err(failed)?
            }
        };
        self.names().locks.insert(text(request, "locks"), locks);
        Ok(json!({}))
    }
}

impl World {
    pub fn backend(&self, request: &Value) -> Answer {
        let locks = self.names().locks.get(&text(request, "locks")).cloned();
        let backend = locks.and_then(|locks| locks.backend());
        Ok(json!({"backend": backend.map(|backend| backend.as_str())}))
    }
}

pub fn client(request: &Value) -> Result<Client, Value> {
    let tls = request["tls"] == true;
    let scheme = if tls { "rediss" } else { "redis" };
    let (user, password) = (text(request, "user"), text(request, "password"));
    let credentials = match password.is_empty() {
        true => String::new(),
        false => format!("{user}:{password}@"),
    };
    let host = text(request, "host");
    let address = format!("{scheme}://{credentials}{host}:{}/", request["port"]);
    if !tls {
        return Client::open(address).map_err(|error| argument(&error.to_string()));
    }
    let root_cert =
        std::fs::read(text(request, "ca")).map_err(|error| argument(&error.to_string()))?;
    let certificates = TlsCertificates {
        client_tls: None,
        root_cert: Some(root_cert),
    };
    Client::build_with_tls(address, certificates).map_err(|error| argument(&error.to_string()))
}

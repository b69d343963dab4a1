//! A client of a cluster: goes where it is sent, and asks again.

use std::collections::HashMap;

use super::load::Load;
use super::nodes::{map, slot_of};
use crate::clock::{now_us, pause};
use crate::conn::{Conn, Gone};
use crate::resp::Value;
use crate::world::code;

pub struct Client<'a> {
    load: &'a Load,
    slots: Vec<u16>,
    conns: HashMap<u16, (Conn, u64)>,
}

/// A reply, when the request was sent that got it, and by which connection.
pub struct Answer {
    pub value: Value,
    pub call: u64,
    pub port: u16,
    pub conn: u64,
}

impl<'a> Client<'a> {
    pub fn new(load: &'a Load) -> Self {
        Self {
            load,
            slots: map(&load.ports),
            conns: HashMap::new(),
        }
    }

    /// None: no reply that means anything, however often it was asked, within so many ms.
    pub fn call(&mut self, key: &str, line: &str, ms: u64) -> Option<Answer> {
        let slot = usize::from(slot_of(key));
        let until = now_us() + ms * 1000;
        let mut ask = None;
        while now_us() < until {
            let (port, asking) = match ask.take() {
                Some(port) => (port, true),
                None => (self.slots[slot], false),
            };
            let call = now_us();
            let (value, conn) = match self.once(port, line, asking, until) {
                Ok(reply) => reply,
                Err(gone) => {
                    self.conns.remove(&port);
                    // No reply to a request that waits for far less than that.
                    self.load.count(match gone {
                        Gone::Silent => "UNANSWERED",
                        Gone::Closed => "closed",
                    });
                    self.look_again();
                    continue;
                }
            };
            let Value::Error(text) = &value else {
                return Some(Answer {
                    value,
                    call,
                    port,
                    conn,
                });
            };
            let target: Option<u16> = text.rsplit(':').next().and_then(|port| port.parse().ok());
            match (code(text), target) {
                ("MOVED", Some(port)) => self.slots[slot] = self.load.ports.own_of(port),
                ("ASK", Some(port)) => ask = Some(self.load.ports.own_of(port)),
                ("MOVED" | "UNBLOCKED" | "TRYAGAIN" | "CLUSTERDOWN" | "READONLY", _)
                | ("MASTERDOWN" | "LOADING" | "REDIRECT" | "NOREPLICAS", _) => self.look_again(),
                _ => {
                    return Some(Answer {
                        value,
                        call,
                        port,
                        conn,
                    })
                }
            }
            self.load.count(code(text));
        }
        None
    }

    fn look_again(&mut self) {
        pause(10);
        self.slots = map(&self.load.ports);
    }

    fn once(
        &mut self,
        port: u16,
        line: &str,
        asking: bool,
        until: u64,
    ) -> Result<(Value, u64), Gone> {
        if !self.conns.contains_key(&port) {
            self.conns
                .insert(port, (Conn::open(port)?, self.load.number()));
        }
        let (conn, number) = self.conns.get_mut(&port).ok_or(Gone::Closed)?;
        match asking {
            true => {
                conn.send(&["ASKING", line])?;
                conn.next(until)?;
            }
            false => conn.send(&[line])?,
        }
        Ok((conn.next(until)?, *number))
    }

    /// On the connection of an answer: a line that is not sent on.
    pub fn there(&mut self, answer: &Answer, line: &str) -> Option<Value> {
        let (conn, number) = self.conns.get_mut(&answer.port)?;
        if *number != answer.conn {
            return None;
        }
        conn.ask(line).ok()
    }

    /// Whether the connection that got it is open yet.
    pub fn is_open(&mut self, answer: &Answer) -> bool {
        let open = self.there(answer, "PING").is_some();
        if !open {
            self.conns.remove(&answer.port);
        }
        open
    }
}

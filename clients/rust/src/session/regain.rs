//! A plain hold outlives its connection. On the next one it is asked for.

use redis::{RedisResult, Value};

use crate::clock;
use crate::error::Error;

use super::actor::{Actor, What};
use super::direct::Sent;
use super::entry::{Phase, Released};

impl Actor {
    /// Asks whether it is held still, and says where its loss is notified from now on. Its deadline
    /// stays.
    pub fn regain(&mut self, id: u64) {
        if let Some(sent) = self.ask_whether_held(id) {
            self.follow(sent);
        }
    }

    fn ask_whether_held(&mut self, id: u64) -> Option<Sent> {
        let entry = self.entries.get_mut(&id)?;
        let Phase::Held(held) = &mut entry.phase else {
            return None;
        };
        let node = self.nodes.get_mut(entry.node)?;
        let Some(link) = &node.link else {
            node.wanted = true;
            return None;
        };
        let left = held.state.deadline()?.checked_sub(clock::now())?;
        self.last_tag += 1;
        entry.tag = self.last_tag;
        entry.regains = true;
        held.regained = true;
        self.by_tag.insert(entry.tag, id);
        let mut renew = entry.request.renew(left, None);
        renew.arg("NOTIFY").arg(&link.channel).arg(entry.tag);
        Some(link.send(entry.node, What::Regain { id }, renew))
    }

    /// It is held still, or lost.
    pub fn regained(&mut self, id: u64, reply: RedisResult<Value>) {
        let Some(entry) = self.entries.get_mut(&id) else {
            return;
        };
        entry.regains = false;
        let error = reply.err().map(|error| Error::from_redis(&error));
        match (&mut entry.phase, error) {
            (Phase::Held(_), Some(Error::Lost(reason))) => self.lose(id, reason),
            // Which node has it now is found out; that one is asked.
            (Phase::Held(_), Some(error)) if error.is_elsewhere() => {
                self.by_tag.remove(&entry.tag);
                entry.tag = 0;
                self.read_slots();
            }
            (Phase::Released(released), Some(error @ Error::Lost(_))) => {
                let was = released.end.replace(Err(error));
                if was.is_some() {
                    self.released(id);
                }
            }
            (Phase::Released(Released { end: Some(_), .. }), _) => self.released(id),
            _ => {}
        }
    }
}

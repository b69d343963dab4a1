//! Proofs that a sticky lock was here until a moment ago: what the server has said is read before its reply to anything.

use crate::clock::Time;

use super::Answer;
use super::actor::{Actor, What};

impl Actor {
    /// What the server has said of it until now is read before the answer to this.
    pub fn prove(&mut self, id: u64, now: Time) {
        let stay = &self.stays[&id];
        let Some(node) = self.of_stay(stay).map(|entry| entry.node) else {
            return;
        };
        let link = self.nodes.get(node).and_then(|node| node.link.as_ref());
        let Some(link) = link.filter(|link| stay.proves != Some(link.number)) else {
            return; // the next connection is proved as it begins
        };
        let number = link.number;
        let sent = link.send(node, What::Proof { sent: now }, redis::cmd("PING"));
        self.follow(sent);
        if let Some(stay) = self.stays.get_mut(&id) {
            stay.proves = Some(number);
        }
    }

    /// `asked`: one of these has asked for it.
    pub fn proved(&mut self, number: usize, sent: Time, asked: bool) {
        let node = &mut self.nodes[number];
        node.proof = node.proof.max(sent);
        let proof = node.proof;
        let mut looks = Vec::new();
        for (&id, stay) in &self.stays {
            if self.of_stay(stay).is_some_and(|entry| entry.node == number) {
                stay.turn.set_proof(proof);
                looks.push(id);
            }
        }
        for id in looks {
            let Some(stay) = self.stays.get_mut(&id) else {
                continue;
            };
            if asked {
                stay.proves = None;
            }
            if !stay.line.is_empty() || !stay.ends.is_empty() {
                self.look_at_stay(id);
            }
        }
    }

    /// For a use that ends, and has heard nothing for too long.
    pub fn prove_use(&mut self, id: u64, to: Answer<()>) {
        match self.stays.get_mut(&id) {
            Some(stay) => stay.ends.push(to),
            None => return self.answer(to, Ok(())),
        }
        self.look_at_stay(id);
    }

    pub fn let_ends_go(&mut self, id: u64, now: Time) {
        let Some(stay) = self.stays.get_mut(&id) else {
            return;
        };
        if stay.ends.is_empty() {
            return;
        }
        if !stay.is_away() && !stay.turn.is_proved(now) {
            return self.prove(id, now);
        }
        for to in std::mem::take(&mut stay.ends) {
            self.answer(to, Ok(()));
        }
    }
}

//! The proof of life, of both ends: what is answered shows that the server lives, and what is sent
//! that this process does.

use std::time::Duration;

use redis::{Cmd, cmd};

use crate::clock::{Time, ms};
use crate::error::Error;
use crate::request::LEASE;

use super::actor::{Actor, What};
use super::entry::{Entry, Phase};

/// A server looks some ten times a second who is silent.
const LEAST_PATIENCE: Duration = Duration::from_millis(300);

impl Actor {
    pub fn beat(&mut self, number: usize, now: Time) {
        let its = self.entries.values().filter(|entry| entry.node == number);
        let shortest = its.map(Entry::lease).min().unwrap_or(LEASE);
        self.nodes[number].beaten(shortest, now);
        let command = self.proof_of_life(number);
        if let Some(link) = &self.nodes[number].link {
            let sent = link.send(number, What::Beat { sent: now }, command);
            self.follow(sent);
        }
    }

    pub fn beat_for(&mut self, node: usize, lease: Duration) {
        if let Some(node) = self.nodes.get_mut(node) {
            node.beat_for(lease);
        }
    }

    fn proof_of_life(&self, number: usize) -> Cmd {
        let link = self.nodes[number].link.as_ref();
        match self.options.patience {
            Some(least) if link.is_some_and(|link| link.hears_patience) => {
                let patience = self
                    .longest_watched_at(number)
                    .max(least)
                    .max(LEAST_PATIENCE);
                cmd("RLOCK.HEARTBEAT").arg(ms(patience)).clone()
            }
            _ => cmd("PING"),
        }
    }

    /// Of the leases there that the server renews.
    fn longest_watched_at(&self, number: usize) -> Duration {
        let is_watched =
            |entry: &&Entry| entry.request.watchdog && matches!(entry.phase, Phase::Held(_));
        let its = self.entries.values().filter(|entry| entry.node == number);
        let watched = its.filter(is_watched);
        watched.map(Entry::lease).max().unwrap_or_default()
    }

    /// The server may have answered long ago.
    pub fn stood_still(&mut self, late: Duration, now: Time) {
        const LONG: Duration = Duration::from_millis(100);
        if late > LONG {
            self.read_until = now + LONG;
        }
        for node in &mut self.nodes {
            node.stood_still(late, now);
        }
    }

    /// An error is an answer too.
    pub fn beat_answered(&mut self, number: usize, sent: Time, error: Option<Error>) {
        self.proved(number, sent, false);
        let node = &mut self.nodes[number];
        if let (Some(link), Some(error)) = (&mut node.link, error)
            && (error.is_unknown_command() || error.is_denied())
        {
            // PING from now on, on this connection.
            link.hears_patience = false;
        }
    }
}

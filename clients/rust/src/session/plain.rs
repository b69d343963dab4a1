//! Asking at a server without the module: by tries, on a message that the lock may be free, when
//! the lease that is in the way can be over, and now and then, for messages can be lost.

use std::sync::Arc;
use std::time::Duration;

use redis::Value;

use crate::clock::{self, Time};
use crate::error::Error;
use crate::finding;
use crate::request::{Request, Wait};

use super::actor::{Actor, What};
use super::direct::Sent;
use super::entry::{Asked, Entry, Phase};
use super::line::{Changes, Kind};

/// Who has waited for so long takes a place in the lock's queue: nobody starves.
const TURN: Duration = Duration::from_millis(100);
/// After so long the reply to a try is looked for here, and who waits tries again without one.
const LOOK: Duration = Duration::from_millis(700);
/// For how long a place stands when it is not renewed.
const PLACE_MS: u64 = 2000;

impl Actor {
    fn asked(&mut self, id: u64) -> Option<(&mut Asked, Arc<Request>, usize)> {
        let entry = self.entries.get_mut(&id)?;
        match &mut entry.phase {
            Phase::Asked(asked) => Some((asked, Arc::clone(&entry.request), entry.node)),
            _ => None,
        }
    }

    /// On a new connection, before anything is sent: a place is given up when nobody stands there.
    pub fn stand_again(&mut self, id: u64) {
        if self.comes_after_a_release(id) {
            return;
        }
        let Some((asked, request, number)) = self.asked(id) else {
            return;
        };
        if request.wait == Wait::Once || asked.token.is_some() {
            return;
        }
        let link = self.nodes.get_mut(number).and_then(|n| n.link.as_mut());
        if let Some(link) = link.filter(|link| !link.speech.has_module()) {
            let kind = Kind::of(&request);
            link.lines.enter(&kind, id, &request.stands_as);
        }
    }

    /// Who waits does so in a line, of which the first tries.
    pub fn try_once(&mut self, id: u64) -> Option<Sent> {
        let now = clock::now();
        let (asked, request, number) = self.asked(id)?;
        let (since, left) = (asked.since, asked.left(request.wait, now));
        // What is granted is confirmed, and what is under way is waited for.
        if asked.token.is_some() {
            return None;
        }
        let look = now + (request.lease / 2).min(LOOK);
        // Who waits tries again beside it where it is late: it may have been carried out before a release.
        let is_late = request.wait != Wait::Once && now >= asked.sent + LOOK;
        if asked.reply.is_some() && !is_late {
            self.look_at(id, Some(look));
            return None;
        }
        asked.is_last = left.is_none();
        let (is_last, had_turn) = (left.is_none(), asked.had_turn);
        let link = self.nodes.get_mut(number)?.link.as_mut()?;
        let (mut place, mut has_turn) = (None, false);
        if let (Wait::For(_) | Wait::Forever, kind) = (request.wait, Kind::of(&request)) {
            if link.lines.enter(&kind, id, &request.stands_as) {
                // A place that is left when the time is over is for whoever comes next in the line.
                let stays = !is_last || link.lines.many_in(&kind) > 1;
                // A place of the connection before is kept.
                let in_crowd = had_turn || link.lines.is_in_crowd(&kind);
                let wants = now - since >= TURN || in_crowd;
                has_turn = kind.has_places() && wants && stays;
                let name = link.lines.place(&kind);
                place = name.map(|name| (name.as_str(), if has_turn { PLACE_MS } else { 0 }));
            } else if !is_last {
                let end = end_of(since, request.wait);
                self.look_at(id, end);
                return None;
            }
        }
        request.own_owner();
        self.last_tag += 1;
        let tag = self.last_tag;
        let command = request.attempt(&link.speech, place);
        let sent = link.send(number, What::Acquire { id, tag }, command);
        let entry = self.entries.get_mut(&id)?;
        entry.tag = tag;
        if let Phase::Asked(asked) = &mut entry.phase {
            (asked.sent, asked.was_sent, asked.had_turn) = (now, true, has_turn);
            asked.reply = Some(sent.reply.clone());
        }
        // The task that takes the reply may be blocked.
        self.look_at(id, Some(look));
        Some(sent)
    }

    /// `said`: what is left of the lease that is in the way, in ms (-1: nothing is known), and
    /// how many places are before the own one (see `Lines::placed`).
    pub fn still_taken(&mut self, id: u64, said: &[Value]) {
        let Some((asked, request, number)) = self.asked(id) else {
            return;
        };
        let (left, ahead) = match said {
            [Value::Int(left), Value::Int(ahead)] => (*left, *ahead),
            _ => (-1, -1),
        };
        // Of one that is refused the server knows nothing but the place of its line.
        asked.was_sent = false;
        let (is_last, had_turn) = (asked.is_last, asked.had_turn || request.keys.len() > 1);
        let (since, more) = (asked.since, std::mem::take(&mut asked.more));
        let kind = Kind::of(&request);
        let Some(link) = self.nodes.get_mut(number).and_then(|n| n.link.as_mut()) else {
            return;
        };
        let has_place = link.lines.placed(&kind, ahead);
        let takes_place = !has_place && !had_turn && link.lines.is_in_crowd(&kind);
        if is_last {
            return self.not_acquired(id);
        }
        if takes_place {
            return self.ask_again(id);
        }
        let changes = link.lines.hear(&kind);
        let is_new = !changes.subscribe.is_empty();
        self.tell(number, changes);
        if is_new || more {
            // It may have become free before it was heard.
            return self.ask_again(id);
        }
        let now = clock::now();
        let mut pause = vary(Duration::from_millis(if has_place { 500 } else { 700 }));
        if let Some(first) = TURN.checked_sub(now - since)
            && kind.has_places()
        {
            let first = match kind.is_of_permits() {
                true => first.min(vary(Duration::from_millis(70))),
                false => first,
            };
            pause = pause.min(first);
        }
        if let Ok(left) = u64::try_from(left)
            && ahead <= 0
        {
            pause = pause.min(Duration::from_millis(left.max(1)));
        }
        let end = end_of(since, request.wait).unwrap_or(Time::MAX);
        self.look_at(id, Some(end.min(now + pause)));
    }

    /// When this request is looked at next.
    fn look_at(&mut self, id: u64, again: Option<Time>) {
        let Some(entry) = self.entries.get_mut(&id) else {
            return;
        };
        let before = entry.due(self.timeout);
        if let Phase::Asked(asked) = &mut entry.phase {
            asked.again = again;
        }
        let after = entry.due(self.timeout);
        if let Some(before) = before {
            self.due.remove(&(before, id));
        }
        self.due.extend(after.map(|after| (after, id)));
    }

    /// By a message: the lock may be free, or it is the turn of the place.
    pub fn heard(&mut self, number: usize, channel: &str) {
        let link = self.nodes.get(number).and_then(|node| node.link.as_ref());
        let firsts = link.map(|link| link.lines.firsts(channel));
        for id in firsts.into_iter().flatten() {
            match self.asked(id) {
                // It may have been said before.
                Some((asked, ..)) if asked.reply.is_some() => asked.more = true,
                _ => self.ask_again(id),
            }
        }
    }

    /// A channel could not be heard.
    pub fn not_heard(&mut self, number: usize, channel: &str, error: &Error) {
        let link = self.nodes.get(number).and_then(|node| node.link.as_ref());
        let Some(link) = link else { return };
        let kinds = link.lines.kinds(channel);
        let ids: Vec<u64> = kinds
            .iter()
            .flat_map(|kind| link.lines.all_in(kind))
            .collect();
        for id in ids {
            self.refused(id, error.clone());
        }
    }

    /// It waits no more, or not here: the next of its line begins. `has_it`: the lock, and with that
    /// no place any more.
    pub fn leave_line(&mut self, request: &Arc<Request>, number: usize, id: u64, has_it: bool) {
        if request.wait == Wait::Once {
            return;
        }
        let link = self.nodes.get_mut(number).and_then(|n| n.link.as_mut());
        let Some(link) = link.filter(|link| !link.speech.has_module()) else {
            return;
        };
        let kind = Kind::of(request);
        if has_it {
            link.lines.without_place(&kind);
        }
        let left = link.lines.leave(&kind, id, clock::now());
        if let Some(next) = left.next.filter(|_| !self.closed) {
            self.ask_again(next);
        }
        if left.place {
            self.end_at_server(id, Arc::clone(request), number, true);
        }
    }

    pub fn look_after_lines(&mut self, number: usize, now: Time) {
        let Some(node) = self.nodes.get_mut(number) else {
            return;
        };
        let asks = node.ask_at <= now;
        if asks {
            node.ask_at = now + self.options.asks_again;
        }
        let Some(link) = &mut node.link else { return };
        let changes = match link.lines.wake() {
            Some(at) if at <= now => link.lines.tidy(now),
            _ => Changes::default(),
        };
        self.tell(number, changes);
        if asks {
            self.ask_for_module(number, true);
        }
    }

    fn ask_for_module(&mut self, number: usize, first: bool) {
        let link = self.nodes.get(number).and_then(|node| node.link.as_ref());
        let question = if first {
            finding::first()
        } else {
            finding::second()
        };
        let sent = link.map(|link| link.send(number, What::HasModule { first }, question));
        sent.into_iter().for_each(|sent| self.follow(sent));
    }

    /// With the module everything goes on by a new connection.
    pub fn module_answered(&mut self, number: usize, first: bool, reply: &Result<Value, Error>) {
        match finding::has_module(reply) {
            Some(true) => self.speak_anew(number, "the server has the module now"),
            None if first => self.ask_for_module(number, false),
            _ => {}
        }
    }

    fn tell(&mut self, number: usize, changes: Changes) {
        let link = self.nodes.get(number).and_then(|node| node.link.as_ref());
        let Some(link) = link else { return };
        let mut sent = Vec::new();
        for channel in changes.subscribe {
            let command = link.subscription(true, &channel);
            sent.push(link.send(number, What::Subscribe { channel }, command));
        }
        for channel in changes.unsubscribe {
            let command = link.subscription(false, &channel);
            sent.push(link.send(number, What::Unsubscribe, command));
        }
        sent.into_iter().for_each(|one| self.follow(one));
    }

    /// Whether holds with watchdog at this node are kept by this session.
    pub fn keeps_at(&self, entry: &Entry) -> bool {
        let link = self
            .nodes
            .get(entry.node)
            .and_then(|node| node.link.as_ref());
        entry.request.watchdog && link.is_some_and(|link| !link.speech.has_module())
    }
}

fn end_of(since: Time, wait: Wait) -> Option<Time> {
    match wait {
        Wait::For(time) => since.checked_add(time),
        Wait::Once | Wait::Forever => None,
    }
}

/// Up to a fifth more or less, so that many do not come together.
fn vary(time: Duration) -> Duration {
    let random = uuid::Uuid::new_v4().as_u128() % 1000;
    time.mul_f64(0.8 + random as f64 / 2500.0)
}

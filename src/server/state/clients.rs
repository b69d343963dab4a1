//! Clients whose request waits in the server or was just granted, and those whose
//! connection is to be closed.
//!
//! A grant ends answered or lost, exactly one of them:
//! - lost, when the server ends the wait before the reply is written (`disconnected`),
//!   when the reply was written to a client that was gone by then (`freed`), or when the
//!   client is closed in the very turn of the event loop in which its reply should leave
//!   (`closed`);
//! - answered, when the loop's turn is over and none of that happened.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};

use crate::lock::{ClientId, Outcome, WaiterId};
use crate::server::sys::Blocked;

#[derive(Debug)]
enum State {
    /// In the queue.
    Waiting,
    /// Out of the queue; the reply is on its way.
    Settled(Outcome),
    /// The reply stands in the client's own buffer.
    Answered,
    /// The server ended the wait.
    Gone,
}

#[derive(Debug)]
struct Client {
    /// None where the server has given none.
    id: Option<ClientId>,
    handle: Blocked,
    state: State,
}

#[derive(Debug, Default)]
struct Lists {
    blocked: HashMap<WaiterId, Client>,
    /// Settled, and to be woken at the end of the loop's turn.
    to_wake: Vec<WaiterId>,
    /// Granted and answered in this turn of the loop.
    fresh: HashMap<ClientId, WaiterId>,
    /// Those whose connection is to be closed.
    closing: BTreeSet<ClientId>,
}

impl Lists {
    fn answered(&mut self, client: Option<ClientId>, waiter: WaiterId) {
        if let Some(client) = client {
            self.fresh.insert(client, waiter);
        }
    }
}

/// When a client is woken whose request is settled.
pub enum Wake {
    Now(Blocked),
    /// By [`Clients::to_wake`].
    Later,
    /// Its wait has ended already.
    TooLate,
}

/// How a wait has ended that the server has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The request has to leave the queue.
    InQueue,
    /// A grant has not reached its client.
    Granted,
    /// No matter: it was answered, or had failed.
    Other,
}

#[derive(Default)]
pub struct Clients(RefCell<Lists>);

impl Clients {
    fn with<T>(&self, act: impl FnOnce(&mut Lists) -> T) -> Option<T> {
        self.0
            .try_borrow_mut()
            .ok()
            .map(|mut lists| act(&mut lists))
    }

    /// Whether no request waits, and no reply to one is on its way.
    pub fn none_waits(&self) -> bool {
        self.with(|lists| lists.blocked.is_empty() && lists.fresh.is_empty())
            .unwrap_or(false)
    }

    /// A request waits.
    pub fn add(&self, waiter: WaiterId, id: Option<ClientId>, handle: Blocked) {
        let client = Client {
            id,
            handle,
            state: State::Waiting,
        };
        self.with(|lists| lists.blocked.insert(waiter, client));
    }

    /// Settles a request. `at_once`: its client may be woken now.
    pub fn settle(&self, waiter: WaiterId, outcome: Outcome, at_once: bool) -> Wake {
        let settle = |lists: &mut Lists| {
            let client = lists.blocked.get_mut(&waiter)?;
            if !matches!(client.state, State::Waiting) {
                return None;
            }
            client.state = State::Settled(outcome);
            if at_once {
                return Some(Wake::Now(client.handle.clone()));
            }
            lists.to_wake.push(waiter);
            Some(Wake::Later)
        };
        self.with(settle).flatten().unwrap_or(Wake::TooLate)
    }

    /// Those who were to be woken at the end of the loop's turn.
    pub fn to_wake(&self) -> Vec<WaiterId> {
        self.with(|lists| std::mem::take(&mut lists.to_wake))
            .unwrap_or_default()
    }

    /// The handle of a client whose request is settled, if its wait goes on.
    pub fn settled(&self, waiter: WaiterId) -> Option<Blocked> {
        let lists = self.0.try_borrow().ok()?;
        let client = lists.blocked.get(&waiter)?;
        matches!(client.state, State::Settled(_)).then(|| client.handle.clone())
    }

    /// The client's reply is written now: what was settled, or that the server has ended
    /// a wait in the queue. `in_own_buffer`: the reply of a grant can still be lost.
    pub fn reply(&self, waiter: WaiterId, in_own_buffer: bool) -> Result<Outcome, Ended> {
        let reply = |lists: &mut Lists| {
            let Some(client) = lists.blocked.get_mut(&waiter) else {
                return Err(Ended::Other);
            };
            match &client.state {
                State::Settled(outcome) => {
                    let outcome = outcome.clone();
                    if in_own_buffer {
                        client.state = State::Answered;
                        let id = client.id;
                        if matches!(outcome, Outcome::Granted(_)) {
                            lists.answered(id, waiter);
                        }
                    }
                    Ok(outcome)
                }
                State::Waiting => {
                    client.state = State::Gone;
                    Err(Ended::InQueue)
                }
                State::Answered | State::Gone => Err(Ended::Other),
            }
        };
        self.with(reply).unwrap_or(Err(Ended::Other))
    }

    /// The server has ended a wait.
    pub fn disconnected(&self, waiter: WaiterId) -> Ended {
        let end = |lists: &mut Lists| match lists.blocked.get_mut(&waiter) {
            Some(client) if !matches!(client.state, State::Answered) => {
                match std::mem::replace(&mut client.state, State::Gone) {
                    State::Waiting => Ended::InQueue,
                    State::Settled(Outcome::Granted(_)) => Ended::Granted,
                    State::Settled(_) | State::Answered | State::Gone => Ended::Other,
                }
            }
            _ => Ended::Other,
        };
        self.with(end).unwrap_or(Ended::Other)
    }

    /// The server is done with a blocked client.
    pub fn freed(&self, waiter: WaiterId) {
        self.with(|lists| {
            if let Some(Client {
                id,
                state: State::Settled(Outcome::Granted(_)),
                ..
            }) = lists.blocked.remove(&waiter)
            {
                lists.answered(id, waiter);
            }
        });
    }

    /// A connection closes. The grant that was answered to it in this turn of the loop:
    /// the reply never left.
    pub fn closed(&self, client: ClientId) -> Option<WaiterId> {
        self.with(|lists| lists.fresh.remove(&client)).flatten()
    }

    /// The loop's turn is over: the replies to these grants are out.
    pub fn take_answered(&self) -> impl Iterator<Item = WaiterId> {
        let fresh = self.with(|lists| std::mem::take(&mut lists.fresh));
        fresh.unwrap_or_default().into_values()
    }

    /// Has a connection closed.
    pub fn close(&self, client: ClientId) {
        self.with(|lists| lists.closing.insert(client));
    }

    /// Whether connections are to be closed yet.
    pub fn any_closing(&self) -> bool {
        self.with(|lists| !lists.closing.is_empty())
            .unwrap_or(false)
    }

    /// The next of those that are to be closed.
    pub fn take_closing(&self, most: usize) -> Vec<ClientId> {
        let next = |lists: &mut Lists| {
            let closing = &mut lists.closing;
            std::iter::from_fn(|| closing.pop_first())
                .take(most)
                .collect()
        };
        self.with(next).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::Token;

    const WAITER: WaiterId = WaiterId::FIRST;

    fn waiting() -> (Clients, ClientId) {
        let (clients, id) = (Clients::default(), ClientId::new(3).unwrap());
        clients.add(WAITER, Some(id), Blocked::ended());
        (clients, id)
    }

    fn answered(clients: &Clients) -> Vec<WaiterId> {
        clients.take_answered().collect()
    }

    #[test]
    fn a_grant_that_is_held_back_is_answered_when_the_client_is_freed() {
        let (clients, _) = waiting();
        let wake = clients.settle(WAITER, Outcome::Granted(Token(1)), true);
        assert!(matches!(wake, Wake::Now(_)));
        assert_eq!(clients.reply(WAITER, false), Ok(Outcome::Granted(Token(1))));
        assert_eq!(answered(&clients), []);
        clients.freed(WAITER);
        assert_eq!(answered(&clients), [WAITER]);
        assert!(clients.none_waits());
    }

    #[test]
    fn a_grant_in_the_clients_own_buffer_is_lost_with_the_client() {
        for closes in [false, true] {
            let (clients, id) = waiting();
            let wake = clients.settle(WAITER, Outcome::Granted(Token(1)), false);
            assert!(matches!(wake, Wake::Later));
            assert_eq!(clients.to_wake(), [WAITER]);
            assert!(clients.settled(WAITER).is_some());
            assert_eq!(clients.reply(WAITER, true), Ok(Outcome::Granted(Token(1))));
            assert_eq!(clients.disconnected(WAITER), Ended::Other);
            clients.freed(WAITER);
            if closes {
                assert_eq!(clients.closed(id), Some(WAITER));
                assert_eq!(answered(&clients), []);
            } else {
                assert_eq!(answered(&clients), [WAITER]);
            }
        }
    }

    #[test]
    fn a_grant_whose_client_the_server_has_sent_away_is_lost() {
        let (clients, _) = waiting();
        clients.settle(WAITER, Outcome::Granted(Token(1)), true);
        assert_eq!(clients.disconnected(WAITER), Ended::Granted);
        assert_eq!(clients.reply(WAITER, true), Err(Ended::Other));
        clients.freed(WAITER);
        assert_eq!(answered(&clients), []);
    }

    #[test]
    fn a_request_whose_wait_the_server_has_ended_is_granted_nothing() {
        for by_hand in [false, true] {
            let (clients, _) = waiting();
            if by_hand {
                assert_eq!(clients.reply(WAITER, true), Err(Ended::InQueue));
            } else {
                assert_eq!(clients.disconnected(WAITER), Ended::InQueue);
            }
            let wake = clients.settle(WAITER, Outcome::Granted(Token(1)), false);
            assert!(matches!(wake, Wake::TooLate));
            assert_eq!(clients.to_wake(), []);
        }
    }
}

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
use std::collections::{BTreeMap, BTreeSet};

use crate::lock::{ClientId, Outcome, WaiterId};
use crate::server::sys::Blocked;

#[derive(Debug)]
enum State {
    /// In the queue.
    Waiting,
    /// Out of the queue; the reply is on its way.
    Settled(Outcome),
    /// The reply stands in the client's own buffer, or the server ended the wait.
    Over,
}

#[derive(Debug)]
struct Client {
    /// None where the server has given none.
    id: Option<ClientId>,
    handle: Blocked,
    state: State,
}

impl Client {
    /// The server has ended the wait.
    fn end(&mut self) -> WaitEnd {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Waiting => WaitEnd::InQueue,
            State::Settled(Outcome::Granted(_)) => WaitEnd::Granted,
            State::Settled(_) | State::Over => WaitEnd::Other,
        }
    }
}

#[derive(Debug, Default)]
struct ClientLists {
    blocked: BTreeMap<WaiterId, Client>,
    /// Settled, and to be woken at the end of the loop's turn.
    to_wake: Vec<Blocked>,
    /// Granted and answered in this turn of the loop.
    fresh: BTreeSet<(ClientId, WaiterId)>,
    /// Those whose connection is to be closed.
    closing: BTreeSet<ClientId>,
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
pub enum WaitEnd {
    /// The request has to leave the queue.
    InQueue,
    /// A grant has not reached its client.
    Granted,
    /// No matter: it was answered, or had failed.
    Other,
}

#[derive(Default)]
pub struct Clients(RefCell<ClientLists>);

impl Clients {
    /// Whether no request waits, and no reply to one is on its way.
    pub fn none_waits(&self) -> bool {
        let lists = self.0.borrow();
        lists.blocked.is_empty() && lists.fresh.is_empty()
    }

    /// A request waits.
    pub fn add(&self, waiter: WaiterId, id: Option<ClientId>, handle: Blocked) {
        let client = Client {
            id,
            handle,
            state: State::Waiting,
        };
        self.0.borrow_mut().blocked.insert(waiter, client);
    }

    /// Settles a request. `at_once`: its client may be woken now.
    pub fn settle(&self, waiter: WaiterId, outcome: Outcome, at_once: bool) -> Wake {
        let lists = &mut *self.0.borrow_mut();
        match lists.blocked.get_mut(&waiter) {
            Some(client) if matches!(client.state, State::Waiting) => {
                client.state = State::Settled(outcome);
                let handle = client.handle.clone();
                if at_once {
                    return Wake::Now(handle);
                }
                lists.to_wake.push(handle);
                Wake::Later
            }
            _ => Wake::TooLate,
        }
    }

    /// Those who were to be woken at the end of the loop's turn. The wait of some may
    /// have ended since.
    pub fn to_wake(&self) -> Vec<Blocked> {
        std::mem::take(&mut self.0.borrow_mut().to_wake)
    }

    /// The client's reply is written now: what was settled, or that the server has ended
    /// a wait in the queue. `in_own_buffer`: the reply of a grant can still be lost.
    pub fn reply(&self, waiter: WaiterId, in_own_buffer: bool) -> Result<Outcome, WaitEnd> {
        let lists = &mut *self.0.borrow_mut();
        let client = lists.blocked.get_mut(&waiter).ok_or(WaitEnd::Other)?;
        let State::Settled(outcome) = &client.state else {
            return Err(client.end());
        };
        let outcome = outcome.clone();
        if in_own_buffer {
            client.state = State::Over;
            if matches!(outcome, Outcome::Granted(_)) {
                lists.fresh.extend(client.id.map(|id| (id, waiter)));
            }
        }
        Ok(outcome)
    }

    /// The server has ended a wait.
    pub fn disconnected(&self, waiter: WaiterId) -> WaitEnd {
        let lists = &mut *self.0.borrow_mut();
        let client = lists.blocked.get_mut(&waiter);
        client.map_or(WaitEnd::Other, Client::end)
    }

    /// The server is done with a blocked client, which may be gone: then the wait has ended.
    pub fn freed(&self, waiter: WaiterId, gone: bool) -> WaitEnd {
        let lists = &mut *self.0.borrow_mut();
        match lists.blocked.remove(&waiter) {
            Some(mut client) if gone => return client.end(),
            Some(Client {
                id: Some(id),
                state: State::Settled(Outcome::Granted(_)),
                ..
            }) => {
                lists.fresh.insert((id, waiter));
            }
            _ => {}
        }
        WaitEnd::Other
    }

    /// A message that announces a grant is sent in this turn of the loop.
    pub fn messaged(&self, client: ClientId, waiter: WaiterId) {
        self.0.borrow_mut().fresh.insert((client, waiter));
    }

    /// A connection closes. The grants that were answered to it in this turn of the loop:
    /// the replies never left.
    pub fn closed(&self, client: ClientId) -> Vec<WaiterId> {
        let fresh = &mut self.0.borrow_mut().fresh;
        if fresh.is_empty() {
            return Vec::new();
        }
        let its = (client, WaiterId::FIRST)..=(client, WaiterId::LAST);
        let its = fresh.extract_if(its, |_| true);
        its.map(|(_, waiter)| waiter).collect()
    }

    /// The loop's turn is over: the replies to these grants are out.
    pub fn take_answered(&self) -> impl Iterator<Item = WaiterId> {
        let fresh = std::mem::take(&mut self.0.borrow_mut().fresh);
        fresh.into_iter().map(|(_, waiter)| waiter)
    }

    /// Has a connection closed.
    pub fn close(&self, client: ClientId) {
        self.0.borrow_mut().closing.insert(client);
    }

    /// Whether connections are to be closed yet.
    pub fn any_closing(&self) -> bool {
        !self.0.borrow().closing.is_empty()
    }

    /// The next of those that are to be closed.
    pub fn take_closing(&self, most: usize) -> Vec<ClientId> {
        let closing = &mut self.0.borrow_mut().closing;
        let next = std::iter::from_fn(|| closing.pop_first());
        next.take(most).collect()
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
        clients.freed(WAITER, false);
        assert_eq!(answered(&clients), [WAITER]);
        assert!(clients.none_waits());
    }

    #[test]
    fn a_grant_in_the_clients_own_buffer_is_lost_with_the_client() {
        for closes in [false, true] {
            let (clients, id) = waiting();
            let wake = clients.settle(WAITER, Outcome::Granted(Token(1)), false);
            assert!(matches!(wake, Wake::Later));
            assert_eq!(clients.to_wake(), [Blocked::ended()]);
            assert_eq!(clients.reply(WAITER, true), Ok(Outcome::Granted(Token(1))));
            assert_eq!(clients.disconnected(WAITER), WaitEnd::Other);
            clients.freed(WAITER, false);
            if closes {
                assert_eq!(clients.closed(id), [WAITER]);
                assert_eq!(answered(&clients), []);
            } else {
                assert_eq!(answered(&clients), [WAITER]);
            }
        }
    }

    #[test]
    fn a_grant_whose_wait_the_server_has_ended_is_lost() {
        let (clients, _) = waiting();
        clients.settle(WAITER, Outcome::Granted(Token(1)), true);
        assert_eq!(clients.disconnected(WAITER), WaitEnd::Granted);
        assert_eq!(clients.reply(WAITER, true), Err(WaitEnd::Other));
        clients.freed(WAITER, false);
        assert_eq!(answered(&clients), []);
    }

    #[test]
    fn a_client_that_is_gone_when_it_is_freed_has_lost_its_wait_and_its_grant() {
        let (clients, _) = waiting();
        assert_eq!(clients.freed(WAITER, true), WaitEnd::InQueue);
        let (clients, _) = waiting();
        clients.settle(WAITER, Outcome::Granted(Token(1)), true);
        assert_eq!(clients.freed(WAITER, true), WaitEnd::Granted);
        assert_eq!(answered(&clients), []);
        assert!(clients.none_waits());
    }

    #[test]
    fn a_request_whose_wait_the_server_has_ended_is_granted_nothing() {
        for by_hand in [false, true] {
            let (clients, _) = waiting();
            if by_hand {
                assert_eq!(clients.reply(WAITER, true), Err(WaitEnd::InQueue));
            } else {
                assert_eq!(clients.disconnected(WAITER), WaitEnd::InQueue);
            }
            let wake = clients.settle(WAITER, Outcome::Granted(Token(1)), false);
            assert!(matches!(wake, Wake::TooLate));
            assert_eq!(clients.to_wake(), []);
        }
    }
}

//! The ways in which a waiter leaves its queue before it is granted.

use redis::Value;

use super::{code, Ask, RawClient, Waiter, Way};

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Leave {
    TimeOut,
    Close,
    Kill,
    Unblock,
    UnblockTimeout,
    UnblockError,
    Cancel,
}

impl Leave {
    /// Those that end a wait of this way. A queued one is no blocked client.
    pub fn all(by: Way) -> Vec<Self> {
        let both = [Self::TimeOut, Self::Close, Self::Kill, Self::Cancel];
        let blocked = [Self::Unblock, Self::UnblockTimeout, Self::UnblockError];
        match by {
            Way::Block => [&both[..], &blocked].concat(),
            Way::Queue => both.into(),
        }
    }

    /// Those that another than the waiter's own time brings about.
    pub fn early(by: Way) -> impl Iterator<Item = Self> {
        let all = Self::all(by).into_iter();
        all.filter(|way| *way != Self::TimeOut)
    }

    /// For how long the one that leaves would wait: for a time-out not much more than
    /// setting up takes, so that it ends while others wait behind it.
    pub fn block(self) -> &'static str {
        match self {
            Self::TimeOut => "BLOCK 400",
            _ => "BLOCK 60000",
        }
    }

    /// Makes the waiter leave. What comes back still has its connection, and got exactly
    /// one reply or message.
    #[track_caller]
    pub fn leave(self, control: &mut RawClient, mut waiter: Waiter) -> Option<Waiter> {
        let id = waiter.id;
        let unblock = match self {
            Self::TimeOut => None,
            Self::Cancel => {
                assert_eq!(control.int(&waiter.cancel), 1);
                None
            }
            Self::Close => {
                waiter.client.close();
                return None;
            }
            Self::Kill => {
                assert_eq!(control.int(&format!("CLIENT KILL ID {id}")), 1);
                assert!(waiter.client.is_closed());
                return None;
            }
            Self::Unblock => Some(""),
            Self::UnblockTimeout => Some("TIMEOUT"),
            Self::UnblockError => Some("ERROR"),
        };
        if let Some(how) = unblock {
            assert_eq!(control.int(&format!("CLIENT UNBLOCK {id} {how}")), 1);
        }
        match self {
            Self::UnblockError => assert_eq!(code(&waiter.end()), "UNBLOCKED"),
            _ => assert_eq!(waiter.end(), Value::Nil),
        }
        waiter.client.in_step();
        Some(waiter)
    }
}

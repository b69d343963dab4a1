//! The steps of a random run: what clients, clocks and others may do.

use proptest::prelude::*;

use super::model::{Mode, Owner, Place, Share};
use super::sessions::words;
pub use super::sessions::Words;

pub const OWNERS: [Owner; 3] = ["a", "b", "c"];
/// Mostly plain locks are `j` and `k`, mostly read/write locks `r` and `s`, mostly held by
/// permits `p`.
pub const NAMES: [&str; 5] = ["j", "k", "p", "r", "s"];

/// One of the connections; each owner has two of them for its own.
pub type Seat = usize;
pub const SEATS: usize = 6;

#[derive(Clone, Debug)]
pub struct Call {
    pub keys: Vec<Place>,
    pub owner: Owner,
    pub seat: Seat,
    pub mode: Mode,
    pub share: Share,
    pub lease: i64,
    pub once: bool,
    pub watch: bool,
    pub block: Option<i64>,
    /// It waits by QUEUE, if it has NOTIFY.
    pub queue: bool,
    pub notify: Option<Words>,
}

/// RENEW. `anew`: with TOKEN.
#[derive(Clone, Copy, Debug)]
pub struct Renewing {
    pub whose: Whose,
    pub lease: i64,
    pub watch: bool,
    pub notify: Option<Words>,
    pub anew: bool,
}

/// Whose hold a request is about: one that is there, or these words exactly.
#[derive(Clone, Copy, Debug)]
pub struct Whose {
    pub held: Option<usize>,
    pub at: Place,
    pub owner: Owner,
    pub mode: Mode,
    pub seat: Seat,
    /// The request comes from the connection that took the hold.
    pub own_seat: bool,
}

/// What RELEASE asks of the holds that it is to end: that they are there, or have one
/// of the tokens that there are.
#[derive(Clone, Copy, Debug)]
pub enum Only {
    Held,
    Token(usize),
}

/// Whose lock FORCE is to free.
#[derive(Clone, Copy, Debug)]
pub enum Aim {
    Owner(Owner),
    Token(usize),
}

#[derive(Clone, Debug)]
pub enum Op {
    Acquire(Call),
    /// A request that waits, or the one by which a hold is told of, is said again with
    /// ONCE: by its connection or by another one.
    Again {
        which: usize,
        seat: Option<Seat>,
    },
    Cancel {
        which: Option<usize>,
        at: Place,
        owner: Owner,
        mode: Option<Mode>,
    },
    /// A connection does not listen any more, or does again: one that waits by QUEUE, or
    /// this one.
    Hears {
        which: Option<usize>,
        seat: Seat,
        hears: bool,
    },
    /// The server is made a replica, and later a master again.
    Demote,
    Release {
        whose: Whose,
        /// So many; `None`: all.
        by: Option<usize>,
        only: Option<Only>,
    },
    Renew(Renewing),
    ReleaseMany {
        keys: Vec<Place>,
        whose: Whose,
    },
    RenewMany {
        keys: Vec<Place>,
        whose: Whose,
        lease: i64,
    },
    Force {
        at: Place,
        seat: Seat,
        aim: Option<Aim>,
    },
    Limit {
        at: Place,
        limit: usize,
    },
    /// The core takes stock of a key, of which the model knows nothing: no request may
    /// find a difference.
    Presume(Place),
    /// A connection closes.
    Close(Seat),
    /// It sends again what waited with ONCE when its connection closed, right before this.
    Resend(Seat),
    /// A connection says that it is alive, and may be silent for so many ms.
    Heartbeat(Seat, i64),
    /// One of those who wait is unblocked.
    Leave(usize),
    /// The reply to one of the grants under way is lost, perhaps with its client.
    Lose {
        which: usize,
        closes: bool,
    },
    /// All replies are out.
    Confirm,
    /// Time passes on both clocks, and the timer fires then, or after the next
    /// step; the server's own expiry may have come by before.
    Pass {
        us: i64,
        cycle: bool,
        fires: bool,
    },
    /// So many us pass while nothing may be written, and the timer fires; then again, when
    /// it may be.
    Shut(i64),
    /// The wall clock is set forward, or back, so many ms.
    Set(i64),
    /// Somebody else does something; rlock hears of it after the command (7.2 and
    /// later), or with its next command or timer (7.0).
    Other {
        what: Other,
        late: bool,
    },
}

#[derive(Clone, Copy, Debug)]
pub enum Other {
    Del(Place),
    Evict(Place),
    Expire(Place, Option<i64>),
    Set(Place, Option<i64>),
    Rename(Place, Place),
    Take(Place, Owner, Mode, i64),
    /// A hash that is no lock of anybody's, for it has no TTL.
    Data(Place, Owner, usize),
    /// Who took the lock by a script gives it back.
    GiveBack(usize),
    /// Of one of the readers.
    DelLease(usize, bool),
    ExpireLease(usize, Option<i64>),
    /// A hash of somebody's stands under the name of the reader's next lease key.
    Squat(Place, Owner),
    Flush(Option<i32>),
    Swap,
}

fn place() -> impl Strategy<Value = Place> {
    // Mostly few keys, so that queues form.
    let db = prop_oneof![9 => Just(0), 1 => Just(1)];
    let name = prop_oneof![
        2 => Just("j"), 3 => Just("k"), 4 => Just("r"), 1 => Just("s"), 4 => Just("p"),
    ];
    (db, name)
}

fn places() -> impl Strategy<Value = Vec<Place>> {
    prop_oneof![
        6 => Just(vec![(0, "j"), (0, "k")]),
        2 => Just(vec![(0, "k"), (0, "j")]),
        2 => Just(vec![(0, "k"), (0, "r")]),
        1 => Just(vec![(0, "s"), (0, "j"), (0, "k")]),
        1 => Just(vec![(0, "k")]),
    ]
}

fn owner() -> impl Strategy<Value = Owner> {
    prop::sample::select(&OWNERS[..])
}

fn mode() -> impl Strategy<Value = Mode> {
    let all = &[Mode::Plain, Mode::Read, Mode::Write, Mode::Permits];
    prop::sample::select(&all[..])
}

fn lease() -> impl Strategy<Value = i64> {
    prop_oneof![3 => 1..60i64, 3 => 60..400i64]
}

fn seat() -> impl Strategy<Value = Seat> {
    0..SEATS
}

fn whose() -> impl Strategy<Value = Whose> {
    let held = prop_oneof![1 => Just(None), 6 => (0..12usize).prop_map(Some)];
    let own_seat = prop::bool::weighted(0.7);
    (held, place(), owner(), mode(), seat(), own_seat).prop_map(
        |(held, at, owner, mode, seat, own_seat)| Whose {
            held,
            at,
            owner,
            mode,
            seat,
            own_seat,
        },
    )
}

fn renewing() -> impl Strategy<Value = Renewing> {
    let flags = (prop::bool::weighted(0.3), prop::bool::weighted(0.3));
    (whose(), lease(), flags, words()).prop_map(|(whose, lease, (watch, anew), notify)| Renewing {
        whose,
        lease,
        watch,
        notify,
        anew,
    })
}

fn only() -> impl Strategy<Value = Option<Only>> {
    prop_oneof![
        6 => Just(None),
        1 => Just(Some(Only::Held)),
        2 => (0..10usize).prop_map(|which| Some(Only::Token(which))),
    ]
}

/// How many holds or permits are given back.
fn by() -> impl Strategy<Value = Option<usize>> {
    prop_oneof![7 => Just(Some(1)), 2 => Just(None), 1 => Just(Some(2))]
}

fn aim() -> impl Strategy<Value = Option<Aim>> {
    prop_oneof![
        1 => Just(None),
        1 => owner().prop_map(|owner| Some(Aim::Owner(owner))),
        2 => (0..10usize).prop_map(|which| Some(Aim::Token(which))),
    ]
}

fn one_key() -> impl Strategy<Value = (Vec<Place>, Mode)> {
    let usual = prop::bool::weighted(0.9);
    (place(), usual, mode(), any::<bool>()).prop_map(|(at, usual, mode, reads)| {
        let mode = match (at.1, usual) {
            (_, false) => mode,
            ("j" | "k", _) => Mode::Plain,
            ("p", _) => Mode::Permits,
            _ if reads => Mode::Read,
            _ => Mode::Write,
        };
        (vec![at], mode)
    })
}

fn call() -> impl Strategy<Value = Call> {
    let keys = prop_oneof![
        4 => one_key(),
        1 => places().prop_map(|keys| (keys, Mode::Plain)),
    ];
    let block = prop_oneof![2 => Just(None), 4 => Just(Some(0)), 4 => (1..200i64).prop_map(Some)];
    let flags = (
        prop::bool::weighted(0.3),
        prop::bool::weighted(0.35),
        prop::bool::weighted(0.75),
        words(),
    );
    let seats = (
        0..OWNERS.len(),
        0..2usize,
        prop::bool::weighted(0.9),
        owner(),
    );
    let share = prop_oneof![
        5 => Just((2, 1)), 3 => Just((2, 2)), 1 => Just((3, 1)), 1 => Just((3, 2)),
    ];
    let share = share.prop_map(|(limit, count)| Share { limit, count });
    (keys, seats, lease(), flags, block, share).prop_map(
        |((keys, mode), (own, which, usual, other), lease, flags, block, share)| Call {
            keys,
            owner: if usual { OWNERS[own] } else { other },
            seat: own * 2 + which,
            mode,
            share: if mode == Mode::Permits {
                share
            } else {
                Share::HOLD
            },
            lease,
            once: flags.0,
            watch: flags.1,
            block,
            queue: flags.2,
            notify: flags.3,
        },
    )
}

/// What befalls sessions.
fn session() -> impl Strategy<Value = Op> {
    let which = || prop::option::weighted(0.8, 0..12usize);
    prop_oneof![
        4 => (0..12usize, prop::option::weighted(0.3, seat())).prop_map(
            |(which, seat)| Op::Again { which, seat }
        ),
        4 => (which(), place(), owner(), prop::option::of(mode())).prop_map(
            |(which, at, owner, mode)| Op::Cancel { which, at, owner, mode }
        ),
        2 => (which(), seat(), prop::bool::weighted(0.7)).prop_map(
            |(which, seat, deaf)| Op::Hears { which, seat, hears: !deaf }
        ),
        1 => Just(Op::Demote),
    ]
}

fn other() -> impl Strategy<Value = Other> {
    let ttl = || prop_oneof![3 => lease().prop_map(Some), 1 => Just(None)];
    prop_oneof![
        3 => place().prop_map(Other::Del),
        1 => place().prop_map(Other::Evict),
        2 => (place(), ttl()).prop_map(|(at, ms)| Other::Expire(at, ms)),
        2 => (place(), ttl()).prop_map(|(at, ms)| Other::Set(at, ms)),
        3 => (place(), place()).prop_map(|(from, to)| Other::Rename(from, to)),
        4 => (place(), owner(), mode(), lease()).prop_map(|(at, o, m, ms)| Other::Take(at, o, m, ms)),
        1 => (place(), owner(), 1..4usize).prop_map(|(at, owner, n)| Other::Data(at, owner, n)),
        2 => (0..4usize).prop_map(Other::GiveBack),
        2 => (0..4usize, any::<bool>()).prop_map(|(which, evicted)| Other::DelLease(which, evicted)),
        1 => (0..4usize, ttl()).prop_map(|(which, ms)| Other::ExpireLease(which, ms)),
        1 => (place(), owner()).prop_map(|(at, owner)| Other::Squat(at, owner)),
        1 => prop::option::of(0..2i32).prop_map(Other::Flush),
        1 => Just(Other::Swap),
    ]
}

pub fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        24 => call().prop_map(Op::Acquire),
        9 => (whose(), by(), only()).prop_map(|(whose, by, only)| Op::Release { whose, by, only }),
        2 => (place(), 1..4usize).prop_map(|(at, limit)| Op::Limit { at, limit }),
        5 => renewing().prop_map(Op::Renew),
        2 => (places(), whose()).prop_map(|(keys, whose)| Op::ReleaseMany { keys, whose }),
        1 => (places(), whose(), lease()).prop_map(
            |(keys, whose, lease)| Op::RenewMany { keys, whose, lease }
        ),
        2 => (place(), seat(), aim()).prop_map(|(at, seat, aim)| Op::Force { at, seat, aim }),
        3 => place().prop_map(Op::Presume),
        2 => seat().prop_map(Op::Close),
        3 => seat().prop_map(Op::Resend),
        6 => (seat(), 1..150i64).prop_map(|(seat, patience)| Op::Heartbeat(seat, patience)),
        1 => (0..8usize).prop_map(Op::Leave),
        2 => (0..4usize, any::<bool>()).prop_map(|(which, closes)| Op::Lose { which, closes }),
        2 => Just(Op::Confirm),
        5 => session(),
        9 => (0..60_000i64, prop::bool::weighted(0.2), prop::bool::weighted(0.8)).prop_map(|(us, cycle, fires)| Op::Pass { us, cycle, fires }),
        2 => (0..200_000i64).prop_map(Op::Shut),
        1 => (-300..300i64).prop_map(Op::Set),
        6 => (other(), prop::bool::weighted(0.3)).prop_map(|(what, late)| Op::Other { what, late }),
    ]
}

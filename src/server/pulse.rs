//! The server's pulse: its cron, which runs some times a second by the monotonic
//! clock, tells that it lives.
//!
//! A server that stood still (a stop, a suspended machine, a slow command) knows
//! nothing of what happened meanwhile: it may have been replaced, and its count of
//! replicas is as old as the stop. What is due by then would be done in the first
//! moment, before it has read a byte. So after a gap in the pulse the gate stays
//! shut until the server could hear.
//!
//! The pulse also mends the timer (`timer::mend`).

use std::cell::Cell;
use std::ffi::{c_int, c_void, CStr};

use redis_module::raw;

use super::ffi::{api, guarded, Ctx};
use super::replication;
use super::shell::{shell, Shell};
use super::surroundings;
use super::timer;

/// Replicas acknowledge once a second: after a shorter gap the server's knowledge of
/// them is no older than it always is, and nobody replaces a master that fast.
const GAP_US: i64 = 1_000_000;

/// At the second beat after a gap the event loop has gone round, so that what lay in
/// the sockets is read, and answers of the cluster's other nodes came in.
const BEATS: u8 = 2;

/// Replicas that are there answer much sooner.
const PATIENCE_US: i64 = 2_000_000;

/// What is known of the time since the last gap.
#[derive(Clone, Copy, Debug)]
enum Hearing {
    /// The server is up to date.
    Fresh,
    /// It woke: how often the cron has run since, and what replicas were asked.
    Woken { beats: u8, asked: Option<Asked> },
}

/// What replicas are to acknowledge, to show that they heard of this master since it
/// woke. What they had acknowledged before may lie in the sockets still.
#[derive(Clone, Copy, Debug)]
struct Asked {
    offset: i64,
    times: u8,
    first_us: i64,
    last_us: i64,
}

/// They tell how far they were before the question: the second one shows that the
/// first was heard.
const QUESTIONS: u8 = 2;

/// So that the second goes out by itself.
const APART_US: i64 = 5_000;

pub struct Pulse {
    /// The last beat, us since the machine started.
    last_us: Cell<i64>,
    /// The time between two, us.
    period_us: Cell<i64>,
    hearing: Cell<Hearing>,
}

impl Pulse {
    pub fn new() -> Self {
        Self {
            last_us: Cell::new(uptime_us()),
            period_us: Cell::new(0),
            hearing: Cell::new(Hearing::Fresh),
        }
    }

    fn missed(&self, now_us: i64) -> bool {
        let longest = self.period_us.get().saturating_mul(2).max(GAP_US);
        now_us.saturating_sub(self.last_us.get()) > longest
    }
}

/// Whether the server has heard what happened while it stood still, if it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    Yes,
    /// It woke a moment ago.
    NotYet,
    /// Its replicas say nothing.
    Nothing,
}

/// Asks. Where the server may write: it may ask the replicas.
pub fn heard(shell: &Shell, ctx: Ctx) -> Heard {
    let pulse = &shell.pulse;
    let now_us = uptime_us();
    if pulse.missed(now_us) {
        return Heard::NotYet;
    }
    let Hearing::Woken { beats, asked } = pulse.hearing.get() else {
        return Heard::Yes;
    };
    if beats < BEATS {
        return Heard::NotYet;
    }
    let replicas = Replicas::now(ctx);
    if asked.is_some_and(|asked| replicas.enough_beyond(asked.offset)) || replicas.needed == 0 {
        pulse.hearing.set(Hearing::Fresh);
        return Heard::Yes;
    }
    // It goes back when this server has been a replica in between.
    let asked = asked.filter(|asked| asked.offset <= replicas.offset);
    let mut asked = asked.unwrap_or(Asked {
        offset: replicas.offset,
        times: 0,
        first_us: now_us,
        last_us: 0,
    });
    let rested = now_us.saturating_sub(asked.last_us) >= APART_US;
    if asked.times < QUESTIONS && rested {
        replication::ask_for_ack(ctx);
        asked.times = asked.times.saturating_add(1);
        asked.last_us = now_us;
    }
    pulse.hearing.set(Hearing::Woken {
        beats,
        asked: Some(asked),
    });
    if now_us.saturating_sub(asked.first_us) > PATIENCE_US {
        Heard::Nothing
    } else {
        Heard::NotYet
    }
}

/// The replicas of this master.
struct Replicas {
    /// How far this server has written, in bytes.
    offset: i64,
    /// How far each that is online has acknowledged.
    acknowledged: Vec<i64>,
    /// How many are needed for a write.
    needed: usize,
}

impl Replicas {
    fn now(ctx: Ctx) -> Self {
        let mut replicas = Self {
            offset: 0,
            acknowledged: Vec::new(),
            needed: 0,
        };
        let info = api!(RedisModule_GetServerInfo(ctx.0, c"replication".as_ptr()));
        let Some(info) = info.filter(|info| !info.is_null()) else {
            return replicas;
        };
        let field = |name: &CStr| {
            let text = api!(RedisModule_ServerInfoGetFieldC(info, name.as_ptr()));
            let text = text.filter(|text| !text.is_null())?;
            // SAFETY: a C string that lives as long as `info`.
            unsafe { CStr::from_ptr(text) }.to_str().ok()
        };
        let number = |name: &CStr| field(name)?.parse::<i64>().ok();
        replicas.offset = number(c"master_repl_offset").unwrap_or(0);
        for at in 0.. {
            let name = std::ffi::CString::new(format!("slave{at}")).unwrap_or_default();
            let Some(line) = field(&name) else {
                break;
            };
            replicas.acknowledged.extend(acknowledged(line));
        }
        // Shown where min-replicas-to-write is in force.
        if let Some(good) = number(c"min_slaves_good_slaves") {
            let needed = surroundings::number(ctx, "min-replicas-to-write").unwrap_or(good);
            replicas.needed = usize::try_from(needed).unwrap_or(0);
        }
        api!(RedisModule_FreeServerInfo(ctx.0, info));
        replicas
    }

    fn enough_beyond(&self, offset: i64) -> bool {
        let beyond = self.acknowledged.iter().filter(|at| **at > offset);
        beyond.count() >= self.needed
    }
}

/// How far a replica has come, if it is online, by its line in INFO:
/// `ip=127.0.0.1,port=6380,state=online,offset=1234,lag=0`.
fn acknowledged(line: &str) -> Option<i64> {
    let mut online = false;
    let mut offset = None;
    for pair in line.split(',') {
        match pair.split_once('=') {
            Some(("state", state)) => online = state == "online",
            Some(("offset", at)) => offset = at.parse().ok(),
            _ => {}
        }
    }
    offset.filter(|_| online)
}

/// A beat.
pub unsafe extern "C" fn on_cron(
    ctx: *mut raw::RedisModuleCtx,
    _event: raw::RedisModuleEvent,
    _part: u64,
    data: *mut c_void,
) {
    let ctx = Ctx(ctx);
    guarded(ctx, "the server's cron", (), || {
        // SAFETY: the server passes this structure with this event.
        let info = unsafe { data.cast::<raw::RedisModuleCronLoopInfo>().as_ref() };
        if let Some(shell) = shell() {
            beat(&shell.pulse, info.map_or(0, |info| info.hz));
            timer::mend(shell, ctx);
        }
    });
}

fn beat(pulse: &Pulse, hz: c_int) {
    let now_us = uptime_us();
    let next = match pulse.hearing.get() {
        _ if pulse.missed(now_us) => Hearing::Woken {
            beats: 1,
            asked: None,
        },
        Hearing::Fresh => Hearing::Fresh,
        Hearing::Woken { beats, asked } => Hearing::Woken {
            beats: beats.saturating_add(1),
            asked,
        },
    };
    pulse.hearing.set(next);
    pulse.last_us.set(now_us);
    pulse
        .period_us
        .set(1_000_000_i64.checked_div(hz.into()).unwrap_or(0));
}

/// How long the machine runs, us: no step of the wall clock changes it, and it counts
/// the time for which the machine was suspended.
fn uptime_us() -> i64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: it writes to the structure and no more.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut time) };
    let us = time.tv_nsec / 1000;
    time.tv_sec.saturating_mul(1_000_000).saturating_add(us)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_replicas_that_are_online_have_acknowledged() {
        let line = "ip=127.0.0.1,port=6380,state=online,offset=1234,lag=0,type=replica";
        assert_eq!(acknowledged(line), Some(1234));
        assert_eq!(
            acknowledged("ip=::1,port=1,state=online,offset=0,lag=9"),
            Some(0)
        );
        assert_eq!(
            acknowledged("ip=::1,port=1,state=send_bulk,offset=7,lag=0"),
            None
        );
        assert_eq!(acknowledged("ip=::1,port=1"), None);
        assert_eq!(acknowledged(""), None);
    }

    #[test]
    fn after_a_gap_the_second_beat_counts() {
        let pulse = Pulse::new();
        beat(&pulse, 10);
        assert!(matches!(pulse.hearing.get(), Hearing::Fresh));
        assert_eq!(pulse.period_us.get(), 100_000);
        pulse.last_us.set(uptime_us() - GAP_US - 1);
        assert!(pulse.missed(uptime_us()));
        for expected in 1..=BEATS {
            beat(&pulse, 10);
            let Hearing::Woken { beats, .. } = pulse.hearing.get() else {
                panic!("{:?}", pulse.hearing.get());
            };
            assert_eq!(beats, expected);
            assert!(!pulse.missed(uptime_us()));
        }
        // Slow crons are no gap.
        beat(&pulse, 1);
        pulse.last_us.set(uptime_us() - GAP_US - 500_000);
        assert!(!pulse.missed(uptime_us()));
    }
}

//! The recovery scan: after a load, a promotion, or when the module was loaded, every
//! database is scanned for hashes that could be locks. No command has named them yet, and
//! their leases must end on time all the same (`lock/core/stock.rs`).
//!
//! By the timer, in slices that no client notices, while the gate is open. Where a key is
//! renamed or moved meanwhile it is looked at by its new name; what else is new since
//! the walk began is not there from before.

use super::key_events;
use crate::config;
use crate::lock::kind::{self, Hash};
use crate::lock::{Gate, Key, Kind, Look, Slot};
use crate::server::keys::slots;
use crate::server::run::gate;
use crate::server::shell::ServerShell;
use crate::server::state::{clock, DatabaseWalk, Task};
use crate::server::sys::{Access, Ctx, MachineUs, OpenKey, Scan, Selected, Text, Type};

/// A slice ends when it has gone on for so long: one step more, and it is no longer than a
/// ms.
const SLICE_US: i64 = 800;

/// So many places of the table are walked before a look at the clock.
const STEPS: usize = 8;

/// So many keys are forgotten, or looked at by name, before a look at the clock.
const BATCH: usize = 32;

/// A hash of one field is looked at in so many places.
const PLACES: usize = 64;

/// A data set may be there that nobody has walked. Whether it is to be: on a master only,
/// for a replica may do nothing about it. The timer is armed by the caller, or by the next
/// cron.
pub fn begin(shell: &ServerShell, ctx: Ctx<'_>) -> bool {
    let mut dbs = (0..).map_while(|db| ctx.keys_in(db));
    let begins = shell.situation.master.get() && config::scans_for_recovery() && dbs.any(|n| n > 0);
    if begins {
        shell.recovery.begin();
    }
    begins
}

/// The same after a load, or a promotion.
pub fn begin_now(shell: &ServerShell, ctx: Ctx<'_>) {
    if begin(shell, ctx) {
        shell.alarm.arm(ctx, clock::now(), 0);
    }
}

/// The setting was changed.
pub fn set(shell: &ServerShell, ctx: Ctx<'_>) {
    if config::scans_for_recovery() {
        return begin_now(shell, ctx);
    }
    if let Some(all) = shell.core.ask(|core| core.begin_to_forget()) {
        shell.recovery.put(Task::Forget(all));
        shell.alarm.arm(ctx, clock::now(), 0);
    }
}

/// The next slice, if one is due and the gate is open.
pub fn go_on(shell: &ServerShell, ctx: Ctx<'_>) {
    let start = MachineUs::now();
    let is_due = shell.recovery.next_ms() == Some(0);
    if !is_due || gate::look(&shell.pulse, ctx, false) != Gate::Open {
        return;
    }
    let end = MachineUs(start.0.saturating_add(SLICE_US));
    let mut now = start;
    while now < end {
        // Taken out: what a step calls may bring an event, which may begin anew.
        let Some(mut task) = shell.recovery.take() else {
            break;
        };
        let more = match &mut task {
            Task::Walk(walk) => go_on_walking(shell, ctx, walk),
            Task::Forget(all) => {
                let forget = |core: &mut crate::lock::Core| core.forget_presumed(all, BATCH);
                shell.core.change(forget).unwrap_or(false)
            }
        };
        if more && shell.recovery.next_ms().is_none() {
            shell.recovery.put(task);
        }
        now = MachineUs::now();
    }
    shell.recovery.rest(start, now);
}

/// Some steps. Whether any are left.
fn go_on_walking(shell: &ServerShell, ctx: Ctx<'_>, walk: &mut DatabaseWalk) -> bool {
    if !config::scans_for_recovery() {
        return false;
    }
    let rest = walk.arrived.len().saturating_sub(BATCH);
    let arrived = walk.arrived.split_off(rest).into_iter();
    let mut found: Vec<_> = arrived.map(|key| (look_by_name(ctx, &key), key)).collect();
    let (db, mut scan) = match walk.current.take() {
        Some(current) => current,
        None => match (walk.next_db(), Scan::new()) {
            (db, Some(scan)) if ctx.keys_in(db).is_some() => (db, scan),
            _ => {
                let more = rest > 0 || walk.goes_round();
                return take_in(shell, ctx, found) && more;
            }
        },
    };
    let (mut scanned, mut more) = (0_u64, true);
    {
        let _db = Selected::new(ctx, db);
        let mut each = |name: &[u8], open: Option<&OpenKey<'_>>| {
            scanned = scanned.saturating_add(1);
            let look = open.and_then(look);
            found.extend(look.map(|look| (Some(look), Key::new(db, name))));
        };
        for _ in 0..STEPS {
            more = more && scan.step(ctx, &mut each);
        }
    }
    let all = shell.recovery.scanned.get().saturating_add(scanned);
    shell.recovery.scanned.set(all);
    if more {
        walk.current = Some((db, scan));
    }
    take_in(shell, ctx, found)
}

/// Has the core remember what was found. Whether the walk goes on as it is.
fn take_in(shell: &ServerShell, ctx: Ctx<'_>, found: Vec<(Option<Look>, Key)>) -> bool {
    let now = clock::now_by_wall();
    for (look, key) in found {
        let Some(look) = look else {
            continue;
        };
        if shell.server.cluster && slots::whose(ctx, &key) == Slot::Others {
            continue;
        }
        let most = config::recovery_scan_max();
        let presumed = shell.core.change(|core| {
            let room = core.presumed() < most;
            (room, room && core.presume(now, &key, &look))
        });
        match presumed {
            Some((false, _)) => {
                ctx.notice(&format!(
                    "rlock: the recovery scan ends: it found {most} keys that could be locks, which \
                     is rlock.recovery-scan-max; others are found when a command uses them"
                ));
                return false;
            }
            Some((_, true)) => {
                if matches!(look.kind, Kind::Permits(_)) {
                    key_events::watch_hashes(shell, ctx);
                }
                let were_observed = shell.subscriptions.keys.get();
                key_events::watch(shell, ctx);
                if !were_observed && shell.subscriptions.keys.get() {
                    // Until now no event has said where keys went.
                    shell.recovery.begin();
                    return false;
                }
            }
            _ => {}
        }
    }
    true
}

/// A key that could be a lock, without any look at who holds it.
fn look(open: &OpenKey<'_>) -> Option<Look> {
    if open.kind()? != Type::Hash {
        return None;
    }
    let expires = open.expires()?;
    let look = kind::look(&Glance(open), &[], Some(expires));
    (!matches!(look.kind, Kind::Free | Kind::Foreign(_))).then_some(look)
}

fn look_by_name(ctx: Ctx<'_>, key: &Key) -> Option<Look> {
    let name = Text::new(&key.name)?;
    let _db = Selected::new(ctx, key.db);
    look(&OpenKey::new(ctx, &name, Access::Read)?)
}

/// A hash, of which no more is looked at than distinguishes a lock from others.
struct Glance<'a>(&'a OpenKey<'a>);

impl Hash for Glance<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn field<T>(&self, name: &[u8], read: impl FnOnce(&[u8]) -> T) -> Option<T> {
        // Nobody asks whose it is.
        let name = (!name.is_empty()).then(|| Text::new(name)).flatten()?;
        let value = self.0.field(&name)?;
        Some(read(value.bytes()))
    }

    fn some_fields(&self, steps: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
        self.0.fields_within(steps.min(PLACES))
    }
}

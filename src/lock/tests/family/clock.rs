//! Time goes by, and what was noted is read.

use super::compare_sessions::closed;
use super::model::Hold;
use super::others::Fields;
use super::world::World;
use crate::lock;

impl World {
    pub fn let_pass(&mut self, us: i64, cycle: bool, fires: bool) {
        self.pass(us, us);
        if cycle {
            self.shell.expire_cycle(&self.places);
        }
        if fires || !self.may_be_late() {
            self.tick();
        } else {
            self.overdue = true;
        }
    }

    pub fn shut(&mut self, us: i64) {
        self.pass(us, us);
        self.shell.lapse();
        self.model.lapse();
        let closed = closed(self, &self.shell.told);
        assert_eq!(closed, self.model.lost, "connections to be closed");
        self.tick();
    }

    pub fn set_clock(&mut self, ms: i64) {
        if self.model.watchdog_max == 0 {
            // What ran out stays so: nothing comes back to life.
            self.shell.expire_cycle(&self.places);
            self.shell.read_notes();
            self.model.listen();
            if !self.come_back(ms) {
                self.pass(ms * 1000, 0);
            }
            self.tick();
        }
    }

    /// Left out: permits that are over by what their fields say, and would not be by a clock
    /// set back. Of an owner that rlock has forgotten (it was a replica) it ends them when it
    /// looks at the lock, and nobody has.
    fn come_back(&self, ms: i64) -> bool {
        let now = self.model.now_ms();
        let comes_back = |holder: &lock::Holder| {
            let ends = holder.lease.end();
            ends.is_some_and(|at| at.0 < now && at.0 >= now + ms)
        };
        let fields = self.places.iter().filter_map(|at| self.shell.fields(*at));
        let mut pools = fields.filter(|fields: &&Fields| {
            let kind = lock::kind::look(*fields, &[], None).kind;
            matches!(kind, lock::Kind::Permits(_))
        });
        pools.any(|fields| {
            let holders = lock::kind::holders(fields, None, usize::MAX);
            holders.iter().any(comes_back)
        })
    }

    pub fn read(&mut self) {
        if std::mem::take(&mut self.unread) {
            self.shell.read_notes();
            self.model.settle();
            self.model.listen();
        }
    }

    pub fn tick(&mut self) {
        self.shell.tick();
        self.model.tick();
        self.unread = false;
        self.overdue = false;
    }

    /// Left out: a watched lease that has ended, for which it matters who looks
    /// first; a BLOCK time that is over, whose request stands in the way of others
    /// still; one who waits for many keys, which are not all looked at; who may be silent; and who
    /// is to be told again that somebody waits.
    fn may_be_late(&self) -> bool {
        let model = &self.model;
        let over = |hold: &Hold| {
            let watched = model.watched(hold.place, hold.owner).is_some();
            watched && model.ends(hold.place, hold.owner) < model.now_ms()
        };
        let timed_out = |until: i64| until <= model.mono_us;
        let mut queue = model.queue.iter();
        model.hearing.beats.is_empty()
            && !model.is_to_hint()
            && !model.holds.iter().any(over)
            && !queue.any(|w| w.ask.keys.len() > 1 || w.until.is_some_and(timed_out))
    }

    pub fn pass(&mut self, wall: i64, mono: i64) {
        self.shell.pass_us(wall, mono);
        self.model.wall_us += wall;
        self.model.mono_us += mono;
    }
}

//! What the machine has for a round, beside servers: where something is missing, a line
//! says once what is left out.

use std::path::{Path, PathBuf};

use crate::disk;
use crate::plan::{Act, Plan};
use crate::shim;

pub struct Means {
    pub module: PathBuf,
    /// The library that steps clocks.
    shim: Option<PathBuf>,
    /// Small disks can be mounted.
    disks: bool,
}

impl Means {
    pub fn find(module: &Path, dir: &Path) -> Self {
        let shim = shim::build(dir);
        if shim.is_none() {
            println!("clocks are not stepped: there is no C compiler");
        }
        let disks = disk::keep_to_ourselves(dir);
        if let Err(error) = &disks {
            println!("no disk is filled: none can be mounted ({error})");
        }
        Self {
            module: module.to_owned(),
            shim,
            disks: disks.is_ok(),
        }
    }

    /// Takes out what cannot be done.
    pub fn fit(&self, plan: &mut Plan) {
        plan.schedule.retain(|(_, act)| match act {
            Act::Clock(..) => self.shim.is_some(),
            Act::Full(..) => self.disks,
            _ => true,
        });
    }

    /// Only where a clock is stepped: it takes the server a little longer to read one.
    pub fn shim(&self, plan: &Plan) -> Option<&Path> {
        let steps = plan.has(|act| matches!(act, Act::Clock(..)));
        self.shim.as_deref().filter(|_| steps)
    }

    /// How large the servers' disks are to be, MB, if one of them is filled.
    pub fn disk_mb(plan: &Plan) -> Option<u64> {
        let fills = plan.has(|act| matches!(act, Act::Full(..)));
        fills.then_some(24 + plan.seconds)
    }
}

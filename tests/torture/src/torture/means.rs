//! What the machine has for a round, beside servers: where something is missing, a line
//! says once what is left out.

use std::path::{Path, PathBuf};

use crate::plan::{Act, Plan};
use crate::shim;

pub struct Means {
    pub module: PathBuf,
    /// The library that steps clocks.
    shim: Option<PathBuf>,
}

impl Means {
    pub fn find(module: &Path, dir: &Path) -> Self {
        let shim = shim::build(dir);
        if shim.is_none() {
            println!("clocks are not stepped: there is no C compiler");
        }
        let module = module.to_owned();
        Self { module, shim }
    }

    /// Takes out what cannot be done.
    pub fn fit(&self, plan: &mut Plan) {
        let can = |act: &Act| !matches!(act, Act::Clock(..)) || self.shim.is_some();
        plan.schedule.retain(|(_, act)| can(act));
    }

    /// Only where a clock is stepped: it takes the server a little longer to read one.
    pub fn shim(&self, plan: &Plan) -> Option<&Path> {
        let mut acts = plan.schedule.iter().map(|(_, act)| act);
        let steps = acts.any(|act| matches!(act, Act::Clock(..)));
        self.shim.as_deref().filter(|_| steps)
    }
}

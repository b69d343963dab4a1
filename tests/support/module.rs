//! The module, loaded and unloaded.

use redis::Value;

use super::reply::{bulk, map, text};
use super::{poll, Ask, RawClient, BOUND};

impl RawClient {
    /// Where the server has the module from.
    #[track_caller]
    pub fn module_path(&mut self) -> String {
        let mut modules = self.list("MODULE LIST").into_iter().map(map);
        let rlock = modules.find(|module| module["name"] == bulk("rlock"));
        text(rlock.expect("it is loaded")["path"].clone())
    }

    /// Unloads it, which is refused until no timer runs.
    #[track_caller]
    pub fn unload_module(&mut self) {
        let mut last = Value::Nil;
        let done = poll(BOUND, || {
            last = self.ask("MODULE UNLOAD rlock");
            (last == Value::Okay).then_some(())
        });
        assert!(done.is_some(), "{last:?}");
    }
}

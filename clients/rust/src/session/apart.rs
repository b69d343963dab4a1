//! What a task of the program waits for here, apart from how it waits.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};

use tokio::task::unconstrained;

/// Goes on where the program's task may not. tokio has a task yield when its budget is used up, and
/// says until then that nothing is ready: whoever blocks in one, as by the blocking face, would
/// wait for ever. And the program's waker is called by the threads that serve the connections:
/// its panic would end what they do.
pub(crate) async fn apart<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(unconstrained(future));
    std::future::poll_fn(|context| {
        let waker = Waker::from(Arc::new(Theirs(Some(context.waker().clone()))));
        future.as_mut().poll(&mut Context::from_waker(&waker))
    })
    .await
}

struct Theirs(Option<Waker>);

impl Wake for Theirs {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if let Some(waker) = &self.0 {
            _ = catch_unwind(AssertUnwindSafe(|| waker.wake_by_ref()));
        }
    }
}

impl Drop for Theirs {
    /// With the last waker of a task the task may be dropped.
    fn drop(&mut self) {
        let waker = self.0.take();
        _ = catch_unwind(AssertUnwindSafe(|| drop(waker)));
    }
}

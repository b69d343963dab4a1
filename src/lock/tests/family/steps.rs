//! Random runs as they are drawn, and shown.

use proptest::prelude::*;

use super::ops::{op, Op};

/// A whole run, shown with one step a line.
#[derive(Clone)]
pub struct Steps(pub Vec<Op>);

impl std::fmt::Debug for Steps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|op| write!(f, "\n  {op:?}"))
    }
}

/// A run that fails is made shorter, step by step; the steps stay as they are.
pub fn steps(most: usize) -> impl Strategy<Value = Steps> {
    let with_close = |op| match op {
        Op::Resend(seat) => vec![Op::Close(seat), Op::Resend(seat)],
        op => vec![op],
    };
    let op = op().no_shrink().prop_map(with_close);
    prop::collection::vec(op, 1..most).prop_map(|ops| Steps(ops.concat()))
}

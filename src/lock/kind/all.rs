//! All kinds of locks, for decisions.

use super::lock_kind::Kinds;
use super::permits::Permits;
use super::plain::Plain;
use super::read_write::ReadWrite;
use crate::lock::decision::AnyKind;

pub static KINDS: Kinds<AnyKind> = Kinds {
    plain: &Plain,
    read_write: &ReadWrite,
    permits: &Permits,
};

//! Permits: locks that several may hold at once, up to a limit.

mod experiment;

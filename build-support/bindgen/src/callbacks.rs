//! The trait that the build script of redis-module implements. Nothing calls
//! it: its answers are already in the bindings.

pub trait ParseCallbacks: std::fmt::Debug {
    fn int_macro(&self, _name: &str, _value: i64) -> Option<IntKind> {
        None
    }
}

pub enum IntKind {
    Int,
    U64,
    Custom { name: &'static str, is_signed: bool },
}

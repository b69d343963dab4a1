//! Whether an item is for tests only.

use syn::punctuated::Punctuated;
use syn::{Attribute, Meta, Token};

/// Whether the attributes keep what they stand on out of every build that is not
/// for tests: `#[test]`, `#[cfg(test)]`, `#[cfg(all(test, unix))]`; not
/// `#[cfg(any(test, debug_assertions))]`.
pub fn only_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let path = attribute.path();
        let out = |condition: Meta| !Possible::of(&condition).yes;
        path.is_ident("test") || path.is_ident("cfg") && attribute.parse_args().is_ok_and(out)
    })
}

/// What a condition can come to where `test` is not set and all else is open.
struct Possible {
    yes: bool,
    no: bool,
}

impl Possible {
    const OPEN: Self = Possible {
        yes: true,
        no: true,
    };

    fn of(condition: &Meta) -> Self {
        match condition {
            Meta::Path(path) if path.is_ident("test") => Possible {
                yes: false,
                no: true,
            },
            Meta::List(list) => {
                let inner = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated);
                let inner: Vec<Self> = match &inner {
                    Ok(inner) => inner.iter().map(Self::of).collect(),
                    Err(_) => return Self::OPEN,
                };
                let (all, any) = (Self::all(&inner), Self::any(&inner));
                match list.path.get_ident().map(ToString::to_string).as_deref() {
                    Some("all") => all,
                    Some("any") => any,
                    Some("not") => Possible {
                        yes: any.no,
                        no: any.yes,
                    },
                    _ => Self::OPEN,
                }
            }
            _ => Self::OPEN,
        }
    }

    fn all(inner: &[Self]) -> Self {
        Possible {
            yes: inner.iter().all(|one| one.yes),
            no: inner.iter().any(|one| one.no),
        }
    }

    fn any(inner: &[Self]) -> Self {
        Possible {
            yes: inner.iter().any(|one| one.yes),
            no: inner.iter().all(|one| one.no),
        }
    }
}

//! Reads a command's arguments from left to right.

use crate::error::{shown, Error};
use crate::lock::{Ask, ClientId, Mode, Wait, MOST_KEYS};
use crate::server::{Call, Command};

/// The longest lease and BLOCK time, ms: what a double counts exactly.
const MOST_MS: i64 = (1 << 53) - 1;

/// The longest owner id, bytes.
const LONGEST_OWNER: usize = 512;

/// An owner as it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner<'a> {
    Named(&'a [u8]),
    /// `*`: this connection.
    Connection,
}

impl<'a> Owner<'a> {
    /// The owner's id. `*` is refused where all callers share one client.
    pub fn id(&self, call: &Call<'_>) -> Result<std::borrow::Cow<'a, [u8]>, Error> {
        match self {
            Self::Named(id) => Ok((*id).into()),
            Self::Connection => match call.own_id() {
                Some(id) => Ok(id.into_bytes().into()),
                None => Err(Error::new(
                    "owner * means a connection, and a script, a function or a module has none \
                     of its own: give an owner id",
                )),
            },
        }
    }
}

/// What ACQUIRE and MACQUIRE can be told besides whose lock it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    block: Option<Wait>,
    once: bool,
    watch: bool,
}

impl Options {
    /// The request, for a plain lock; its owner and lease are to be filled in.
    pub fn ask<'a>(self, call: &Call<'_>, owner: &Owner<'_>) -> Result<Ask<'a>, Error> {
        let client = if self.watch {
            Some(watchdogs_connection(call)?)
        } else {
            call.client()
        };
        Ok(Ask {
            db: call.db(),
            owner: &[],
            client,
            mode: Mode::Exclusive,
            lease: 0,
            once: self.once || *owner == Owner::Connection,
            watch: self.watch,
            wait: self.block.filter(|_| call.may_block()),
        })
    }
}

/// The connection that a watchdog hold belongs to. Refused where all callers share
/// one client.
pub fn watchdogs_connection(call: &Call<'_>) -> Result<ClientId, Error> {
    call.connection().ok_or_else(|| {
        Error::new(
            "WATCHDOG binds a hold to a connection, and a script, a function or a module has \
             none of its own: leave it out and RENEW the lease",
        )
    })
}

/// The mode that a keyword names.
pub fn mode(word: &[u8]) -> Option<Mode> {
    match word {
        b"READ" => Some(Mode::Read),
        b"WRITE" => Some(Mode::Write),
        _ => None,
    }
}

pub struct Args<'a, I: Iterator<Item = &'a [u8]>> {
    left: I,
    usage: &'static str,
}

/// The arguments of a call.
pub fn of<'a, C: Command>(
    call: &Call<'a>,
) -> Args<'a, impl Iterator<Item = &'a [u8]> + use<'a, C>> {
    Args {
        left: call.args(),
        usage: C::USAGE,
    }
}

impl<'a, I: Iterator<Item = &'a [u8]>> Args<'a, I> {
    /// The next argument, which must be there.
    pub fn next(&mut self) -> Result<&'a [u8], Error> {
        self.left.next().ok_or_else(|| self.wrong_number())
    }

    /// The next keyword, in upper case; `None` at the end.
    pub fn keyword(&mut self) -> Option<(Vec<u8>, &'a [u8])> {
        let word = self.left.next()?;
        Some((word.to_ascii_uppercase(), word))
    }

    /// No argument is left.
    pub fn end(&mut self) -> Result<(), Error> {
        match self.left.next() {
            None => Ok(()),
            Some(_) => Err(self.wrong_number()),
        }
    }

    /// An owner id, or `*`.
    pub fn owner(&mut self) -> Result<Owner<'a>, Error> {
        let owner = self.next()?;
        if owner == b"*" {
            return Ok(Owner::Connection);
        }
        if owner.is_empty() || owner.len() > LONGEST_OWNER {
            return Err(Error::new(format!(
                "the owner must be 1 to {LONGEST_OWNER} bytes long, got {}",
                owner.len()
            )));
        }
        if owner == b"mode" || owner.ends_with(b":write") {
            return Err(Error::new(format!(
                "the owner must not be 'mode' or end in ':write', which have a meaning in the \
                 hash of a lock; got {}",
                shown(owner)
            )));
        }
        Ok(Owner::Named(owner))
    }

    /// A lease, ms.
    pub fn lease(&mut self) -> Result<i64, Error> {
        let given = self.next()?;
        number(given, 1).ok_or_else(|| {
            Error::new(format!(
                "the lease must be a whole number of ms from 1 to {MOST_MS}, got {}",
                shown(given)
            ))
        })
    }

    /// The time after BLOCK, ms; 0: for ever.
    fn block(&mut self) -> Result<Wait, Error> {
        let Some(given) = self.left.next() else {
            return Err(Error::new(format!(
                "syntax error: BLOCK needs a number of ms; usage: {}",
                self.usage
            )));
        };
        number(given, 0).map(Wait::of).ok_or_else(|| {
            Error::new(format!(
                "BLOCK must be a whole number of ms from 0 (for ever) to {MOST_MS}, got {}",
                shown(given)
            ))
        })
    }

    /// One of the keywords of [`Options`].
    pub fn option(
        &mut self,
        word: &[u8],
        given: &[u8],
        options: &mut Options,
    ) -> Result<(), Error> {
        match word {
            b"BLOCK" if options.block.is_none() => options.block = Some(self.block()?),
            b"WATCHDOG" if !options.watch => options.watch = true,
            b"ONCE" if !options.once => options.once = true,
            _ => return Err(self.syntax(given)),
        }
        Ok(())
    }

    /// A number of keys, and the keys, each once.
    pub fn keys(&mut self) -> Result<Vec<&'a [u8]>, Error> {
        let given = self.next()?;
        let most = i64::try_from(MOST_KEYS).unwrap_or(i64::MAX);
        let count = number(given, 1).filter(|count| *count <= most);
        let Some(count) = count else {
            return Err(Error::new(format!(
                "numkeys must be a whole number from 1 to {MOST_KEYS}, got {}",
                shown(given)
            )));
        };
        let mut keys = Vec::new();
        let mut seen = std::collections::HashSet::new();
        for _ in 0..count {
            let key = self.next()?;
            if !seen.insert(key) {
                return Err(Error::new(format!(
                    "the key {} is given twice; each must be given once",
                    shown(key)
                )));
            }
            keys.push(key);
        }
        Ok(keys)
    }

    /// `COUNT n` if it is there, and then the end.
    pub fn count(&mut self) -> Result<Option<usize>, Error> {
        let Some((word, given)) = self.keyword() else {
            return Ok(None);
        };
        if word != b"COUNT" {
            return Err(self.syntax(given));
        }
        let given = self.next()?;
        let Some(count) = number(given, 1) else {
            return Err(Error::new(format!(
                "COUNT must be a whole number from 1 to {MOST_MS}, got {}",
                shown(given)
            )));
        };
        match self.keyword() {
            Some((_, given)) => Err(self.syntax(given)),
            None => Ok(Some(usize::try_from(count).unwrap_or(usize::MAX))),
        }
    }

    /// A keyword that is not one, or came twice.
    pub fn syntax(&self, word: &[u8]) -> Error {
        Error::new(format!(
            "syntax error at {}: each keyword once, none but these; usage: {}",
            shown(word),
            self.usage
        ))
    }

    fn wrong_number(&self) -> Error {
        Error::new(format!("wrong number of arguments; usage: {}", self.usage))
    }
}

/// A decimal number without sign, blanks or leading zeros, as the server reads it.
fn number(text: &[u8], least: i64) -> Option<i64> {
    let digits = std::str::from_utf8(text).ok()?;
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    if !plain || (digits.len() > 1 && digits.starts_with('0')) {
        return None;
    }
    let value: i64 = digits.parse().ok()?;
    (least..=MOST_MS).contains(&value).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_what_the_server_takes_for_one() {
        assert_eq!(number(b"0", 0), Some(0));
        assert_eq!(number(b"9007199254740991", 1), Some(MOST_MS));
        for bad in [
            "",
            "-1",
            "+1",
            "1.5",
            "1e3",
            " 1",
            "1 ",
            "01",
            "0x1",
            "9007199254740992",
        ] {
            assert_eq!(number(bad.as_bytes(), 0), None, "{bad:?}");
        }
        assert_eq!(number(b"0", 1), None);
        assert_eq!(number(b"99999999999999999999999", 0), None);
    }
}

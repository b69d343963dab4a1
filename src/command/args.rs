//! Reads a command's arguments from left to right.

use crate::config::MOST_MS;
use crate::error::{shown, Error};
use crate::lock::{Ask, ClientId, Ended, Mode, Renewal, Wait, MOST_KEYS};
use crate::redisson::LONGEST_OWNER;
use crate::server::{Call, Command};

const WRONG_NUMBER: &str = "wrong number of arguments";

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

/// What the keywords at the end of a command have said.
#[derive(Debug, Default)]
pub struct Options {
    mode: Option<Mode>,
    block: Option<Wait>,
    watch: bool,
    once: bool,
    all: bool,
    pub count: Option<usize>,
}

impl Options {
    pub fn mode(&self) -> Mode {
        self.mode.unwrap_or(Mode::Exclusive)
    }

    /// The request of an owner, whose id is `id`.
    pub fn ask<'a>(
        &self,
        call: &Call<'_>,
        owner: &Owner<'_>,
        id: &'a [u8],
        lease: i64,
    ) -> Result<Ask<'a>, Error> {
        let watchdog = self.watchdog(call)?;
        Ok(Ask {
            db: call.db(),
            owner: id,
            client: watchdog.or_else(|| call.client()),
            mode: self.mode(),
            lease,
            once: self.once || *owner == Owner::Connection,
            watch: self.watch,
            wait: self.block.filter(|_| call.may_block()),
        })
    }

    /// The end of holds of an owner, whose id is `id`.
    pub fn ended<'a>(&self, call: &Call<'_>, id: &'a [u8]) -> Ended<'a> {
        Ended {
            db: call.db(),
            owner: id,
            client: call.client(),
            mode: self.mode(),
            all: self.all,
        }
    }

    /// The renewal of an owner's lease, ms.
    pub fn renewal<'a>(
        &self,
        call: &Call<'_>,
        id: &'a [u8],
        lease: i64,
    ) -> Result<Renewal<'a>, Error> {
        Ok(Renewal {
            db: call.db(),
            owner: id,
            mode: self.mode(),
            lease,
            watch: self.watchdog(call)?,
        })
    }

    /// With WATCHDOG the connection that the hold belongs to. Refused where all callers
    /// share one client.
    fn watchdog(&self, call: &Call<'_>) -> Result<Option<ClientId>, Error> {
        if !self.watch {
            return Ok(None);
        }
        call.connection().map(Some).ok_or_else(|| {
            Error::new(
                "WATCHDOG binds a hold to a connection, and a script, a function or a module has \
                 none of its own: leave it out and RENEW the lease",
            )
        })
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
        usage: C::SPEC.usage,
    }
}

impl<'a, I: Iterator<Item = &'a [u8]>> Args<'a, I> {
    /// The next argument, which must be there.
    pub fn next(&mut self) -> Result<&'a [u8], Error> {
        self.left.next().ok_or_else(|| self.wrong(WRONG_NUMBER))
    }

    /// No argument is left.
    pub fn end(&mut self) -> Result<(), Error> {
        match self.left.next() {
            None => Ok(()),
            Some(_) => Err(self.wrong(WRONG_NUMBER)),
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
        let what = "the lease must be a whole number of ms from 1";
        number(self.next()?, 1, MOST_MS, what)
    }

    /// The time after BLOCK, ms; 0: for ever.
    fn block(&mut self) -> Result<Wait, Error> {
        let Some(given) = self.left.next() else {
            return Err(self.wrong("syntax error: BLOCK needs a number of ms"));
        };
        let what = "BLOCK must be a whole number of ms from 0 (for ever)";
        number(given, 0, MOST_MS, what).map(Wait::of)
    }

    /// The keywords at the end, each at most once and in any order: those that this
    /// command takes.
    pub fn options(&mut self, taken: &[&str]) -> Result<Options, Error> {
        let mut options = Options::default();
        while let Some(given) = self.left.next() {
            let same = |word: &&&str| given.eq_ignore_ascii_case(word.as_bytes());
            match taken.iter().find(same) {
                Some(&"READ") if options.mode.is_none() => options.mode = Some(Mode::Read),
                Some(&"WRITE") if options.mode.is_none() => options.mode = Some(Mode::Write),
                Some(&"BLOCK") if options.block.is_none() => options.block = Some(self.block()?),
                Some(&"WATCHDOG") if !options.watch => options.watch = true,
                Some(&"ONCE") if !options.once => options.once = true,
                Some(&"ALL") if !options.all => options.all = true,
                Some(&"COUNT") if options.count.is_none() => options.count = Some(self.count()?),
                _ => {
                    let given = shown(given);
                    return Err(self.wrong(&format!(
                        "syntax error at {given}: each keyword once, none but these"
                    )));
                }
            }
        }
        Ok(options)
    }

    /// A number of keys, and the keys, each once.
    pub fn keys(&mut self) -> Result<Vec<&'a [u8]>, Error> {
        let most = i64::try_from(MOST_KEYS).unwrap_or(i64::MAX);
        let what = "numkeys must be a whole number from 1";
        let count = number(self.next()?, 1, most, what)?;
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

    /// The number after COUNT.
    fn count(&mut self) -> Result<usize, Error> {
        let what = "COUNT must be a whole number from 1";
        let count = number(self.next()?, 1, MOST_MS, what)?;
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }

    /// What is wrong, and how the command is called.
    fn wrong(&self, what: &str) -> Error {
        Error::new(format!("{what}; usage: {}", self.usage))
    }
}

/// A number from `least` to `most`. `what` begins the error where it is none.
fn number(given: &[u8], least: i64, most: i64, what: &str) -> Result<i64, Error> {
    let value = decimal(given).filter(|value| (least..=most).contains(value));
    value.ok_or_else(|| Error::new(format!("{what} to {most}, got {}", shown(given))))
}

/// A decimal number without sign, blanks or leading zeros, as the server reads it.
fn decimal(text: &[u8]) -> Option<i64> {
    let digits = std::str::from_utf8(text).ok()?;
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    if !plain || (digits.len() > 1 && digits.starts_with('0')) {
        return None;
    }
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_what_the_server_takes_for_one() {
        let number = |text: &[u8], least| number(text, least, MOST_MS, "it").ok();
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

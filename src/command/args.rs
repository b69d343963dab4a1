//! Reads a command's arguments from left to right.

use std::fmt::Display;
use std::iter::Peekable;

use super::options::{Options, OwnerArg};
use crate::config::MOST_MS;
use crate::error::{shown, Error};
use crate::lock::kind::whole;
use crate::lock::{Aim, Fence, Mode, Only, Pool, Token, Wait, MOST_KEYS};
use crate::redisson::LONGEST_OWNER;
use crate::server::{Command, CommandCall, Quick};

/// A tag is at most so many characters long, a channel so many bytes.
const LONGEST_TAG: usize = 64;
const LONGEST_CHANNEL: usize = 1024;

const WRONG_NUMBER: &str = "wrong number of arguments";

/// The mode of permits, in a command that takes no number of them.
pub const PERMITS: &str = "PERMITS";

/// How many permits are wanted, for a command that takes LIMIT.
pub const PERMITS_WANTED: &str = "PERMITS k";

/// The mode, and how many are given back.
pub const PERMITS_BACK: &str = "PERMITS [k]";

pub struct Args<'a, I: Iterator<Item = &'a [u8]>> {
    left: Peekable<I>,
    usage: &'static str,
}

/// The arguments of a call.
pub fn of<'a, C: Command>(
    call: &CommandCall<'a>,
) -> Args<'a, impl Iterator<Item = &'a [u8]> + use<'a, C>> {
    Args {
        left: call.args().peekable(),
        usage: C::SPEC.usage,
    }
}

impl<'a, I: Iterator<Item = &'a [u8]>> Args<'a, I> {
    /// The next argument, which must be there.
    pub fn next(&mut self) -> Result<&'a [u8], Error> {
        self.left.next().ok_or_else(|| self.wrong(WRONG_NUMBER))
    }

    /// The next keyword, if there is one more.
    pub fn keyword(&mut self) -> Option<&'a [u8]> {
        self.left.next()
    }

    /// What stands behind a keyword.
    pub fn behind(&mut self, word: &str) -> Result<&'a [u8], Error> {
        self.needs(word, "something behind it")
    }

    /// The same, which is `what`.
    fn needs(&mut self, word: &str, what: &str) -> Result<&'a [u8], Error> {
        let wrong = || format!("syntax error: {word} needs {what}");
        self.left.next().ok_or_else(|| self.wrong(&wrong()))
    }

    /// A keyword that the command does not take, or not once more.
    pub fn unknown(&self, given: &[u8]) -> Error {
        let given = shown(given);
        self.wrong(&format!(
            "syntax error at {given}: each keyword once, none but these"
        ))
    }

    /// A time behind a keyword, ms.
    pub fn ms(&mut self, word: &str) -> Result<i64, Error> {
        let what = format_args!("{word} must be a whole number of ms from 0");
        number(self.behind(word)?, 0, MOST_MS, what)
    }

    /// No argument is left.
    pub fn end(&mut self) -> Result<(), Error> {
        match self.left.next() {
            None => Ok(()),
            Some(_) => Err(self.wrong(WRONG_NUMBER)),
        }
    }

    /// An owner id, or `*`.
    pub fn owner(&mut self) -> Result<OwnerArg<'a>, Error> {
        let owner = self.next()?;
        if owner == b"*" {
            return Ok(OwnerArg::Connection);
        }
        if is_plain(owner) {
            return Ok(OwnerArg::Named(owner));
        }
        if owner.is_empty() || owner.len() > LONGEST_OWNER {
            return Err(Error::new(format!(
                "the owner must be 1 to {LONGEST_OWNER} bytes long, got {}",
                owner.len()
            )));
        }
        Err(Error::new(format!(
            "the owner must not be 'mode' or end in ':write', which have a meaning in the hash of \
             a lock; got {}",
            shown(owner)
        )))
    }

    /// A lease, ms.
    pub fn lease(&mut self) -> Result<i64, Error> {
        lease(self.next()?)
    }

    /// For how many ms a connection may be silent.
    pub fn patience(&mut self) -> Result<i64, Error> {
        let what = "the patience must be a whole number of ms from 1";
        number(self.next()?, 1, MOST_MS, what)
    }

    /// The token after IFTOKEN or FENCE.
    fn token(&mut self, word: &str) -> Result<Token, Error> {
        let given = self.needs(word, "a token")?;
        let what = "the token must be a whole number from 1";
        number(given, 1, Token::MOST.0, what).map(Token)
    }

    /// Whose lock is meant, at the end of a command: `IFOWNER owner` or `IFTOKEN token`.
    pub fn aim(&mut self, call: &CommandCall<'_>) -> Result<Option<Aim<'a>>, Error> {
        let Some(word) = self.left.next() else {
            return Ok(None);
        };
        let aim = match word.to_ascii_uppercase().as_slice() {
            b"IFOWNER" => Aim::Owner(self.owner()?.id(call)?),
            b"IFTOKEN" => Aim::Token(self.token("IFTOKEN")?),
            _ => return Err(self.unknown(word)),
        };
        match self.left.next() {
            Some(more) => Err(self.unknown(more)),
            None => Ok(Some(aim)),
        }
    }

    /// The time after BLOCK or QUEUE, ms; 0: for ever.
    fn wait(&mut self, word: &str) -> Result<i64, Error> {
        let given = self.needs(word, "a number of ms")?;
        let what = format_args!("{word} must be a whole number of ms from 0 (for ever)");
        number(given, 0, MOST_MS, what)
    }

    /// The channel and the tag after NOTIFY.
    fn notify(&mut self) -> Result<(&'a [u8], &'a [u8]), Error> {
        let what = "a channel and a tag";
        let channel = self.needs("NOTIFY", what)?;
        let tag = self.needs("NOTIFY", what)?;
        if channel.is_empty() || channel.len() > LONGEST_CHANNEL {
            return Err(Error::new(format!(
                "the channel must be 1 to {LONGEST_CHANNEL} bytes long, got {}",
                channel.len()
            )));
        }
        let printable = tag.iter().all(u8::is_ascii_graphic);
        if tag.is_empty() || tag.len() > LONGEST_TAG || !printable {
            return Err(Error::new(format!(
                "the tag must be 1 to {LONGEST_TAG} printable ASCII characters without a space, \
                 got {}",
                shown(tag)
            )));
        }
        Ok((channel, tag))
    }

    /// The keywords at the end, each at most once and in any order: those that this
    /// command takes.
    pub fn options(&mut self, taken: &[&str]) -> Result<Options<'a>, Error> {
        let mut options = Options::default();
        while let Some(given) = self.left.next() {
            let same = |word: &&&str| is_word(given, word);
            match taken.iter().find(same) {
                Some(&"READ") if options.mode.is_none() => options.mode = Some(Mode::Read),
                Some(&"WRITE") if options.mode.is_none() => options.mode = Some(Mode::Write),
                Some(&"LIMIT") if options.mode.is_none() => {
                    options.mode = Some(Mode::Permits);
                    options.limit = Some(self.permits("LIMIT")?);
                }
                Some(&PERMITS) if options.mode.is_none() => options.mode = Some(Mode::Permits),
                Some(&PERMITS_WANTED) if options.permits.is_none() => {
                    options.permits = Some(self.permits("PERMITS")?);
                }
                Some(&PERMITS_BACK) if options.mode.is_none() => {
                    options.mode = Some(Mode::Permits);
                    if self.is_number_next(taken) {
                        options.permits = Some(self.permits("PERMITS")?);
                    }
                }
                Some(&"BLOCK") if options.wait.is_none() => {
                    options.wait = Some(Wait::blocked(self.wait("BLOCK")?));
                }
                Some(&"QUEUE") if options.wait.is_none() => {
                    options.wait = Some(Wait::queued(self.wait("QUEUE")?));
                }
                Some(&"NOTIFY") if options.notify.is_none() => {
                    options.notify = Some(self.notify()?);
                }
                Some(&"WANTED") if !options.wanted => options.wanted = true,
                Some(&"WATCHDOG") if !options.watch => options.watch = true,
                Some(&"ONCE") if !options.once => options.once = true,
                Some(&"ALL") if !options.all => options.all = true,
                Some(&"IFHELD") if options.only.is_none() => options.only = Some(Only::Held),
                Some(&"IFTOKEN") if options.only.is_none() => {
                    options.only = Some(Only::Token(self.token("IFTOKEN")?));
                }
                Some(&"FENCE") if options.fence.is_none() => {
                    options.fence = Some(Fence::Raise(self.token("FENCE")?));
                }
                Some(&"TOKEN") if options.fence.is_none() => options.fence = Some(Fence::New),
                Some(&"COUNT") if options.count.is_none() => options.count = Some(self.count()?),
                _ => return Err(self.unknown(given)),
            }
        }
        Ok(options)
    }

    /// The number after LIMIT or PERMITS.
    fn permits(&mut self, word: &str) -> Result<u32, Error> {
        let given = self.needs(word, "a number")?;
        let what = format_args!("{word} must be a whole number from 1");
        let number = number(given, 1, Pool::MOST, what)?;
        Ok(u32::try_from(number).unwrap_or(u32::MAX))
    }

    /// A limit of permits.
    pub fn limit(&mut self) -> Result<i64, Error> {
        let what = "the limit must be a whole number from 1";
        number(self.next()?, 1, Pool::MOST, what)
    }

    /// Whether a number comes next, as far as no keyword does.
    fn is_number_next(&mut self, taken: &[&str]) -> bool {
        let next = self.left.peek();
        next.is_some_and(|given| !taken.iter().any(|word| is_word(given, word)))
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
    pub fn count(&mut self) -> Result<usize, Error> {
        let what = "COUNT must be a whole number from 1";
        let count = number(self.next()?, 1, MOST_MS, what)?;
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }

    /// What is wrong, and how the command is called.
    fn wrong(&self, what: &str) -> Error {
        Error::new(format!("{what}; usage: {}", self.usage))
    }
}

/// Whether a keyword was given, as a command takes it: with what may stand behind it.
fn is_word(given: &[u8], taken: &str) -> bool {
    // As most that are compared.
    let first = |text: &[u8]| text.first().map(u8::to_ascii_uppercase);
    if first(given) != first(taken.as_bytes()) {
        return false;
    }
    let (word, behind) = match taken.as_bytes().split_at_checked(given.len()) {
        Some(parts) => parts,
        None => return false,
    };
    matches!(behind.first(), None | Some(b' ')) && given.eq_ignore_ascii_case(word)
}

/// Whether it can be an owner, and is none that means something else.
fn is_plain(owner: &[u8]) -> bool {
    let is_long = owner.is_empty() || owner.len() > LONGEST_OWNER;
    !is_long && owner != b"*" && owner != b"mode" && !owner.ends_with(b":write")
}

fn lease(given: &[u8]) -> Result<i64, Error> {
    let what = "the lease must be a whole number of ms from 1";
    number(given, 1, MOST_MS, what)
}

/// The key, the owner and the lease of a call that says no more than these.
pub fn of_free<'a>(call: &Quick<'a>) -> Option<(&'a [u8], &'a [u8], i64)> {
    let [key, owner, given] = call.args()?;
    is_plain(owner).then_some((key, owner, lease(given).ok()?))
}

/// The key and the owner of a call that says no more than these.
pub fn of_held<'a>(call: &Quick<'a>) -> Option<(&'a [u8], &'a [u8])> {
    let [key, owner] = call.args()?;
    is_plain(owner).then_some((key, owner))
}

/// A number from `least` to `most`, without sign, blanks or leading zeros, as the server reads
/// it. `what` begins the error where it is none.
fn number(given: &[u8], least: i64, most: i64, what: impl Display) -> Result<i64, Error> {
    let value = whole(given).filter(|value| (least..=most).contains(value));
    value.ok_or_else(|| Error::new(format!("{what} to {most}, got {}", shown(given))))
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

#[cfg(test)]
#[path = "../../tests/hostile/fuzz/args.rs"]
mod hostile;

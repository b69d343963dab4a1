//! RLOCK.LIST: the locks that are held.

use super::args;
use super::cursor;
use super::glob;
use super::info::holder_fields;
use crate::error::Error;
use crate::lock::{Cursor, Held, Now, Wanted};
use crate::server::{Command, CommandCall, KeyArgs, Responder, Spec};

/// How many holders are looked at unless COUNT says otherwise.
const USUAL: usize = 10;

/// No page looks at more, for nobody else is served meanwhile.
const MOST: usize = 250;

/// Longer patterns are refused: a name is looked at as often as a pattern is long.
const LONGEST_PATTERN: usize = 1024;

/// `RLOCK.LIST [CURSOR cursor] [MATCH pattern] [OWNER prefix] [HELD-LONGER ms] [COUNT n]`
///
/// A page of the locks of this database that are held, as far as this server knows: the
/// cursor of the next page, `0` when this was the last, and for each holder a map of `key`,
/// what INFO says of a holder, and `presumed`: 1 for what the recovery scan found and no request
/// has come to, which can be an application's own hash. Only those whose name fits `pattern`, whose owner
/// begins with `prefix`, who have held for more than so many ms, and whose key the caller
/// may read. At most `n` (10; more than 250 are 250) holders are looked at, so that a page can
/// be empty. What is
/// held all the time comes once. Changes nothing.
pub struct ListCommand;

/// The keywords as they were given.
#[derive(Default)]
struct ListOptions<'a> {
    cursor: Option<&'a [u8]>,
    pattern: Option<&'a [u8]>,
    owner: Option<&'a [u8]>,
    held_longer: Option<i64>,
    count: Option<usize>,
}

impl<'a> ListOptions<'a> {
    fn read(call: &CommandCall<'a>) -> Result<Self, Error> {
        let mut args = args::of::<ListCommand>(call);
        let mut options = Self::default();
        while let Some(given) = args.keyword() {
            match given.to_ascii_uppercase().as_slice() {
                b"CURSOR" if options.cursor.is_none() => {
                    options.cursor = Some(args.behind("CURSOR")?);
                }
                b"MATCH" if options.pattern.is_none() => {
                    options.pattern = Some(args.behind("MATCH")?);
                }
                b"OWNER" if options.owner.is_none() => {
                    options.owner = Some(args.behind("OWNER")?);
                }
                b"HELD-LONGER" if options.held_longer.is_none() => {
                    options.held_longer = Some(args.ms("HELD-LONGER")?);
                }
                b"COUNT" if options.count.is_none() => options.count = Some(args.count()?),
                _ => return Err(args.unknown(given)),
            }
        }
        let longest = options.pattern.map_or(0, <[u8]>::len);
        if longest > LONGEST_PATTERN {
            return Err(Error::new(format!(
                "the pattern must be at most {LONGEST_PATTERN} bytes long, got {longest}"
            )));
        }
        Ok(options)
    }
}

impl Command for ListCommand {
    const SPEC: Spec = Spec {
        name: c"rlock.list",
        flags: "readonly",
        acl: "keyspace read slow",
        keys: KeyArgs::None,
        summary: c"Lists the locks that are held",
        complexity: c"O(N) with N the locks that are looked at, at most 250 a call",
        usage: "RLOCK.LIST [CURSOR cursor] [MATCH pattern] [OWNER prefix] [HELD-LONGER ms] \
                [COUNT n]",
    };

    fn run(call: &CommandCall<'_>) -> Result<Responder, Error> {
        let options = ListOptions::read(call)?;
        let behind = options.cursor.map_or(Ok(None), cursor::read)?;
        let user = call.user()?;
        call.sees_all_slots()?;
        let wanted = Wanted {
            db: call.db(),
            behind: behind.as_ref(),
            owner: options.owner.unwrap_or_default(),
            held_longer: options.held_longer,
            count: options.count.unwrap_or(USUAL).min(MOST),
        };
        let may_see = |name: &[u8]| {
            let fits = options
                .pattern
                .is_none_or(|pattern| glob::fits(pattern, name));
            fits && user.may_read(name)
        };
        call.inspect(|core, ks, now| {
            let (page, next) = core
                .list(ks, now, &wanted, may_see)
                .ok_or_else(cursor::out_of_date)?;
            Ok(reply(now, &page, next.as_ref()))
        })?
    }
}

fn reply(now: Now, page: &[Held], next: Option<&Cursor>) -> Responder {
    let describe = |held: &Held| {
        let key = ("key", Responder::Text(held.name.to_vec()));
        let presumed = ("presumed", Responder::Integer(held.presumed.into()));
        let fields = holder_fields(now, &held.holder, &held.known);
        Responder::Map([key].into_iter().chain(fields).chain([presumed]).collect())
    };
    Responder::Array(vec![
        Responder::Text(cursor::text(next)),
        Responder::Array(page.iter().map(describe).collect()),
    ])
}

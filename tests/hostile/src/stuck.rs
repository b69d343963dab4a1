//! Connections that get no reply: whether that is the server's own doing, and what is told of it.

use std::io;

use crate::args;
use crate::draw::Args;
use crate::link::Link;
use crate::peer::Peer;
use crate::resp::Value;

/// What may last longer waits for somebody else.
const SHORT_MS: u64 = 1000;

/// Whether it may be blocked for long, so that it is to be let go. Who waits for a short time, or
/// not at all, must get its reply by itself.
pub fn may_wait(peer: &Peer) -> bool {
    let lasts = |pair: &[Vec<u8>]| {
        let ms = std::str::from_utf8(&pair[1]).ok();
        let ms = ms.and_then(|text| text.parse().ok());
        pair[0].eq_ignore_ascii_case(b"BLOCK") && !ms.is_some_and(|ms| (1..SHORT_MS).contains(&ms))
    };
    let blocks = peer
        .waits_for()
        .is_some_and(|args| args.windows(2).any(lasts));
    blocks || peer.asked_for_silence()
}

/// A fault of all servers, with BLPOP too: who is blocked when the server turns replica is to be
/// closed once an error is written. If it asked for silence, nothing is written, so it is never
/// closed, and nothing that it sends is read.
pub fn is_left_half_closed(control: &mut Link, peer: &Peer) -> io::Result<bool> {
    if !peer.asked_for_silence() {
        return Ok(false);
    }
    let line = about(control, peer)?;
    let field = |name: &str| line.split(' ').find_map(|word| word.strip_prefix(name));
    let closes = field("flags=").is_some_and(|flags| flags.contains('c'));
    Ok(closes && field("obl=") == Some("0") && field("oll=") == Some("0"))
}

fn about(control: &mut Link, peer: &Peer) -> io::Result<String> {
    let reply = control.ask(&["CLIENT", "LIST", "ID", &peer.id.to_string()])?;
    Ok(reply.all_text().trim().to_owned())
}

/// All that there is to know of it. Its last commands are told besides.
pub fn told(control: &mut Link, peer: &Peer) -> String {
    let after = peer.moved.elapsed();
    let about = about(control, peer).unwrap_or_else(|error| error.to_string());
    let db = about.split(' ').find_map(|word| word.strip_prefix("db="));
    let mut asked: Vec<Args> = vec![args!["SELECT", db.unwrap_or("0")]];
    for key in peer.waits_for().map(keys).unwrap_or_default() {
        asked.push(args!["RLOCK.INFO", key]);
        asked.push(args!["RLOCK.WAITERS", key]);
    }
    asked.push(args!["SELECT", "0"]);
    asked.push(args!["INFO", "rlock"]);
    let ask = |args: &Args| match control.ask(args) {
        Ok(text @ Value::Bulk(_)) => text.all_text(),
        Ok(reply) => reply.to_string(),
        Err(error) => error.to_string(),
    };
    let replies: Vec<_> = asked.iter().map(ask).collect();
    let number = peer.number;
    format!(
        "connection {number} has no answer after {after:?}\n{about}\n{}\n{}",
        replies.join("\n"),
        peer.told()
    )
}

/// What a request of rlock may name as keys, or nearly.
fn keys(args: &Args) -> Vec<Vec<u8>> {
    let is_many = args[0].starts_with(b"RLOCK.M");
    let (from, most) = if is_many { (2, 4) } else { (1, 1) };
    args.iter().skip(from).take(most).cloned().collect()
}

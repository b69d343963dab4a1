//! A few commands that belong together, with the replies that are due for them.

use crate::args;
use crate::draw::{Args, Draw, SESSION};
use crate::figures::Figures;
use crate::peer::{Due, Peer};

/// Has a connection say something.
pub fn say(peer: &mut Peer, draw: &mut Draw, figures: &mut Figures) {
    draw.channel = peer.channel.clone();
    match draw.rng.u32(0..1000) {
        0..12 => transaction(peer, draw, figures),
        12..17 => silent(peer, draw, figures),
        17..21 => version(peer, draw, figures),
        21..29 => session(peer, draw, figures),
        29..33 => subscription(peer, draw, figures),
        33..35 => {
            peer.channel = None;
            peer.say(figures, args!["RESET"], Some(Due::Reset));
        }
        _ => plain(peer, figures, draw.command()),
    }
}

fn plain(peer: &mut Peer, figures: &mut Figures, args: Args) {
    peer.say(figures, args.clone(), Some(Due::Reply(args)));
}

fn transaction(peer: &mut Peer, draw: &mut Draw, figures: &mut Figures) {
    peer.say(figures, args!["MULTI"], Some(Due::Multi));
    for _ in 0..draw.rng.usize(0..6) {
        let args = draw.command();
        // Redis 7.0 sends messages in the middle of the reply to EXEC. All but Valkey 9 end if a
        // key that ran out is written behind CLIENT PAUSE in the same EXEC, with SET too.
        if args[0] != b"PUBLISH" && args.get(1).is_none_or(|word| word != b"PAUSE") {
            peer.say(figures, args.clone(), Some(Due::Queued(args)));
        }
    }
    if draw.once_in(8) {
        plain(peer, figures, args!["DISCARD"]);
    } else {
        peer.say(figures, args!["EXEC"], Some(Due::Exec));
    }
}

/// Commands whose replies nobody hears.
fn silent(peer: &mut Peer, draw: &mut Draw, figures: &mut Figures) {
    if draw.once_in(2) {
        peer.say(figures, args!["CLIENT", "REPLY", "SKIP"], None);
        peer.say(figures, draw.rlock(), None);
        return;
    }
    peer.say(figures, args!["CLIENT", "REPLY", "OFF"], None);
    for _ in 0..draw.rng.usize(0..5) {
        let args = draw.rlock();
        peer.say(figures, args, None);
    }
    plain(peer, figures, args!["CLIENT", "REPLY", "ON"]);
}

fn version(peer: &mut Peer, draw: &mut Draw, figures: &mut Figures) {
    let version = draw.pick(&["3", "3", "2", "4", "x"]);
    if version == "2" && peer.channel.take().is_some() {
        // It may do little more than this then.
        peer.say(figures, args!["HELLO", "2"], Some(Due::Hello));
        plain(peer, figures, draw.rlock());
        peer.say(figures, args!["RESET"], Some(Due::Reset));
        return;
    }
    peer.say(figures, args!["HELLO", version], Some(Due::Hello));
}

fn session(peer: &mut Peer, draw: &mut Draw, figures: &mut Figures) {
    let channel = format!("{SESSION}{}", draw.rng.u32(0..9));
    peer.say(figures, args!["HELLO", "3"], Some(Due::Hello));
    peer.say(
        figures,
        args!["SUBSCRIBE", channel],
        Some(Due::Confirmation),
    );
    peer.channel = Some(channel);
}

/// As Redisson waits, and the end of a session's subscription.
fn subscription(peer: &mut Peer, draw: &mut Draw, figures: &mut Figures) {
    if peer.channel.is_none() {
        return session(peer, draw, figures);
    }
    let args = match draw.rng.u32(0..4) {
        0 => args!["UNSUBSCRIBE", draw.session_channel()],
        1 => args!["PSUBSCRIBE", "s:*"],
        2 if !draw.is_old => {
            let prefix = draw.pick(&["redisson_lock__channel", "redisson_rwlock"]);
            let name = [prefix.as_bytes(), b":{", &draw.key(), b"}"].concat();
            args!["SUBSCRIBE", name]
        }
        _ => args!["SUBSCRIBE", draw.session_channel()],
    };
    peer.say(figures, args, Some(Due::Confirmation));
}

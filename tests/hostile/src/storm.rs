//! Many connections at once, each of which sends without waiting.

use std::io;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use crate::draw::Draw;
use crate::figures::Figures;
use crate::gambits;
use crate::link::Link;
use crate::peer::{unblock, Peer};
use crate::server::Server;
use crate::stuck;

const PEERS: usize = 16;
/// No more replies are due to a connection at a time.
const MOST_DUE: usize = 120;
/// A connection without a reply for so long is taken for one that waits, and let go.
const PATIENCE: Duration = Duration::from_millis(25);
/// After so long without a reply the server is asked about the connection.
const SUSPECT: Duration = Duration::from_secs(1);
/// An answer that takes longer than this is none.
const BOUND: Duration = Duration::from_secs(30);

pub struct Storm<'a> {
    server: &'a mut Server,
    control: Link,
    peers: Vec<Peer>,
    draw: Draw,
    figures: &'a mut Figures,
}

impl<'a> Storm<'a> {
    pub fn new(server: &'a mut Server, figures: &'a mut Figures, seed: u64) -> io::Result<Self> {
        let peers = (0..PEERS).map(|number| Peer::open(server.port, number));
        let peers = peers.collect::<io::Result<Vec<_>>>()?;
        let mut draw = Draw::new(seed, false);
        draw.ids = peers.iter().map(|peer| peer.id).collect();
        let mut control = Link::open(server.port)?;
        draw.is_old = is_old(&mut control)?;
        Ok(Self {
            server,
            control,
            peers,
            draw,
            figures,
        })
    }

    /// So many commands, and all answers to them.
    pub fn run(&mut self, commands: u64, until: Instant) -> Result<(), String> {
        let ran = self.blow(commands, until).and_then(|()| self.settle());
        ran.map_err(|what| {
            let trouble = self.server.trouble().unwrap_or_default();
            let told: Vec<_> = self.peers.iter().map(Peer::told).collect();
            format!("{what}\n{trouble}\n{}", told.join("\n"))
        })
    }

    fn blow(&mut self, commands: u64, until: Instant) -> Result<(), String> {
        let end = self.figures.total() + commands;
        let mut looked = Instant::now();
        while self.figures.total() < end && Instant::now() < until {
            for peer in &mut self.peers {
                if peer.due.len() < MOST_DUE / 2 && !peer.wants_to_write() {
                    let most = self.draw.pick(&[1, 8, MOST_DUE]);
                    while peer.due.len() < most {
                        gambits::say(peer, &mut self.draw, self.figures);
                    }
                }
            }
            self.turn()?;
            if looked.elapsed() > PATIENCE {
                looked = Instant::now();
                self.look_after()?;
            }
        }
        Ok(())
    }

    /// Waits for all that is due. Who gets no answer is found by `look_after` before the end.
    fn settle(&mut self) -> Result<(), String> {
        let end = Instant::now() + 2 * BOUND;
        while self
            .peers
            .iter()
            .any(|peer| peer.is_open && !peer.due.is_empty())
        {
            self.turn()?;
            self.look_after()?;
            if Instant::now() > end {
                return Err("requests without an answer".to_owned());
            }
        }
        self.look_after()
    }

    fn turn(&mut self) -> Result<(), String> {
        self.wait();
        let port = self.server.port;
        for peer in &mut self.peers {
            let turned = peer.turn(&mut self.draw, self.figures);
            turned.map_err(|what| format!("connection {}: {what}", peer.number))?;
            if !peer.is_open {
                let number = peer.number;
                *peer =
                    Peer::open(port, number).map_err(|error| format!("no connection: {error}"))?;
                self.draw.ids[number] = peer.id;
            }
        }
        Ok(())
    }

    /// Until something can be read or written.
    fn wait(&self) {
        let poll = |peer: &Peer| libc::pollfd {
            fd: peer.stream().as_raw_fd(),
            events: if peer.wants_to_write() {
                libc::POLLIN | libc::POLLOUT
            } else {
                libc::POLLIN
            },
            revents: 0,
        };
        let mut polls: Vec<_> = self.peers.iter().map(poll).collect();
        let count = polls.len() as libc::nfds_t;
        // SAFETY: the array has so many entries, and outlives the call.
        unsafe { libc::poll(polls.as_mut_ptr(), count, 2) };
    }

    /// Puts back what the whole server suffers from, and lets those go who wait for long.
    fn look_after(&mut self) -> Result<(), String> {
        let gone = |error: io::Error| format!("the control's connection: {error}");
        for line in [
            "REPLICAOF NO ONE",
            "CLIENT UNPAUSE",
            "CONFIG SET maxmemory 0",
        ] {
            let words: Vec<&str> = line.split(' ').collect();
            self.ask(&words)?;
        }
        for peer in &mut self.peers {
            if peer.due.is_empty() || peer.moved.elapsed() < PATIENCE {
                continue;
            }
            let how = self.draw.pick(&["TIMEOUT", "ERROR"]);
            let let_go =
                stuck::may_wait(peer) && unblock(&mut self.control, peer.id, how).map_err(gone)?;
            if let_go || peer.moved.elapsed() < SUSPECT {
                continue;
            }
            if stuck::is_left_half_closed(&mut self.control, peer).map_err(gone)? {
                peer.is_open = false;
                self.figures.half_closed += 1;
            } else if peer.moved.elapsed() > BOUND {
                return Err(stuck::told(&mut self.control, peer));
            }
        }
        Ok(())
    }

    /// By the connection of the control, which may be killed too.
    fn ask(&mut self, words: &[&str]) -> Result<(), String> {
        if self.control.ask(words).is_err() {
            let again = Link::open(self.server.port);
            self.control = again.map_err(|error| format!("no connection: {error}"))?;
        }
        Ok(())
    }
}

fn is_old(control: &mut Link) -> io::Result<bool> {
    let about = control.ask(&["INFO", "server"])?.all_text();
    let old = if about.contains("valkey_version") {
        ["valkey_version:7.", "valkey_version:8.0"]
    } else {
        ["redis_version:7.", "redis_version:8.0"]
    };
    Ok(old.iter().any(|version| about.contains(version)))
}

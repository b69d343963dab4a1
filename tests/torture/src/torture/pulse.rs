//! A thread that asks a server again and again whether it is there: its stalls are
//! no fault of rlock's, and a PING that was answered tells what had been read by then.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::{self, sleep, JoinHandle};
use std::time::Duration;

use rlock_torture::clock::now_us;
use rlock_torture::history::{Ping, Record, Recorder, Stall};

use crate::link::Link;

const EVERY: Duration = Duration::from_millis(10);
const STALL_US: u64 = 150_000;

pub struct Pulse {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Pulse {
    pub fn start(port: u16, file: PathBuf) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || beat(port, &file, &stopped));
        let thread = Some(thread);
        Self { stop, thread }
    }

    pub fn end(mut self) -> io::Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            _ => Ok(()),
        }
    }
}

fn beat(server: u16, file: &std::path::Path, stop: &AtomicBool) -> io::Result<()> {
    let mut to = Recorder::create(file)?;
    let mut link = None;
    while !stop.load(Ordering::Relaxed) {
        let before = now_us();
        sleep(EVERY);
        let call = now_us();
        if link.is_none() {
            link = Link::open(server).ok();
        }
        let answered = link.as_mut().is_some_and(|link| link.say("PING").is_ok());
        let reply = now_us();
        match answered {
            true => to.write(&Record::Ping(Ping {
                server,
                call,
                reply,
            }))?,
            false => link = None,
        }
        if reply > before + STALL_US || !answered {
            let who = format!("server {server}");
            let (from, to_us) = (before, reply);
            to.write(&Record::Stall(Stall {
                who,
                from,
                to: to_us,
            }))?;
        }
    }
    to.flush()
}

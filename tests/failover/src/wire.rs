//! The way to a server: what is sent arrives later, and nothing arrives while it is cut.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{channel, Receiver};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::spawn;

use crate::clock::{now_us, pause, pause_until};

struct State {
    to: u16,
    delay_us: u64,
    over: AtomicBool,
    /// Rises with every cut: what was sent before it is lost.
    cuts: AtomicU64,
    cut: AtomicBool,
    open: Mutex<Vec<TcpStream>>,
}

pub struct Wire {
    pub port: u16,
    state: Arc<State>,
}

impl Wire {
    pub fn to(port: u16, delay_us: u64) -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        listener.set_nonblocking(true)?;
        let own = listener.local_addr()?.port();
        let state = Arc::new(State {
            to: port,
            delay_us,
            over: AtomicBool::new(false),
            cuts: AtomicU64::new(0),
            cut: AtomicBool::new(false),
            open: Mutex::default(),
        });
        let shared = state.clone();
        spawn(move || shared.accept(&listener));
        Ok(Self { port: own, state })
    }

    /// What is under way is lost, and what is sent from now on.
    pub fn cut(&self) {
        self.state.cut.store(true, Ordering::SeqCst);
        self.state.cuts.fetch_add(1, Ordering::SeqCst);
    }

    /// Connections that lost something are closed; new ones work.
    pub fn heal(&self) {
        self.state.close();
        self.state.cut.store(false, Ordering::SeqCst);
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.state.over.store(true, Ordering::SeqCst);
        self.state.close();
    }
}

impl State {
    fn accept(self: &Arc<Self>, listener: &TcpListener) {
        while !self.over.load(Ordering::SeqCst) {
            match listener.accept() {
                Ok((near, _)) => {
                    let _ = near.set_nonblocking(false);
                    self.join(near);
                }
                Err(_) => pause(2),
            }
        }
    }

    /// While it is cut a new connection gets nowhere.
    fn join(self: &Arc<Self>, near: TcpStream) {
        if self.cut.load(Ordering::SeqCst) {
            return;
        }
        let Ok(far) = TcpStream::connect(("127.0.0.1", self.to)) else {
            return;
        };
        for (from, to) in [(&near, &far), (&far, &near)] {
            let _ = from.set_nodelay(true);
            let (Ok(from), Ok(to), Ok(kept)) = (from.try_clone(), to.try_clone(), from.try_clone())
            else {
                return;
            };
            self.streams().push(kept);
            let (send, receive) = channel();
            let writer = self.clone();
            spawn(move || writer.write(&receive, to));
            let cuts = self.clone();
            spawn(move || {
                let mut from = from;
                let mut chunk = [0; 65536];
                while let Ok(count @ 1..) = from.read(&mut chunk) {
                    let sent = (now_us(), cuts.number(), chunk[..count].to_vec());
                    if send.send(sent).is_err() {
                        break;
                    }
                }
            });
        }
    }

    fn write(&self, receive: &Receiver<(u64, u64, Vec<u8>)>, mut to: TcpStream) {
        for (sent, cuts, bytes) in receive {
            pause_until(sent + self.delay_us);
            let lost = self.cut.load(Ordering::SeqCst) || cuts != self.number();
            if !lost && to.write_all(&bytes).is_err() {
                break;
            }
        }
        // A close that was seen while cut is not passed on: the other side hears nothing.
        if !self.cut.load(Ordering::SeqCst) {
            let _ = to.shutdown(Shutdown::Both);
        }
    }

    fn number(&self) -> u64 {
        self.cuts.load(Ordering::SeqCst)
    }

    fn streams(&self) -> std::sync::MutexGuard<'_, Vec<TcpStream>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self) {
        for stream in self.streams().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

//! What drives a connection: whoever has something to say to the server writes it in their own
//! thread, for to wake another one first takes longer than all else. A task on rlock's threads reads
//! what comes, so that it is read whatever becomes of the program's threads.
//!
//! redis-rs makes a future that does both, and would give it to a task of its own. Here whoever
//! wants it to go on polls it.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, TryLockError};
use std::task::{Context, Wake, Waker};

use redis::aio::MultiplexedConnection;
use redis::io::tcp::{TcpSettings, socket2};
use redis::{AsyncConnectionConfig, Client, ConnectionAddr, RedisResult};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream, lookup_host};
use tokio::sync::Notify;
use tokio::task::{JoinSet, unconstrained};

/// Ends with the link that has it, and the connection with it.
pub(super) struct Wire(Option<Arc<Driven>>);

pub(super) struct Driven {
    /// redis-rs's: it writes what was said, reads what there is, and hands it out. None at its end.
    driver: Mutex<Option<Driver>>,
    /// It is to be polled once more.
    again: AtomicBool,
    ended: AtomicBool,
    /// Its task is to poll it.
    called: Notify,
}

type Driver = Pin<Box<dyn Future<Output = ()> + Send>>;

thread_local! {
    /// Whom this thread polls, or will poll: its calls need no task.
    static OWN: Cell<*const Driven> = const { Cell::new(ptr::null()) };
}

impl Wire {
    pub async fn open(
        client: &Client,
        config: AsyncConnectionConfig,
    ) -> RedisResult<(MultiplexedConnection, Self)> {
        let info = client.get_connection_info();
        let stream: Box<dyn Stream> = match info.addr() {
            ConnectionAddr::Tcp(host, port) => {
                Box::new(connect(host, *port, info.tcp_settings()).await?)
            }
            ConnectionAddr::Unix(path) => Box::new(UnixStream::connect(path).await?),
            _ => {
                // Over TLS only redis-rs can make it, with a task of its own that drives it.
                let opening = client.get_multiplexed_async_connection_with_config(&config);
                return Ok((opening.await?, Self(None)));
            }
        };
        let settings = info.redis_settings();
        let opening = MultiplexedConnection::new_with_config(settings, stream, config);
        let (connection, driver) = opening.await?;
        let driven = Arc::new(Driven {
            // Whoever polls it is no task that should yield.
            driver: Mutex::new(Some(Box::pin(unconstrained(driver)))),
            again: AtomicBool::new(true),
            ended: AtomicBool::new(false),
            called: Notify::new(),
        });
        driven.called.notify_one();
        tokio::spawn(attend(Arc::clone(&driven)));
        Ok((connection, Self(Some(driven))))
    }

    /// What is said in here is not written yet, and wakes no task: who does it is to `drive` what is
    /// `unwritten` then.
    pub fn say<T>(&self, say: impl FnOnce() -> T) -> T {
        let own = self.0.as_ref().map_or(ptr::null(), Arc::as_ptr);
        let before = OWN.replace(own);
        let said = say();
        OWN.set(before);
        said
    }

    pub fn unwritten(&self) -> Option<Arc<Driven>> {
        let driven = self.0.as_ref()?;
        driven
            .again
            .load(Ordering::SeqCst)
            .then(|| Arc::clone(driven))
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        if let Some(driven) = &self.0 {
            // By its task, for the session is locked here.
            driven.ended.store(true, Ordering::SeqCst);
            driven.called.notify_one();
        }
    }
}

impl Driven {
    /// Writes and reads what can be, without waiting; false at its end. Program code may run in here, by
    /// wakers: not to be called with anything locked.
    pub fn drive(self: &Arc<Self>) -> bool {
        let before = OWN.replace(Arc::as_ptr(self));
        self.again.store(true, Ordering::SeqCst);
        let mut goes_on = true;
        while self.again.load(Ordering::SeqCst) && goes_on {
            let mut driver = match self.driver.try_lock() {
                Ok(driver) => driver,
                Err(TryLockError::Poisoned(driver)) => driver.into_inner(),
                // Who has it comes to the head of this loop again.
                Err(TryLockError::WouldBlock) => break,
            };
            self.again.store(false, Ordering::SeqCst);
            let waker = Waker::from(Arc::clone(self));
            let mut context = Context::from_waker(&waker);
            let polled = driver.as_mut().map(|one| one.as_mut().poll(&mut context));
            let is_over = self.ended.load(Ordering::SeqCst);
            goes_on = polled.is_some_and(|polled| polled.is_pending()) && !is_over;
            let over = if goes_on { None } else { driver.take() };
            drop(driver);
            // Whoever waits for a reply is woken by this.
            drop(over);
        }
        OWN.set(before);
        goes_on
    }
}

impl Wake for Driven {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.again.store(true, Ordering::SeqCst);
        if OWN.get() != Arc::as_ptr(self) {
            self.called.notify_one();
        }
    }
}

async fn attend(driven: Arc<Driven>) {
    loop {
        driven.called.notified().await;
        if !driven.drive() {
            return;
        }
    }
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// To whichever of its addresses is reached first, as redis-rs does. (It does not tell its
/// setting of SO_LINGER.)
async fn connect(host: &str, port: u16, settings: &TcpSettings) -> io::Result<TcpStream> {
    let mut tries = JoinSet::new();
    for address in lookup_host((host, port)).await? {
        tries.spawn(TcpStream::connect(address));
    }
    let mut last = io::Error::other("no address found for host");
    while let Some(tried) = tries.join_next().await {
        match tried.unwrap_or_else(|error| Err(io::Error::other(error))) {
            Ok(stream) => return with_settings(stream, settings),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn with_settings(stream: TcpStream, settings: &TcpSettings) -> io::Result<TcpStream> {
    stream.set_nodelay(settings.nodelay())?;
    let socket = socket2::SockRef::from(&stream);
    if let Some(keepalive) = settings.keepalive() {
        socket.set_tcp_keepalive(keepalive)?;
    }
    #[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
    socket.set_tcp_user_timeout(settings.user_timeout())?;
    Ok(stream)
}

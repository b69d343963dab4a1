//! HEARTBEAT: a connection that is silent for longer than its patience loses what it watches and
//! somebody waits for, and one that is alive loses nothing.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use redis::Value;

use super::process::beating_process;
use crate::support::{
    both_ways, error, eventually, now_ms, pair, pass, signal, Ask, Bound, Listener, RawClient,
    Server, Session, Waiter, Way,
};

/// A connection that says every 50 ms that it is alive, until it is stopped.
struct Beating {
    stops: Arc<AtomicBool>,
    thread: JoinHandle<RawClient>,
}

impl Beating {
    fn begin(mut client: RawClient, patience: i64) -> Self {
        let stops = Arc::new(AtomicBool::new(false));
        let seen = stops.clone();
        let request = format!("RLOCK.HEARTBEAT {patience}");
        client.ok(&request);
        let thread = thread::spawn(move || {
            while !seen.load(Ordering::Relaxed) {
                // In a pause of all commands the reply comes late.
                client.send(&request);
                assert_eq!(client.read(), Value::Okay);
                thread::sleep(Duration::from_millis(50));
            }
            client
        });
        Self { stops, thread }
    }

    #[track_caller]
    fn stop(self) -> RawClient {
        self.stops.store(true, Ordering::Relaxed);
        self.thread.join().expect("it was never refused")
    }
}

both_ways!(who_is_silent_loses_to_who_waits);
fn who_is_silent_loses_to_who_waits(by: Way) {
    let server = Server::start_with(&["--appendonly", "yes"]);
    let mut control = server.raw();
    for mode in ["", "READ", "WRITE", "LIMIT 1 PERMITS 1"] {
        println!("{mode}");
        let mut holder = Session::new(&server);
        holder.client.ok("RLOCK.HEARTBEAT 300");
        let request = format!("RLOCK.ACQUIRE k a 300 {mode} WATCHDOG");
        let Value::Int(token) = holder.ask(&request, "t") else {
            panic!("held");
        };
        let wants = mode.replace("READ", "WRITE");
        let mut next = by.with(&server, &format!("k b 100000 {wants} BLOCK 0"));
        assert!(next.token() > token);
        assert_eq!(holder.about("t"), "lost t silent");
        holder.client.in_step();
        next.client.close();
        control.ok("FLUSHALL");
        eventually("it is logged", || {
            let log = server.log();
            let mut lines = log.lines();
            let is_it = |line: &str| line.contains("lost: key 'k', owner 'a', client 127.0.0.1:");
            lines.any(|line| is_it(line) && line.ends_with(", silent"))
        });
    }
    assert_eq!(control.counter("rlock_lost_silent"), 4);
    server.alive();
}

#[test]
fn one_that_cannot_be_notified_is_closed() {
    let server = Server::start();
    let mut control = server.raw();
    control.ok("CONFIG SET notify-keyspace-events KEA");
    let mut events = Listener::keyspace(&server, 0);
    let mut held = Bound::with(&server, "k a 300");
    held.client.ok("RLOCK.HEARTBEAT 300");
    let mut next = Waiter::new(&server, "k", "b");
    next.token();
    assert!(held.client.is_closed());
    eventually("the event is told", || {
        events.count("rlock.released", "k") > 0
    });
    assert_eq!(control.counter("rlock_expired"), 0);
    assert_eq!(control.counter("rlock_watchdog_holds"), 0);
}

#[test]
fn while_nobody_waits_nothing_is_lost_and_who_comes_then_has_it() {
    let server = Server::start();
    let mut control = server.raw();
    let mut held = Bound::with(&server, "k a 300");
    held.client.ok("RLOCK.HEARTBEAT 1");
    pass(now_ms() + 1500);
    assert_eq!(control.int("RLOCK.ACQUIRE other x 1000").signum(), 1);
    assert_eq!(control.ask("RLOCK.ACQUIRE k b 1000"), Value::Nil);
    assert_eq!(control.only("k").token, Some(held.token));
    let mut next = Waiter::new(&server, "k", "b");
    next.token();
    assert!(held.client.is_closed());
}

#[test]
fn who_says_that_it_is_alive_keeps_its_lock_and_who_stops_saying_it_does_not() {
    let server = Server::start();
    let mut control = server.raw();
    let held = Bound::with(&server, "k a 300");
    let beating = Beating::begin(held.client, 1000);
    let mut next = Waiter::new(&server, "k", "b");
    pass(now_ms() + 2500);
    next.still_waits();
    assert_eq!(control.only("k").token, Some(held.token));
    let mut client = beating.stop();
    next.token();
    assert!(client.is_closed());
}

#[test]
fn a_connection_that_never_says_it_is_left_alone() {
    let server = Server::start();
    let mut held = Bound::with(&server, "k a 300");
    let mut other = Bound::with(&server, "other x 300");
    other.client.ok("RLOCK.HEARTBEAT 1");
    let mut next = Waiter::new(&server, "k", "b");
    let mut theirs = Waiter::new(&server, "other", "b");
    theirs.token();
    pass(now_ms() + 1000);
    next.still_waits();
    held.client.in_step();
}

#[test]
fn a_lease_that_was_asked_for_is_not_shortened() {
    let server = Server::start();
    let begin = now_ms();
    let mut held = Bound::with(&server, "k a 1500");
    held.client.ok("RLOCK.HEARTBEAT 1");
    let mut next = Waiter::new(&server, "k", "b");
    next.token();
    assert!(now_ms() >= begin + 1500);
}

#[test]
fn who_waits_as_redisson_does_is_somebody_as_long_as_it_listens() {
    let server = Server::start();
    let mut control = server.raw();
    let mut held = Bound::with(&server, "k a 300");
    let gone = server.waits_as_redisson("redisson_lock__channel:{k}");
    gone.close();
    held.client.ok("RLOCK.HEARTBEAT 300");
    pass(now_ms() + 1500);
    held.client.in_step();
    let _waits = server.waits_as_redisson("redisson_lock__channel:{k}");
    control.goes_free("k");
    assert!(held.client.is_closed());
    assert_eq!(control.counter("rlock_lost_silent"), 1);
}

#[test]
fn a_process_that_is_stopped_hands_its_lock_to_the_next() {
    let server = Server::start();
    let mut control = server.raw();
    let address = format!("127.0.0.1:{}", server.port());
    let process = beating_process(
        &address,
        "RLOCK.ACQUIRE k a 300 WATCHDOG",
        "RLOCK.HEARTBEAT 1000",
    );
    control.goes_to("k", "a exclusive 1");
    let mut next = Waiter::new(&server, "k", "b");
    pass(now_ms() + 2000);
    next.still_waits();
    signal(&process.0, libc::SIGSTOP);
    next.token();
    assert_eq!(control.counter("rlock_lost_silent"), 1);
    control.goes_to("k", "b exclusive 1");
}

fn stop(server: &Server, _: &mut RawClient) {
    server.pause_process();
    pass(now_ms() + 1500);
    server.resume_process();
}

fn sleep(_: &Server, control: &mut RawClient) {
    control.ok("DEBUG SLEEP 1.5");
}

fn pause(_: &Server, control: &mut RawClient) {
    control.ok("CLIENT PAUSE 1500 ALL");
}

fn pause_writes(_: &Server, control: &mut RawClient) {
    control.ok("CLIENT PAUSE 1500 WRITE");
}

type Stall = fn(&Server, &mut RawClient);
const STALLS: [Stall; 4] = [stop, sleep, pause, pause_writes];

/// So long that a watched lease outlives a stall in which nothing is renewed.
const LEASE: i64 = 3000;

#[test]
fn one_that_is_alive_loses_nothing_when_the_server_stands_still() {
    let server = Server::start_with(&["--appendonly", "yes"]);
    let mut control = server.raw();
    let held = Bound::with(&server, &format!("k a {LEASE}"));
    let beating = Beating::begin(held.client, 1000);
    let mut next = Waiter::new(&server, "k", "b");
    // What was asked for is over then.
    pass(now_ms() + LEASE + 100);
    for (number, stall) in STALLS.into_iter().enumerate() {
        println!("{number}");
        for _ in 0..2 {
            stall(&server, &mut control);
            // It may be before it has looked.
            control.goes_to("k", "a exclusive 1");
            assert_eq!(control.only("k").token, Some(held.token));
        }
        pass(now_ms() + 1500);
        next.still_waits();
        assert_eq!(control.only("k").token, Some(held.token));
    }
    let mut client = beating.stop();
    next.token();
    assert!(client.is_closed());
    assert_eq!(control.counter("rlock_lost_silent"), 1);
    server.alive();
}

#[test]
fn nobody_is_silent_while_nothing_may_be_written() {
    let server = Server::start();
    let mut control = server.raw();
    let mut held = Bound::with(&server, &format!("k a {LEASE}"));
    let mut next = Waiter::new(&server, "k", "b");
    held.client.ok("RLOCK.HEARTBEAT 600000");
    pass(now_ms() + LEASE + 100);
    control.ok("CONFIG SET min-replicas-to-write 1");
    held.client.ok("RLOCK.HEARTBEAT 300");
    pass(now_ms() + 1000);
    held.client.ok("RLOCK.HEARTBEAT 600000");
    control.ok("CONFIG SET min-replicas-to-write 0");
    pass(now_ms() + 1000);
    next.still_waits();
    held.client.in_step();
    held.client.ok("RLOCK.HEARTBEAT 1");
    next.token();
}

#[test]
fn it_is_heard_whatever_else_is_refused() {
    let server = Server::start();
    let mut control = server.raw();
    let mut client = server.raw();
    for (shut, open) in [
        ("CLIENT PAUSE 60000 WRITE", "CLIENT UNPAUSE"),
        (
            "CONFIG SET min-replicas-to-write 1",
            "CONFIG SET min-replicas-to-write 0",
        ),
        ("CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0"),
        ("REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE"),
    ] {
        control.ok(shut);
        client.ok("RLOCK.HEARTBEAT 30000");
        control.ok(open);
    }
    server.alive();
}

#[test]
fn one_that_holds_nothing_may_be_silent_and_close() {
    let server = Server::start();
    let mut control = server.raw();
    let mut held = Bound::with(&server, "k a 300");
    let mut next = Waiter::new(&server, "k", "b");
    for _ in 0..20 {
        let mut client = server.raw();
        client.ok("RLOCK.HEARTBEAT 1");
        client.close();
    }
    pass(now_ms() + 500);
    next.still_waits();
    held.client.in_step();
    control.ok("MULTI");
    assert_eq!(control.text("RLOCK.HEARTBEAT 1"), "QUEUED");
    assert_eq!(control.list("EXEC"), [Value::Okay]);
    server.alive();
}

#[test]
fn a_demotion_closes_as_ever_and_nobody_is_silent() {
    let (server, replica) = pair(&[]);
    let mut control = server.raw();
    let mut holder = Session::new(&server);
    holder.client.ok("RLOCK.HEARTBEAT 1000");
    holder.ask("RLOCK.ACQUIRE k a 1000 WATCHDOG", "t");
    control.ok(&format!("REPLICAOF 127.0.0.1 {}", replica.port()));
    assert_eq!(holder.about("t"), "lost t demoted");
    holder.client.ok("RLOCK.HEARTBEAT 1");
    control.ok("REPLICAOF NO ONE");
    assert_eq!(control.counter("rlock_lost_silent"), 0);
    server.alive();
}

#[test]
fn its_argument_is_a_number_of_ms() {
    let server = Server::start();
    let mut client = server.raw();
    for request in ["RLOCK.HEARTBEAT", "RLOCK.HEARTBEAT 1 2"] {
        let line = client.error(request);
        let begin = "ERR wrong number of arguments; usage: RLOCK.HEARTBEAT patience";
        assert!(line.starts_with(begin), "{line}");
    }
    for patience in ["0", "-1", "+1", "01", "1.5", "soon", "9007199254740992"] {
        let line = client.error(&["RLOCK.HEARTBEAT", patience]);
        let begin = "ERR the patience must be a whole number of ms from 1 to 9007199254740991, got";
        assert!(line.starts_with(begin), "{patience}: {line}");
    }
    client.ok("RLOCK.HEARTBEAT 9007199254740991");
    let line = client.error(&["EVAL", "return redis.call('RLOCK.HEARTBEAT', '1')", "0"]);
    assert!(
        line.contains("RLOCK.HEARTBEAT is about a connection"),
        "{line}"
    );
    client.ok("MULTI");
    client.text(&["EVAL", "return redis.call('RLOCK.HEARTBEAT', '1')", "0"]);
    let line = error(client.list("EXEC").remove(0));
    assert!(
        line.contains("RLOCK.HEARTBEAT is about a connection"),
        "{line}"
    );
}

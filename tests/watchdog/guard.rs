//! While the server would refuse a client's write it renews no watchdog hold and
//! releases none; afterwards all of it happens.

use redis::Value;

use crate::support::{
    code, eventually, int, now_ms, pair, pass, unharmed, Ask, Bound, Listener, RawClient, Server,
    Waiter,
};

#[derive(Clone, Copy, Debug)]
enum Gate {
    Replicas,
    PauseWrite,
    PauseAll,
}

const GATES: [Gate; 3] = [Gate::Replicas, Gate::PauseWrite, Gate::PauseAll];

/// How long a pause lasts, ms.
const PAUSE: i64 = 3000;

impl Gate {
    fn shut(self) -> String {
        match self {
            Self::Replicas => "CONFIG SET min-replicas-to-write 2".to_owned(),
            Self::PauseWrite => format!("CLIENT PAUSE {PAUSE} WRITE"),
            Self::PauseAll => format!("CLIENT PAUSE {PAUSE} ALL"),
        }
    }

    /// Opens it, where that does not happen by itself.
    fn open(self, control: &mut RawClient) {
        if let Self::Replicas = self {
            control.ok("CONFIG SET min-replicas-to-write 0");
        }
    }

    /// Whether somebody can look while it is shut.
    fn lets_look(self) -> bool {
        !matches!(self, Self::PauseAll)
    }
}

#[test]
fn nothing_is_renewed_until_it_may_be_and_then_the_hold_is_as_before() {
    let (server, replica) = pair(&["--appendonly", "yes"]);
    let mut control = server.raw();
    for gate in GATES {
        println!("{gate:?}");
        // It is renewed every 1.5 s, and would end after the pause.
        let mut held = Bound::with(&server, "k a 4500");
        let shut = now_ms();
        // One write: nothing is renewed between the two.
        let replies = control.ask_all(&[gate.shut(), "PEXPIRETIME k".to_owned()]);
        assert_eq!(replies[0], Value::Okay);
        if gate.lets_look() {
            let ends = int(replies[1].clone());
            while now_ms() < shut + 2000 {
                let now = control.int("PEXPIRETIME k");
                assert_eq!(now, ends, "renewed");
            }
            assert!(now_ms() < shut + PAUSE, "too slow a machine for this test");
        }
        gate.open(&mut control);
        control.goes_to("k", "a exclusive 1");
        let hold = control.only("k");
        assert_eq!(hold.token, Some(held.token), "{gate:?}");
        assert_eq!(hold.watchdog, Some(held.id), "{gate:?}");
        held.client.in_step();
        let renewed = control.ends("k");
        eventually("it is renewed", || control.ends("k") > renewed);
        assert_eq!(control.only("k").token, Some(held.token));
        unharmed(&server, &replica, "k");
        assert_eq!(held.client.int("RLOCK.RELEASE k a"), 0);
    }
}

#[test]
fn a_connection_is_closed_when_its_lease_is_over_though_nothing_may_be_written() {
    let (server, replica) = pair(&["--appendonly", "yes"]);
    let mut control = server.raw();
    for gate in GATES {
        println!("{gate:?}");
        let mut events = Listener::keyspace(&server, 0);
        let mut over = Bound::with(&server, "k a 900");
        over.client.ask("RLOCK.ACQUIRE k a 100");
        let mut next = Waiter::new(&server, "k", "b");
        let mut first = Bound::with(&server, "shared a 600 READ");
        let mut second = Bound::with(&server, "shared b 1500 READ");
        let mut third = Bound::with(&server, "shared c 100000 READ");
        let mut writer = Bound::with(&server, "written a 900 WRITE");
        let replies = control.ask_all(&["PEXPIRETIME k".to_owned(), gate.shut()]);
        let shut = now_ms();
        assert!(over.client.is_closed());
        let ends = int(replies[0].clone());
        assert!(now_ms() > ends, "{gate:?}: {} ms early", ends - now_ms());
        assert!(first.client.is_closed());
        assert!(writer.client.is_closed());
        assert!(second.client.is_closed());
        assert!(now_ms() < shut + PAUSE, "too slow a machine for this test");
        let told = ("rlock.expired".to_owned(), "k".to_owned());
        next.still_waits();
        // To hear the events is a command that waits for the end of a pause.
        if let Gate::Replicas = gate {
            assert!(!events.events().contains(&told));
        }

        gate.open(&mut control);
        next.token();
        assert_eq!(control.held_by("k"), "b exclusive 1");
        control.goes_to("shared", "c read 1");
        third.client.in_step();
        control.goes_free("written");
        let mut heard = Vec::new();
        eventually("the lease's end is told of", || {
            heard.extend(events.events());
            heard.contains(&told)
        });
        assert_eq!(heard.iter().filter(|event| **event == told).count(), 1);
        unharmed(&server, &replica, "k");
        assert_eq!(control.int("RLOCK.RELEASE k b"), 0);
        assert_eq!(third.client.int("RLOCK.RELEASE shared c READ"), 0);
    }
}

#[test]
fn one_that_is_to_stay_open_has_its_hold_back_when_it_may_be_written() {
    let (server, replica) = pair(&["--appendonly", "yes"]);
    let mut control = server.raw();
    control.ok("CONFIG SET rlock.watchdog-lost keep");
    let mut held = Bound::with(&server, "k a 600");
    let replies = control.ask_all(&[Gate::Replicas.shut(), "PEXPIRETIME k".to_owned()]);
    pass(int(replies[1].clone()) + 300);
    assert_eq!(control.int("EXISTS k"), 0, "readers see it gone");
    held.client.in_step();
    Gate::Replicas.open(&mut control);
    control.goes_to("k", "a exclusive 1");
    let hold = control.only("k");
    assert_eq!(
        (hold.token, hold.watchdog),
        (Some(held.token), Some(held.id))
    );
    unharmed(&server, &replica, "k");
}

#[test]
fn many_whose_lease_is_over_are_all_closed() {
    let (server, _replica) = pair(&["--appendonly", "yes"]);
    let mut control = server.raw();
    // Several batches' worth on one connection, and others behind them.
    let mut many = server.raw();
    for n in 0..1200 {
        many.send(&format!("RLOCK.ACQUIRE many{n} a 800 WATCHDOG"));
    }
    many.read_many(1200);
    let mut rest: Vec<Bound> = (0..20)
        .map(|n| Bound::with(&server, &format!("rest{n} a 1200")))
        .collect();
    control.ok("CONFIG SET min-replicas-to-write 2");
    assert!(many.is_closed());
    for held in &mut rest {
        assert!(held.client.is_closed());
    }
    control.ok("CONFIG SET min-replicas-to-write 0");
    eventually("all are free", || control.ask("DBSIZE") == Value::Int(0));
}

#[test]
fn nothing_is_released_until_it_may_be_and_then_the_next_is_granted() {
    let (server, replica) = pair(&["--appendonly", "yes"]);
    let mut control = server.raw();
    for gate in GATES {
        println!("{gate:?}");
        let held = Bound::new(&server, "k", "a");
        let alone = Bound::new(&server, "alone", "a");
        let mut next = Waiter::new(&server, "k", "b");
        let shut = now_ms();
        control.ok(&gate.shut());
        let shut_by = now_ms();
        held.client.close();
        alone.client.reset();
        if gate.lets_look() {
            pass(shut_by + 500);
            assert_eq!(control.held_by("k"), "a exclusive 1", "{gate:?}");
            assert_eq!(control.held_by("alone"), "a exclusive 1");
            control.has_waiters("k", 1);
            assert!(now_ms() < shut + PAUSE, "too slow a machine for this test");
        }
        gate.open(&mut control);
        next.token();
        if !matches!(gate, Gate::Replicas) {
            assert!(now_ms() >= shut + PAUSE - 10, "{gate:?}: granted too early");
        }
        assert_eq!(control.held_by("k"), "b exclusive 1");
        control.goes_free("alone");
        unharmed(&server, &replica, "k");
        assert_eq!(control.int("RLOCK.RELEASE k b"), 0);
    }
}

#[test]
fn a_connection_that_closes_behind_the_gate_after_its_lease_has_let_go() {
    let (server, replica) = pair(&["--appendonly", "yes"]);
    let mut control = server.raw();
    for gate in [Gate::Replicas, Gate::PauseWrite] {
        let held = Bound::with(&server, "k a 400");
        let mut next = Waiter::new(&server, "k", "b");
        let replies = control.ask_all(&[gate.shut(), "PEXPIRETIME k".to_owned()]);
        pass(int(replies[1].clone()) + 200);
        held.client.close();
        pass(now_ms() + 300);
        next.still_waits();
        gate.open(&mut control);
        next.token();
        assert_eq!(control.held_by("k"), "b exclusive 1");
        unharmed(&server, &replica, "k");
        assert_eq!(control.int("RLOCK.RELEASE k b"), 0);
    }
}

#[test]
fn a_wait_with_watchdog_behind_the_gate_is_granted_and_bound_after_it() {
    let (server, replica) = pair(&["--appendonly", "yes"]);
    let mut control = server.raw();
    let held = Bound::new(&server, "k", "a");
    let mut next = Waiter::with(&server, "k b 1200 BLOCK 0 WATCHDOG");
    control.ok("CONFIG SET min-replicas-to-write 2");
    held.client.close();
    let refused = control.ask("RLOCK.ACQUIRE k c 1000 WATCHDOG");
    assert_eq!(code(&refused), "NOREPLICAS");
    control.ok("CONFIG SET min-replicas-to-write 0");
    let granted = next.token();
    pass(now_ms() + 4000);
    let hold = control.only("k");
    assert_eq!((hold.token, hold.watchdog), (Some(granted), Some(next.id)));
    unharmed(&server, &replica, "k");
}

#[test]
fn a_failover_takes_the_hold_along_and_leaves_the_bond() {
    let (server, replica) = pair(&["--appendonly", "yes"]);
    let mut control = server.raw();
    let mut held = Bound::with(&server, "k a 100000");
    control.ok("FAILOVER");
    assert!(held.client.is_closed());
    let mut promoted = replica.raw();
    eventually("the replica is master", || {
        replica.info_field("replication", "role").as_deref() == Some("master")
    });
    let hold = promoted.only("k");
    assert_eq!((hold.owner.as_str(), hold.watchdog), ("a", None));
    assert!(promoted.ends("k") > now_ms());
    server.alive();
    replica.alive();
}

#[test]
fn what_memory_lacks_does_not_matter_to_holds_there_are() {
    let server = Server::start();
    let mut control = server.raw();
    let mut held = Bound::with(&server, "k a 600");
    let mut next = Waiter::with(&server, "k b 600 BLOCK 0 WATCHDOG");
    control.ok("CONFIG SET maxmemory 1");
    assert_eq!(control.code("RLOCK.ACQUIRE k c 1000 WATCHDOG"), "OOM");
    pass(now_ms() + 2000);
    assert_eq!(control.watchdog("k"), Some(held.id));
    held.client.in_step();
    held.client.close();
    next.token();
    pass(now_ms() + 1500);
    assert_eq!(control.watchdog("k"), Some(next.id));
}

//! Rights that are taken away while a request waits: it is not granted, its client is told
//! NOPERM, and the next has its turn.

use redis::Value;

use crate::support::{both_ways, code, each, Ask, RawClient, Server, Session, Waiter, Way, LONG};

/// All that a session needs, and so much of rlock.
const RULES: &str = "reset on >secret ~k ~l ~other &* +@connection +@pubsub +info \
                     +rlock.acquire +rlock.macquire +rlock.release";

/// A connection of this user, who has `RULES`.
#[track_caller]
fn user(server: &Server, name: &str) -> RawClient {
    server.raw().ok(&format!("ACL SETUSER {name} {RULES}"));
    let mut client = server.raw();
    client.ok(&format!("AUTH {name} secret"));
    client
}

fn line(keys: &str, owner: &str) -> String {
    match keys.split(' ').count() {
        1 => format!("RLOCK.ACQUIRE {keys} {owner} {LONG} BLOCK 0"),
        count => format!("RLOCK.MACQUIRE {count} {keys} {owner} {LONG} BLOCK 0"),
    }
}

#[track_caller]
fn is_refused(waiter: &mut Waiter) {
    let end = waiter.end();
    assert_eq!(code(&end), "NOPERM", "{end:?}");
    waiter.client.in_step();
}

both_ways!(who_has_lost_his_rights_gets_the_error_and_the_next_has_the_lock);
fn who_has_lost_his_rights_gets_the_error_and_the_next_has_the_lock(by: Way) {
    let changes = [
        "resetkeys",
        "-@all +ping",
        "-rlock.acquire -rlock.macquire",
        "resetkeys %R~k %R~l",
        // Of the keys alone, and of the command alone, he has the rights.
        "-@all +ping +get (+rlock.acquire +rlock.macquire ~else)",
    ];
    let server = Server::start();
    let mut control = server.raw();
    for change in changes {
        for keys in ["k", "k l"] {
            control.take("k", "x");
            let mut bob = by.on(user(&server, "bob"), &line(keys, "bob"));
            control.has_waiters("k", 1);
            let mut next = by.on(user(&server, "ann"), &line(keys, "ann"));
            control.has_waiters("k", 2);
            control.ok(&format!("ACL SETUSER bob {change}"));
            control.release("k", "x");
            is_refused(&mut bob);
            next.token();
            assert_eq!(control.hash("k"), "ann=1", "{change} {keys}");
            for key in keys.split(' ') {
                control.release(key, "ann");
                control.is_free(key);
            }
        }
    }
    assert_eq!(control.counter("rlock_waiting"), 0);
    assert_eq!(control.counter("rlock_queued"), 0);
}

both_ways!(who_has_his_rights_when_it_is_his_turn_has_the_lock);
fn who_has_his_rights_when_it_is_his_turn_has_the_lock(by: Way) {
    let server = Server::start();
    let mut control = server.raw();
    for (change, then) in [
        ("+get", ""),
        ("~more", ""),
        ("resetkeys", "~k ~l"),
        (
            "-@all +@pubsub +ping (+rlock.acquire +rlock.macquire ~k ~l)",
            "",
        ),
        ("-rlock.release", ""),
        // Live connections go on.
        ("off", "on"),
    ] {
        for keys in ["k", "k l"] {
            control.take("k", "x");
            let mut bob = by.on(user(&server, "bob"), &line(keys, "bob"));
            control.has_waiters("k", 1);
            for change in [change, then] {
                control.ok(&format!("ACL SETUSER bob {change}"));
            }
            control.release("k", "x");
            bob.token();
            for key in keys.split(' ') {
                control.release(key, "bob");
            }
        }
    }
}

/// Of one key alone, by the command for several.
#[test]
fn one_who_may_only_ask_for_several_is_granted_one() {
    let server = Server::start();
    let mut control = server.raw();
    for (rule, granted) in [("+rlock.macquire", true), ("+rlock.renew", false)] {
        control.take("k", "x");
        let line = format!("RLOCK.MACQUIRE 1 k bob {LONG} BLOCK 0");
        let mut bob = Waiter::on(user(&server, "bob"), &line);
        control.has_waiters("k", 1);
        control.ok(&format!("ACL SETUSER bob -@all {rule} +ping"));
        control.release("k", "x");
        match granted {
            true => {
                bob.token();
                control.release("k", "bob");
            }
            false => is_refused(&mut bob),
        }
    }
}

#[test]
fn the_default_user_is_one_as_well() {
    each(&Way::ALL, |by, server, control| {
        let mut admin = user(server, "admin");
        control.ok("ACL SETUSER admin allkeys allcommands");
        control.take("k", "x");
        let mut waiter = by.wait(server, "k", "b");
        admin.has_waiters("k", 1);
        admin.ok("ACL SETUSER default resetkeys ~other");
        admin.release("k", "x");
        is_refused(&mut waiter);
        admin.ok("ACL SETUSER default allkeys");
        admin.is_free("k");
    });
}

/// Every one of a crowd, and none of the others.
#[test]
fn a_crowd_without_rights_holds_up_nobody() {
    const MANY: usize = 300;
    let server = Server::start();
    let mut control = server.raw();
    control.take("k", "x");
    let mut crowd: Vec<Waiter> = (0..MANY)
        .map(|n| Waiter::on(user(&server, "bob"), &line("k", &format!("bob{n}"))))
        .collect();
    control.has_waiters("k", MANY as i64);
    let mut last = Waiter::new(&server, "k", "last");
    control.ok("ACL SETUSER bob resetkeys");
    control.release("k", "x");
    last.token();
    crowd.iter_mut().for_each(is_refused);
}

#[test]
fn a_user_who_is_deleted_is_gone_with_his_waits() {
    each(&Way::ALL, |by, server, control| {
        control.take("k", "x");
        let mut bob = by.on(user(server, "bob"), &line("k", "bob"));
        control.has_waiters("k", 1);
        let mut next = by.wait(server, "k", "next");
        let replies = control.ask_all(&["ACL DELUSER bob", "RLOCK.RELEASE k x"]);
        assert_eq!(replies, [Value::Int(1), Value::Int(0)]);
        assert!(bob.client.is_closed());
        next.token();
        assert_eq!(control.hash("k"), "next=1");
        control.release("k", "next");
    });
}

/// It is the user that the connection has when it is its turn: who it is that has the lock then.
#[test]
fn a_session_that_has_become_another_users_has_that_ones_rights() {
    let server = Server::start();
    let mut control = server.raw();
    for (becomes, rules) in [("ann", "~k"), ("eve", "resetkeys ~other")] {
        control.take("k", "x");
        let mut session = Session::on(user(&server, "bob"));
        session.queue("k", "bob", "t");
        drop(user(&server, becomes));
        control.ok(&format!("ACL SETUSER {becomes} {rules}"));
        session.client.ok(&format!("AUTH {becomes} secret"));
        // Of the request's own user nothing is asked any more.
        control.ok("ACL SETUSER bob resetkeys");
        control.release("k", "x");
        if becomes == "ann" {
            session.granted("t");
            session.client.release("k", "bob");
        } else {
            let told = session.about("t");
            assert!(told.starts_with("error t NOPERM the rights"), "{told}");
        }
        control.is_free("k");
    }
}

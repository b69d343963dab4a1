//! What the server and rlock say of the module and its commands: HELP, COMMAND DOCS,
//! MODULE LIST, its category of ACLs.

use crate::support::{bulk, map, text, user, Ask, RawClient, Server};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// All commands, as the server lists them.
#[track_caller]
fn commands(client: &mut RawClient) -> Vec<String> {
    let all = client.list("COMMAND LIST FILTERBY MODULE rlock");
    let mut all: Vec<String> = all.into_iter().map(text).collect();
    all.sort();
    all
}

#[test]
fn help_shows_how_each_command_is_called_and_what_it_does() {
    let server = Server::start();
    let mut client = server.raw();
    let lines = client.texts("RLOCK.HELP");
    let mut told: Vec<String> = lines
        .chunks(2)
        .map(|command| {
            assert!(command[1].starts_with("    "), "{command:?}");
            let name = command[0].split(' ').next().unwrap();
            name.to_lowercase()
        })
        .collect();
    told.sort();
    assert_eq!(told, commands(&mut client));
    assert!(client.error("RLOCK.HELP me").contains("RLOCK.HELP"));
}

#[test]
fn command_docs_say_since_when_and_what_it_costs() {
    let server = Server::start();
    let mut client = server.raw();
    for command in commands(&mut client) {
        let docs = map(client.map(&format!("COMMAND DOCS {command}"))[&command].clone());
        assert_eq!(docs["since"], bulk("0.9.0"), "{command}");
        assert!(
            text(docs["complexity"].clone()).starts_with("O("),
            "{command}"
        );
        assert!(!text(docs["summary"].clone()).is_empty(), "{command}");
        assert_eq!(docs["group"], bulk("module"), "{command}");
    }
}

#[test]
fn the_version_is_the_same_in_each_place() {
    let server = Server::start();
    let mut client = server.raw();
    let modules = client.list("MODULE LIST").into_iter().map(map);
    let mut ours = modules.filter(|module| module["name"] == bulk("rlock"));
    let number = VERSION.split('.').map(|part| part.parse::<i64>().unwrap());
    let number = number.fold(0, |all, part| all * 100 + part);
    assert_eq!(ours.next().unwrap()["ver"], redis::Value::Int(number));
    let info = client.text("INFO rlock");
    assert!(
        info.contains(&format!("rlock_version:{VERSION}\r\n")),
        "{info}"
    );
    assert!(info.contains("rlock_build:"), "{info}");
    assert!(server.log().contains(&format!("rlock {VERSION} (build ")));
}

#[test]
fn a_category_of_its_own_has_all_commands_where_modules_can_have_one() {
    let server = Server::start();
    let mut client = server.raw();
    if !client.texts("ACL CAT").iter().any(|name| name == "rlock") {
        // Redis 7.2 has none.
        let version = server.version();
        assert!(!version.is_valkey() && !version.at_least(7, 4));
        return;
    }
    // Redis 7.4 and Valkey 8 have the commands in it, but tell of no module's.
    let tells = client
        .texts("ACL CAT write")
        .contains(&"rlock.acquire".to_owned());
    let mut told = client.texts("ACL CAT rlock");
    told.sort();
    let all = if tells {
        commands(&mut client)
    } else {
        Vec::new()
    };
    assert_eq!(told, all);
    let mut member = user(&server, "~* &rlock:* -@all +@rlock");
    assert!(member.int("RLOCK.ACQUIRE k a 60000") > 0);
    assert!(member.denied("GET k"));
    // It is there again when the module is loaded a second time.
    assert_eq!(client.int("RLOCK.RELEASE k a"), 0);
    let path = client.module_path();
    client.unload_module();
    client.ok(&format!("MODULE LOAD {path}"));
    let mut again = client.texts("ACL CAT rlock");
    again.sort();
    assert_eq!(again, told);
}

//! docs/commands.md, the page of each command and those of what they have in common: what they
//! say of commands is what the server says, and their examples do what they show.

use std::fs;
use std::path::{Path, PathBuf};

use redis::Value;

use super::transcript::{blocks, Block, Play};
use crate::support::{list, map, text, Ask, RawClient, Server};

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The pages of a folder below docs/.
fn pages(folder: &str) -> Vec<PathBuf> {
    let files = fs::read_dir(docs().join(folder)).expect("a folder");
    let mut pages: Vec<PathBuf> = files.map(|file| file.expect("a file").path()).collect();
    pages.sort();
    pages
}

/// All commands, as the server lists them.
fn commands(client: &mut RawClient) -> Vec<String> {
    let all = client.texts("COMMAND LIST FILTERBY MODULE rlock");
    all.iter().map(|name| name.to_lowercase()).collect()
}

/// The cell beside `name` in the table at the head of a page.
#[track_caller]
fn cell<'a>(page: &'a str, name: &str) -> &'a str {
    let begin = format!("| {name} | ");
    let mut lines = page.lines();
    let line = lines.find_map(|line| line.strip_prefix(&begin));
    line.and_then(|line| line.strip_suffix(" |"))
        .unwrap_or_else(|| panic!("no line {name:?}"))
}

/// What stands between backquotes, which begins with `sign`.
fn quoted(cell: &str, sign: char) -> Vec<&str> {
    let mut words: Vec<&str> = cell
        .split('`')
        .filter(|word| word.starts_with(sign))
        .collect();
    words.sort_unstable();
    words
}

/// Plays the transcripts of a page, each on a server of its own, and once more in RESP2 where
/// that can be: there a connection that is subscribed does nothing else.
fn play(path: &Path) -> usize {
    let blocks = blocks(&read(path)).into_iter();
    let transcripts = blocks.filter(Block::is_transcript);
    let played = transcripts.map(|Block { language, text }| {
        println!("{}:\n{text}", path.display());
        let server = Server::start();
        if language == "resp2" {
            return Play::on(&server, 2).play(&text);
        }
        let mut play = Play::on(&server, 3);
        play.play(&text);
        if !text.contains("SUBSCRIBE") {
            let server = Server::start();
            println!("in RESP2");
            let (replies, text) = play.ended(&text);
            Play::as_resp2(&server, &replies).play(&text);
        }
    });
    played.count()
}

#[test]
fn the_example_of_each_command_does_what_its_page_shows() {
    for page in pages("commands") {
        assert!(play(&page) > 0, "{} has no example", page.display());
    }
}

#[test]
fn the_examples_of_what_commands_have_in_common_do_what_is_shown() {
    let played: usize = pages("reference").iter().map(|page| play(page)).sum();
    assert!(played > 0, "no page has an example");
}

#[test]
fn each_command_has_a_page_and_each_page_a_command() {
    let server = Server::start();
    let mut client = server.raw();
    let mut named: Vec<String> = commands(&mut client)
        .iter()
        .map(|name| format!("{}.md", name.trim_start_matches("rlock.")))
        .collect();
    named.sort();
    let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    let pages: Vec<String> = pages("commands").iter().map(name).collect();
    assert_eq!(pages, named);
}

#[test]
fn pages_say_of_commands_what_the_server_says() {
    let server = Server::start();
    let mut client = server.raw();
    let usages = client.texts("RLOCK.HELP");
    let all = read(&docs().join("commands.md")).replace("\\|", "|");
    for command in commands(&mut client) {
        println!("{command}");
        let name = command.trim_start_matches("rlock.");
        let page = read(&docs().join("commands").join(format!("{name}.md")));
        let called = command.to_uppercase();
        assert!(page.starts_with(&format!("# {called}\n")));

        let is_it = |line: &&String| line.split(' ').next() == Some(&called);
        let usage = usages.iter().find(is_it).expect("help has it");
        assert_eq!(blocks(&page)[0].text.trim_end(), usage);
        let linked = format!("[`{usage}`](commands/{name}.md)");
        assert!(all.contains(&linked), "docs/commands.md has no {linked}");

        let docs = client.map(&format!("COMMAND DOCS {command}"));
        let docs = map(docs[&command].clone());
        let says = |field: &str| text(docs[field].clone());
        assert!(page.contains(&format!("\n\n{}.\n", says("summary"))));
        assert_eq!(cell(&page, "since"), says("since"));
        assert_eq!(cell(&page, "complexity"), says("complexity"));

        let info = client.list(&format!("COMMAND INFO {command}")).remove(0);
        let info = list(info);
        let keys = key_permission(&info[8]);
        assert_eq!(
            quoted(cell(&page, "key permission"), '%').first(),
            keys.as_ref()
        );
        let channel = !quoted(cell(&page, "channel permission"), '&').is_empty();
        assert_eq!(channel, usage.contains("NOTIFY channel"), "the channel");
        same_categories(name, cell(&page, "ACL categories"), &info[6]);
    }
}

/// What a user needs to be allowed to do with the keys. LIST needs it for what it shows.
fn key_permission(specs: &Value) -> Option<&'static str> {
    let first = list(specs.clone()).into_iter().next().map(map)?;
    let flags = list(first["flags"].clone()).into_iter().map(text);
    let mut flags = flags.map(|flag| flag.to_lowercase());
    let writes = flags.any(|flag| flag == "rw");
    Some(if writes { "%RW~" } else { "%R~" })
}

/// Redis 7.0 knows no categories of a module's commands: there what the module tells is read
/// off its source.
fn same_categories(name: &str, cell: &str, info: &Value) {
    let file = format!("src/command/{name}.rs");
    let source = read(&Path::new(env!("CARGO_MANIFEST_DIR")).join(file));
    let told = source.split_once("acl: \"").expect("its categories").1;
    let told = told.split('"').next().unwrap_or_default();
    let mut told: Vec<String> = told.split(' ').map(|word| format!("@{word}")).collect();
    told.sort();
    assert_eq!(quoted(cell, '@'), told);
    let mut known: Vec<String> = list(info.clone()).into_iter().map(text).collect();
    known.retain(|category| category != "@rlock");
    known.sort();
    if !known.is_empty() {
        assert_eq!(quoted(cell, '@'), known);
    }
}

//! A slot that moves to the other node of a cluster, with all that a crowd has there.

use std::thread::sleep;
use std::time::{Duration, Instant};

use super::scene::Scene;
use crate::load::{bulk, parts, Connection, Outcome};

/// How long the nodes may take to agree.
const PATIENCE: Duration = Duration::from_secs(60);

/// So many keys move at a time.
const KEYS: &str = "100";

/// How long a move of some keys may take, ms: counted, it is slow.
const MOVE_MS: &str = "600000";

impl Scene {
    /// In a cluster the other node joins it.
    pub fn meet(&mut self) -> Outcome<()> {
        let Some(other) = &self.other else {
            return Ok(());
        };
        let (port, bus) = (other.port().to_string(), other.bus_port().to_string());
        let mut there = other.connect()?;
        ask(
            &mut self.control,
            &["CLUSTER", "ADDSLOTSRANGE", "0", "16383"],
        )?;
        ask(
            &mut self.control,
            &["CLUSTER", "MEET", "127.0.0.1", &port, &bus],
        )?;
        for node in [&mut self.control, &mut there] {
            let end = Instant::now() + PATIENCE;
            loop {
                let info = node.text(&["CLUSTER", "INFO"])?;
                let has = |line| info.contains(line);
                if has("cluster_state:ok")
                    && has("cluster_known_nodes:2")
                    && has("cluster_slots_assigned:16384")
                {
                    break;
                }
                if Instant::now() > end {
                    return Err("the nodes do not agree".into());
                }
                sleep(Duration::from_millis(20));
            }
        }
        Ok(())
    }
}

/// The slot of the crowd is on its way from now on.
pub fn begin_to_move(scene: &mut Scene) -> Outcome<()> {
    let other = scene.other.as_ref().ok_or("no other node")?;
    let mut there = other.connect()?;
    let slot = slot(scene)?;
    let from = id(&mut scene.control)?;
    let to = id(&mut there)?;
    ask(
        &mut there,
        &["CLUSTER", "SETSLOT", &slot, "IMPORTING", &from],
    )?;
    let ask_here = ["CLUSTER", "SETSLOT", &slot, "MIGRATING", &to];
    ask(&mut scene.control, &ask_here)
}

/// It moves, with all its keys.
pub fn move_slot(scene: &mut Scene) -> Outcome<()> {
    begin_to_move(scene)?;
    let other = scene.other.as_ref().ok_or("no other node")?;
    let mut there = other.connect()?;
    let (port, slot, to) = (other.port().to_string(), slot(scene)?, id(&mut there)?);
    loop {
        let reply = scene
            .control
            .call(&["CLUSTER", "GETKEYSINSLOT", &slot, KEYS])?;
        let keys: Vec<String> = parts(reply)?
            .into_iter()
            .map(|part| bulk(part).map(ToOwned::to_owned))
            .collect::<Outcome<_>>()?;
        if keys.is_empty() {
            break;
        }
        let mut migrate = vec!["MIGRATE", "127.0.0.1", &port, "", "0", MOVE_MS, "KEYS"];
        migrate.extend(keys.iter().map(String::as_str));
        ask(&mut scene.control, &migrate)?;
    }
    for node in [&mut there, &mut scene.control] {
        ask(node, &["CLUSTER", "SETSLOT", &slot, "NODE", &to])?;
    }
    Ok(())
}

/// Of all the locks of a crowd it is the same.
fn slot(scene: &mut Scene) -> Outcome<String> {
    let slot = scene.control.text(&["CLUSTER", "KEYSLOT", "lock"])?;
    Ok(slot.trim_start_matches(':').trim_end().to_owned())
}

fn id(node: &mut Connection) -> Outcome<String> {
    Ok(bulk(node.call(&["CLUSTER", "MYID"])?)?.to_owned())
}

fn ask(node: &mut Connection, parts: &[&str]) -> Outcome<()> {
    let reply = node.call(parts)?;
    match reply.starts_with(b"-") {
        true => Err(format!("{}: {}", parts[0], String::from_utf8_lossy(reply)).into()),
        false => Ok(()),
    }
}

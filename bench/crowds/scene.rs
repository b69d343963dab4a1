//! A server with a crowd on it.

use std::thread::sleep;
use std::time::{Duration, Instant};

use super::crowd::Crowd;
use crate::load::{Connection, Outcome, Server, Session};
use crate::options::Options;

/// How long something may take that is waited for: counted, all takes fifty times as long.
const PATIENCE: Duration = Duration::from_secs(900);

/// So long before and after the end of a crowd.
const MOMENT: Duration = Duration::from_millis(100);

/// How a server is to be started.
#[derive(Clone, Copy)]
pub struct How {
    pub counted: bool,
    pub with_module: bool,
    /// What is measured is not judged.
    pub hurry: bool,
}

/// A server, who asks it, and how many make up the crowd.
pub struct Scene {
    pub control: Connection,
    /// Queued waiters, or who is notified of holds.
    pub sessions: Vec<Session>,
    /// Who is blocked.
    pub blocked: Vec<Connection>,
    pub n: usize,
    /// When leases, waits or kept places end, where that is to happen.
    pub ends: Instant,
    pub server: Server,
    /// The other node of a cluster, of whose slots it has none.
    pub other: Option<Server>,
    how: How,
}

impl Scene {
    /// A server on which there is such a crowd. One that ends comes anew, with more time, if the
    /// first have ended before the last have come.
    pub fn with(crowd: &Crowd, n: usize, how: How, options: &Options) -> Outcome<Self> {
        for more in [1, 3, 9] {
            let mut scene = Self::new(crowd, n, how, options)?;
            let comes = match (how.counted, how.hurry) {
                (true, _) => 1_500 + n / 4,
                (false, false) => 700 + n / 20,
                (false, true) => 500,
            };
            scene.ends = Instant::now() + Duration::from_millis((comes * more) as u64);
            scene.run(crowd.make)?;
            if !crowd.ends() || scene.ends > Instant::now() + MOMENT {
                return Ok(scene);
            }
        }
        Err("the first of the crowd ended before the last had come".into())
    }

    fn new(crowd: &Crowd, n: usize, how: How, options: &Options) -> Outcome<Self> {
        let module = options.module.as_deref().filter(|_| how.with_module);
        let start = |counted| match (crowd.in_a_cluster, counted) {
            (true, _) => Server::start_in_cluster(&options.server, module, counted),
            (false, true) => Server::start_counted(&options.server, module),
            (false, false) => Server::start(&options.server, module),
        };
        let server = start(how.counted)?;
        let other = crowd.in_a_cluster.then(|| start(false)).transpose()?;
        let mut control = server.connect()?;
        // What nobody reads in time is no reason to be cut off.
        let limit = ["client-output-buffer-limit", "pubsub 0 0 0"];
        control.call(&["CONFIG", "SET", limit[0], limit[1]])?;
        let mut scene = Scene {
            control,
            sessions: Vec::new(),
            blocked: Vec::new(),
            n,
            ends: Instant::now(),
            server,
            other,
            how,
        };
        scene.meet()?;
        Ok(scene)
    }

    /// Waits until each of these lines of INFO says 0, and the server rests.
    pub fn until_none(&mut self, fields: &[&str]) -> Outcome<()> {
        let end = Instant::now() + PATIENCE;
        for field in fields {
            let section = field.split_once('_').map_or("", |(first, _)| first);
            let section = if section == "rlock" {
                section
            } else {
                "clients"
            };
            let mut pause = Duration::from_millis(2);
            while self.control.info_number(section, field)? > 0.0 {
                if Instant::now() > end {
                    return Err(format!("{field} does not become 0").into());
                }
                sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(100));
            }
        }
        // What nothing tells of is done too.
        self.rest()
    }

    /// Until what it still does about something is done, where nothing tells: until it has
    /// hardly done anything for a while.
    pub fn rest(&self) -> Outcome<()> {
        let processor = self.server.processor()?;
        // What a server that is counted does now and then it does twice a second.
        let (pause, least) = match self.how {
            How { counted: true, .. } => (100, 7),
            How { hurry: true, .. } => (40, 1),
            _ => (100, 2),
        };
        let end = Instant::now() + PATIENCE;
        let mut rested = 0;
        while rested < least && Instant::now() < end {
            let before = processor.spent()?;
            sleep(Duration::from_millis(pause));
            let spent = processor.since(before)?;
            let is_busy = spent.ran + spent.stood_by > pause as f64 / 3.0;
            rested = if is_busy { 0 } else { rested + 1 };
        }
        Ok(())
    }
}

/// The connections of the crowd close.
pub fn close(scene: &mut Scene) -> Outcome<()> {
    scene.sessions.clear();
    scene.blocked.clear();
    Ok(())
}

/// They close, and the places of those who wait are kept for a while.
pub fn close_late(scene: &mut Scene) -> Outcome<()> {
    let kept = Duration::from_millis(if scene.how.hurry { 1_500 } else { 6_000 });
    let ms = kept.as_millis().to_string();
    scene
        .control
        .call(&["CONFIG", "SET", "rlock.keep-place", &ms])?;
    close(scene)?;
    scene.ends = Instant::now() + kept;
    scene.until_none(&["rlock_waiting"])
}

/// From a moment before all of the crowd end to a moment after.
pub fn come_to_the_end(scene: &mut Scene) -> Outcome<()> {
    let left = scene.ends.saturating_duration_since(Instant::now());
    sleep(left + MOMENT);
    Ok(())
}

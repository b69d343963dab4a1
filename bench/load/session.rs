//! A connection of queued waiters: it speaks RESP3 and listens to a channel of its own.

use super::{bulk, command, parts, Connection, Expect, Load, Outcome};

/// The connection, and where messages say how its waits end.
pub struct Session {
    pub connection: Connection,
    channel: String,
}

/// What a message says.
#[derive(Clone, Copy, Debug)]
pub struct Granted {
    /// The tag, of which the benchmark makes numbers.
    pub tag: usize,
    pub token: i64,
}

impl Session {
    /// Makes a session of a connection.
    pub fn on(connection: Connection) -> Outcome<Self> {
        Self::by("SUBSCRIBE", connection)
    }

    /// The same in a cluster.
    pub fn in_cluster(connection: Connection) -> Outcome<Self> {
        Self::by("SSUBSCRIBE", connection)
    }

    fn by(subscribe: &str, mut connection: Connection) -> Outcome<Self> {
        let id = connection.text(&["CLIENT", "ID"])?;
        let channel = format!("rlock:bench:{}", id.trim_start_matches(':').trim_end());
        connection.call(&["HELLO", "3"])?;
        connection.call(&[subscribe, &channel])?;
        Ok(Session {
            connection,
            channel,
        })
    }

    /// Where it listens.
    pub fn channel(&self) -> &str {
        &self.channel
    }

    /// An ACQUIRE for a lease that waits for so many ms; 0: for ever.
    pub fn wait(&self, key: &str, owner: &str, [lease, ms]: [&str; 2], tag: usize) -> Vec<u8> {
        self.queued(&["RLOCK.ACQUIRE", key, owner, lease, "QUEUE", ms], tag)
    }

    /// The same for all of several locks.
    pub fn wait_for_all(
        &self,
        keys: &[String],
        owner: &str,
        [lease, ms]: [&str; 2],
        tag: usize,
    ) -> Vec<u8> {
        let number = keys.len().to_string();
        let mut ask = vec!["RLOCK.MACQUIRE", &number];
        ask.extend(keys.iter().map(String::as_str));
        ask.extend([owner, lease, "QUEUE", ms]);
        self.queued(&ask, tag)
    }

    fn queued(&self, ask: &[&str], tag: usize) -> Vec<u8> {
        let tag = tag.to_string();
        command(&[ask, &["NOTIFY", &self.channel, &tag]].concat())
    }

    /// Sends such requests, for locks that are held.
    pub fn queue(&mut self, waits: &[Vec<u8>]) -> Outcome<()> {
        let queued = [Expect::Exactly("+QUEUED\r\n")];
        Load::new(64, waits, &queued).run_once(&mut self.connection)?;
        Ok(())
    }
}

impl Granted {
    /// The grant that a reply tells of; none: it is the reply to a command. A message that
    /// says something else is an error.
    pub fn read(reply: &[u8]) -> Outcome<Option<Self>> {
        if !reply.starts_with(b">") {
            return Ok(None);
        }
        // message, the channel, what was published.
        let parts = parts(reply)?;
        let text = bulk(parts.last().copied().unwrap_or_default())?;
        let mut words = text.split(' ');
        match (words.next(), words.next(), words.next()) {
            (Some("granted"), Some(tag), Some(token)) => Ok(Some(Self {
                tag: tag.parse()?,
                token: token.parse()?,
            })),
            _ => Err(format!("expected a grant, the message is {text:?}").into()),
        }
    }
}

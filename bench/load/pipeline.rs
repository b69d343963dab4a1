//! A load: commands prepared as bytes once, sent round and round with a fixed
//! number of them in flight.

use std::time::{Duration, Instant};

use super::{Connection, Expect, Outcome};

/// Commands that one write sends.
struct Chunk {
    bytes: Vec<u8>,
    commands: usize,
}

/// Prepared commands and the replies they must get.
pub struct Load {
    chunks: Vec<Chunk>,
    commands: usize,
    expect: Vec<Expect>,
    chunks_in_flight: usize,
    cursor: usize,
}

/// What a run came to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rate {
    /// Commands answered.
    pub commands: usize,
    /// How long that took.
    pub time: Duration,
}

impl Rate {
    /// Commands a second.
    pub fn per_second(self) -> f64 {
        self.commands as f64 / self.time.as_secs_f64()
    }
}

impl Load {
    /// Prepares `commands`, whose replies are as in `expect`, over and over;
    /// their number must be a multiple of its length.
    ///
    /// With more than one in flight, they go out in two halves: the server
    /// works on one while the client sends the other, so that neither waits.
    pub fn new(depth: usize, commands: &[Vec<u8>], expect: &[Expect]) -> Self {
        assert_eq!(commands.len() % expect.len(), 0, "a pair was cut in two");
        let per_chunk = (depth / 2).max(1);
        let chunks = commands.chunks(per_chunk).map(|commands| Chunk {
            bytes: commands.concat(),
            commands: commands.len(),
        });
        Load {
            chunks: chunks.collect(),
            commands: commands.len(),
            expect: expect.to_vec(),
            chunks_in_flight: depth / per_chunk,
            cursor: 0,
        }
    }

    /// Sends commands for about `time`.
    pub fn run(&mut self, connection: &mut Connection, time: Duration) -> Outcome<Rate> {
        let end = Instant::now() + time;
        // Stops only where a pair ends, so that no lock is left behind.
        let pair = self.expect.len();
        self.run_while(connection, |sent| {
            !sent.is_multiple_of(pair) || Instant::now() < end
        })
    }

    /// Sends every command once.
    pub fn run_once(&mut self, connection: &mut Connection) -> Outcome<Rate> {
        self.cursor = 0;
        let all = self.commands;
        self.run_while(connection, |sent| sent < all)
    }

    fn run_while(
        &mut self,
        connection: &mut Connection,
        more: impl Fn(usize) -> bool,
    ) -> Outcome<Rate> {
        let start = Instant::now();
        let (mut sent, mut answered) = (0, 0);
        // The chunk whose replies come in next, and how many are out.
        let (mut oldest, mut in_flight) = (self.cursor, 0);
        loop {
            while in_flight < self.chunks_in_flight && more(sent) {
                let chunk = &self.chunks[self.cursor];
                connection.send(&chunk.bytes)?;
                sent += chunk.commands;
                in_flight += 1;
                self.cursor = (self.cursor + 1) % self.chunks.len();
            }
            if in_flight == 0 {
                break;
            }
            let due = answered + self.chunks[oldest].commands;
            while answered < due {
                while let Some(reply) = connection.received()? {
                    self.expect[answered % self.expect.len()].check(reply)?;
                    answered += 1;
                    if answered == due {
                        break;
                    }
                }
                if answered < due {
                    connection.receive()?;
                }
            }
            oldest = (oldest + 1) % self.chunks.len();
            in_flight -= 1;
        }
        Ok(Rate {
            commands: answered,
            time: start.elapsed(),
        })
    }
}

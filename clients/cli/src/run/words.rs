//! What `rlock` and its guard say to each other: a line each, over a pair of sockets.

use std::time::Duration;

/// To the guard.
#[derive(Debug, PartialEq, Eq)]
pub enum Order {
    Start {
        token: u64,
        owner: String,
        until: Until,
    },
    /// The lease was renewed.
    Until(Until),
    Signal(i32),
    /// The shell has put `rlock` to the foreground.
    Continue,
    /// The lock is lost: TERM now.
    End,
}

/// When the command has to go, by the clock of leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Until {
    pub term: Duration,
    pub kill: Duration,
}

/// From the guard.
#[derive(Debug, PartialEq, Eq)]
pub enum Report {
    /// The command's process group.
    Started(i32),
    /// It cannot be run: the system's number for why.
    Failed(i32),
    /// The command has ended with this status, and nothing that came from it is left.
    Ended(i32),
    /// The same, by a signal.
    Killed(i32),
    /// The same, by one that a key of the terminal seems to have sent to its group alone.
    Interrupted(i32),
    /// It was sent TERM, for the lock was not renewed.
    Late,
    /// It was stopped by ctrl-z, and goes on.
    Resumed,
}

impl Until {
    /// Of a lease that was asked for then: two thirds of it, and nine tenths.
    pub fn of(lease: Duration, asked: Duration) -> Self {
        Self {
            term: asked + lease * 2 / 3,
            kill: asked + lease * 9 / 10,
        }
    }

    fn line(self) -> String {
        format!("{} {}", self.term.as_millis(), self.kill.as_millis())
    }

    fn parse<'a>(words: &mut impl Iterator<Item = &'a str>) -> Option<Self> {
        let mut time = || words.next()?.parse().ok().map(Duration::from_millis);
        Some(Self {
            term: time()?,
            kill: time()?,
        })
    }
}

impl Order {
    pub fn line(&self) -> String {
        match self {
            Self::Start {
                token,
                owner,
                until,
            } => format!("start {} {token} {owner}\n", until.line()),
            Self::Until(until) => format!("until {}\n", until.line()),
            Self::Signal(signal) => format!("signal {signal}\n"),
            Self::Continue => "continue\n".into(),
            Self::End => "end\n".into(),
        }
    }

    pub fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        Some(match words.next()? {
            "start" => {
                let until = Until::parse(&mut words)?;
                let token = words.next()?.parse().ok()?;
                let owner = words.collect::<Vec<_>>().join(" ");
                Self::Start {
                    token,
                    owner,
                    until,
                }
            }
            "until" => Self::Until(Until::parse(&mut words)?),
            "signal" => Self::Signal(words.next()?.parse().ok()?),
            "continue" => Self::Continue,
            "end" => Self::End,
            _ => return None,
        })
    }
}

impl Report {
    pub fn line(&self) -> String {
        match self {
            Self::Started(group) => format!("started {group}\n"),
            Self::Failed(error) => format!("failed {error}\n"),
            Self::Ended(status) => format!("ended {status}\n"),
            Self::Killed(signal) => format!("killed {signal}\n"),
            Self::Interrupted(signal) => format!("interrupted {signal}\n"),
            Self::Late => "late\n".into(),
            Self::Resumed => "resumed\n".into(),
        }
    }

    pub fn parse(line: &str) -> Option<Self> {
        let (word, number) = line.split_once(' ').unwrap_or((line, "0"));
        let number = number.parse().ok()?;
        Some(match word {
            "started" => Self::Started(number),
            "failed" => Self::Failed(number),
            "ended" => Self::Ended(number),
            "killed" => Self::Killed(number),
            "interrupted" => Self::Interrupted(number),
            "late" => Self::Late,
            "resumed" => Self::Resumed,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_understood() {
        let until = Until::of(Duration::from_secs(30), Duration::from_secs(5));
        assert_eq!(
            until,
            Until {
                term: Duration::from_secs(25),
                kill: Duration::from_secs(32)
            }
        );
        let orders = [
            Order::Start {
                token: 5,
                owner: "h:1:u".into(),
                until,
            },
            Order::Until(until),
            Order::Signal(15),
            Order::Continue,
            Order::End,
        ];
        for order in orders {
            assert_eq!(Order::parse(order.line().trim_end()), Some(order));
        }
        let reports = [
            Report::Started(7),
            Report::Failed(2),
            Report::Ended(255),
            Report::Killed(15),
            Report::Interrupted(2),
            Report::Late,
            Report::Resumed,
        ];
        for report in reports {
            assert_eq!(Report::parse(report.line().trim_end()), Some(report));
        }
        assert_eq!((Order::parse(""), Report::parse("x")), (None, None));
    }
}

//! Names, owners and numbers, right and wrong.

use super::{Draw, SESSION};

const KEYS: [&[u8]; 6] = [b"a", b"b", b"{t}c", b"{t}d", b"e", b"f"];

/// Names that have a meaning beside a lock, or in the protocol, or none.
const ODD_KEYS: [&[u8]; 26] = [
    b"",
    b"mode",
    b"{",
    b"}",
    b"{}",
    b"a{b",
    b"a}b",
    b"x{y}z",
    b":",
    b"*",
    b"\0",
    b"a\r\nb",
    b"-1",
    b"\xff\xfe\0\r\n$5\r\n",
    b"READ",
    b"{a}:o1:rwlock_timeout:1",
    b"{a}:o1:rwlock_timeout:2",
    b"{b}:o2:rwlock_timeout:1",
    b"{a}:o1",
    b":rwlock_timeout:1",
    b"redisson_lock_token:{a}",
    b"redisson_lock_token:{b}",
    b"redisson_lock_queue:{a}",
    b"redisson_lock_timeout:{a}",
    b"{t}c:o1:rwlock_timeout:1",
    b"rlock_probe:{a}",
];

pub(super) const OWNERS: [&[u8]; 5] = [b"o1", b"o2", b"o3", b"job:7", b"o4"];

const ODD_OWNERS: [&[u8]; 20] = [
    b"*",
    b"",
    b"mode",
    b"o1:write",
    b":write",
    b"write",
    b"o\0\xff",
    b"a\r\nb",
    b"{",
    b"}",
    b":",
    b"}:o1",
    b"o1:rwlock_timeout:1",
    b":rwlock_timeout:",
    b"READ",
    b"1",
    b"permits 3 3 1",
    b" ",
    b"'quoted\\",
    b"ALL",
];

pub const NUMBERS: [&str; 30] = [
    "",
    "0",
    "-0",
    "+1",
    "-1",
    "1",
    "2",
    "007",
    "01",
    " 1",
    "1 ",
    "1\0",
    "1\r\n",
    "1e9",
    "1.5",
    "0x10",
    "nan",
    "inf",
    "1000000",
    "1000001",
    "2147483647",
    "2147483648",
    "4294967296",
    "4503599627370497",
    "9007199254740991",
    "9007199254740992",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "99999999999999999999999999999999999999",
];

impl Draw {
    pub fn key(&mut self) -> Vec<u8> {
        if !self.names.is_empty() {
            return self.pick(self.names).into();
        }
        match self.rng.u32(0..100) {
            0..80 => self.pick(&KEYS).to_vec(),
            80..98 => self.pick(&ODD_KEYS).to_vec(),
            98 => self.long(b"k\0\xff"),
            _ => self.bytes(12),
        }
    }

    pub fn owner(&mut self) -> Vec<u8> {
        match self.rng.u32(0..100) {
            0..85 => self.pick(&OWNERS).to_vec(),
            85..96 => self.pick(&ODD_OWNERS).to_vec(),
            96 if self.once_in(2) => vec![b'o'; self.pick(&[511, 512, 513, 600, 5000])],
            96 => self.long(b"o\0\xff"),
            97 => {
                let mut long = vec![b'o'; self.pick(&[506, 507, 512])];
                long.extend(b":write");
                long
            }
            98 => [self.pick(&OWNERS), b":write"].concat(),
            _ => self.bytes(8),
        }
    }

    /// One byte again and again: each length up to 64, and around each power of two.
    fn long(&mut self, bytes: &[u8]) -> Vec<u8> {
        let length = match self.rng.u32(0..2) {
            0 => self.rng.usize(0..=64),
            _ => (1 << self.rng.u32(0..=16)) + self.rng.usize(0..3) - 1,
        };
        vec![self.pick(bytes); length]
    }

    pub fn bytes(&mut self, most: usize) -> Vec<u8> {
        let length = self.rng.usize(0..=most);
        (0..length).map(|_| self.rng.u8(..)).collect()
    }

    /// One of these, or now and then no such number.
    pub fn number(&mut self, usual: &[&str]) -> Vec<u8> {
        if self.once_in(16) {
            return self.pick(&NUMBERS).into();
        }
        self.pick(usual).into()
    }

    /// A lease or another time, ms.
    pub fn ms(&mut self) -> Vec<u8> {
        if self.calm {
            // Also of what is wrong none that is a time soon over.
            return loop {
                let ms = self.number(&["1000000", "2000000", "9007199254740991"]);
                if !matches!(ms.as_slice(), b"1" | b"2") {
                    break ms;
                }
            };
        }
        self.number(&["1", "5", "20", "100", "1000", "60000", "9007199254740991"])
    }

    pub fn token(&mut self) -> Vec<u8> {
        if self.once_in(4) {
            return self.number(&["1", "4503599627370496"]);
        }
        let at = self.rng.usize(0..self.tokens.len());
        self.tokens[at].to_string().into()
    }

    pub fn id(&mut self) -> Vec<u8> {
        let at = self.rng.usize(0..self.ids.len());
        self.ids[at].to_string().into()
    }

    pub fn session_channel(&mut self) -> Vec<u8> {
        match &self.channel {
            Some(channel) if self.rng.u32(0..16) != 0 => channel.clone().into(),
            _ => match self.rng.u32(0..4) {
                0 => Vec::new(),
                1 => vec![b'c'; self.pick(&[1024, 1025])],
                2 => b"nobody".to_vec(),
                _ => format!("{SESSION}{}", self.rng.u32(0..9)).into(),
            },
        }
    }

    pub fn tag(&mut self) -> Vec<u8> {
        match self.rng.u32(0..24) {
            0 => self.pick(&["", " ", "a b", "\r\n", "\u{e9}", "t1"]).into(),
            1 => vec![b't'; self.pick(&[63, 64, 65])],
            2 | 3 => format!("t{}", self.tag).into(),
            _ => {
                self.tag += 1;
                format!("t{}", self.tag).into()
            }
        }
    }

    /// What could stand in the field of a hash that is a lock, or nearly.
    pub fn field_value(&mut self) -> Vec<u8> {
        let ends = match self.rng.u32(0..3) {
            0 => "1",
            1 => "1900000000000",
            _ => "9223372036854775807",
        };
        match self.rng.u32(0..10) {
            0..3 => self.pick(&["1", "2", "3", "1025", "1000000"]).into(),
            3 => self.pick(&["read", "write"]).into(),
            4 => {
                let parts = [
                    "3 3 1",
                    "3 2 9",
                    "1 1 0",
                    "1000000 1 1",
                    "0 0 0",
                    "3 3",
                    "3 3 -1",
                ];
                format!("permits {}", self.pick(&parts)).into()
            }
            5 | 6 => format!("{}@{ends}", self.pick(&["1", "2", "0", "1000001", "x"])).into(),
            7 => self.bytes(20),
            _ => self.pick(&NUMBERS).into(),
        }
    }

    pub fn field(&mut self) -> Vec<u8> {
        match self.rng.u32(0..5) {
            0 => b"mode".to_vec(),
            1 => [self.owner(), b":write".to_vec()].concat(),
            _ => self.owner(),
        }
    }
}

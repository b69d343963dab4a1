//! Commands of the server on the same keys, and scripts.

use super::words::OWNERS;
use super::{Args, Draw};
use crate::args;

/// The scripts, a few that never change: each new one would stay in the server's memory.
const SCRIPTS: [&str; 6] = [
    "return redis.call(unpack(ARGV))",
    "return redis.pcall(unpack(ARGV))",
    "redis.setresp(3) return redis.call(unpack(ARGV))",
    "local r = redis.pcall(unpack(ARGV)) redis.pcall('DEL', 'a') return r",
    "redis.call('SET', 'e', 'x') local r = redis.pcall(unpack(ARGV)) redis.call('DEL', 'e') return r",
    "for i = 1, 3 do redis.pcall(unpack(ARGV)) end return redis.pcall('RLOCK.INFO', 'a')",
];

impl Draw {
    /// A command of the server on a key that may be a lock.
    pub fn other(&mut self) -> Args {
        let key = self.key();
        match self.rng.u32(0..33) {
            0 => self.set(key),
            1..5 => {
                let mut args = args!["HSET", key];
                for _ in 0..self.rng.usize(1..4) {
                    args.extend(args![self.field(), self.field_value()]);
                }
                args
            }
            5 | 6 => args!["HDEL", key, self.field()],
            7 => args!["HINCRBY", key, self.field(), self.number(&["1", "-1", "5"])],
            8 => args!["EXPIRE", key, self.number(&["100", "100000"])],
            9 => args!["PEXPIRE", key, self.ms()],
            10 => args![
                "PEXPIREAT",
                key,
                self.number(&["1900000000000", "9007199254740991"])
            ],
            11 | 12 => args!["PERSIST", key],
            13 => args![self.pick(&["RENAME", "RENAMENX"]), key, self.key()],
            14 => self.copy(key),
            15 => args!["MOVE", key, self.pick(&["0", "1"])],
            16 => args!["SWAPDB", "0", "1"],
            17..20 => args![self.pick(&["DEL", "UNLINK"]), key, self.key()],
            20 => self.restore(key),
            21 => args!["DUMP", key],
            22 => args!["HGETALL", key],
            23 => self.of_another_type(key),
            24 => args!["PTTL", key],
            25 => args!["TYPE", key],
            26 => args!["EXISTS", key, self.key()],
            27 => args!["INCRBY", key, self.number(&["1", "4503599627370490"])],
            28 => self.of_field_ttl(key),
            29 => args!["GETEX", key, "PX", self.ms()],
            30 => args!["SELECT", self.pick(&["0", "0", "0", "1", "99"])],
            31 => args!["SCAN", "0", "COUNT", "100"],
            _ => self.published(key),
        }
    }

    /// One that publishes nothing: Redis 7.0 sends messages in the middle of the reply to EXEC.
    fn unpublished(&mut self) -> Args {
        loop {
            let args = self.other();
            if args[0] != b"PUBLISH" {
                return args;
            }
        }
    }

    fn set(&mut self, key: Vec<u8>) -> Args {
        let mut args = args!["SET", key, self.field_value()];
        match self.rng.u32(0..5) {
            0 => args.extend(args!["PX", self.ms()]),
            1 => args.push(b"KEEPTTL".to_vec()),
            2 => args.push(b"NX".to_vec()),
            _ => {}
        }
        args
    }

    fn copy(&mut self, key: Vec<u8>) -> Args {
        let mut args = args!["COPY", key, self.key()];
        if self.once_in(2) {
            args.extend(args!["DB", self.pick(&["0", "1"])]);
        }
        if self.once_in(2) {
            args.push(b"REPLACE".to_vec());
        }
        args
    }

    fn restore(&mut self, key: Vec<u8>) -> Args {
        let dump = match self.dumps.len() {
            0 => self.bytes(30),
            many => self.dumps[self.rng.usize(0..many)].clone(),
        };
        let ttl = if self.calm {
            self.number(&["1000000", "0"])
        } else {
            self.number(&["1", "50", "60000", "0"])
        };
        args!["RESTORE", key, ttl, dump, "REPLACE"]
    }

    fn of_another_type(&mut self, key: Vec<u8>) -> Args {
        let beside: [&[u8]; 2] = [b"redisson_lock_queue:{a}", b"redisson_lock_timeout:{a}"];
        match self.rng.u32(0..6) {
            0 => args!["RPUSH", self.pick(&beside), self.owner()],
            1 => args![
                "ZADD",
                self.pick(&beside),
                self.number(&["1", "1e300"]),
                self.owner()
            ],
            2 => args!["LPUSH", key, "x"],
            3 => args!["SADD", key, "x"],
            4 => args!["ZADD", key, "1", "x"],
            _ => args!["SORT", key, "STORE", self.key()],
        }
    }

    /// Fields that have a TTL of their own, on newer servers: often all who may hold the lock.
    fn of_field_ttl(&mut self, key: Vec<u8>) -> Args {
        let name = self.pick(&["HPEXPIRE", "HPEXPIRE", "HPERSIST", "HPEXPIREAT"]);
        let mut args = args![name, key];
        if name != "HPERSIST" {
            args.push(self.ms());
        }
        let fields = match self.rng.bool() {
            true => vec![self.field()],
            false => OWNERS.map(Vec::from).into(),
        };
        args.extend(args!["FIELDS", fields.len().to_string()]);
        args.extend(fields);
        args
    }

    fn published(&mut self, key: Vec<u8>) -> Args {
        let channel = [&b"redisson_lock__channel:{"[..], &key, b"}"].concat();
        match self.rng.u32(0..3) {
            0 => args!["PUBLISH", self.session_channel(), "xhostile"],
            1 => args!["PUBLISH", self.session_channel(), "x granted t1 5"],
            _ => args!["PUBLISH", channel, self.pick(&["0", "1", "xx"])],
        }
    }

    /// A command by EVAL or as a function of the library.
    pub fn script(&mut self) -> Args {
        if self.once_in(3) {
            return self.function();
        }
        let inner = if self.once_in(8) {
            self.unpublished()
        } else {
            self.rlock()
        };
        let mut args = args![self.pick(&["EVAL", "EVAL_RO"]), self.pick(&SCRIPTS), "0"];
        args.extend(inner);
        args
    }

    /// The same arguments, for the library without the module.
    fn function(&mut self) -> Args {
        let inner = loop {
            let inner = self.rlock();
            let many = inner[0].starts_with(b"RLOCK.M");
            if inner.len() > 2 && !many || inner.len() > 4 {
                break inner;
            }
        };
        let name = String::from_utf8_lossy(&inner[0]).to_lowercase();
        let function = name.replace('.', "_");
        let many = name.starts_with("rlock.m");
        let mut args = args!["FCALL", function];
        if many {
            args.extend(inner[1..].to_vec());
        } else {
            args.push(self.pick(&["1", "1", "1", "1", "0", "2"]).into());
            args.extend(inner[1..].to_vec());
        }
        args
    }
}

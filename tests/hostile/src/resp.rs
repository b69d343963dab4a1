//! RESP, read strictly: what is not exactly as the protocol says is an error.

use std::fmt;

/// So deep may arrays be in each other.
const DEEPEST: usize = 16;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Simple(Vec<u8>),
    Error(Vec<u8>),
    Int(i64),
    Bulk(Vec<u8>),
    /// `$-1`
    NullBulk,
    /// `*-1`
    NullArray,
    /// `_`
    Null,
    /// What else RESP3 has of one line, and verbatim strings.
    Other(u8, Vec<u8>),
    Array(Vec<Value>),
    /// Keys and values in turn.
    Map(Vec<Value>),
    Set(Vec<Value>),
    Push(Vec<Value>),
}

impl Value {
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Simple(bytes) | Self::Bulk(bytes) | Self::Other(b'=', bytes) => Some(bytes),
            _ => None,
        }
    }

    pub fn int(&self) -> Option<i64> {
        match self {
            Self::Int(number) => Some(*number),
            _ => None,
        }
    }

    pub fn is_null(&self) -> bool {
        matches!(self, Self::NullBulk | Self::NullArray | Self::Null)
    }

    pub fn items(&self) -> &[Value] {
        match self {
            Self::Array(items) | Self::Map(items) | Self::Set(items) | Self::Push(items) => items,
            _ => &[],
        }
    }

    /// The line of an error.
    pub fn error(&self) -> Option<&[u8]> {
        match self {
            Self::Error(line) => Some(line),
            _ => None,
        }
    }

    /// The value of a key in a map, of either version.
    pub fn get(&self, key: &str) -> Option<&Value> {
        let mut pairs = self.items().chunks_exact(2);
        pairs.find_map(|pair| (pair[0].bytes() == Some(key.as_bytes())).then_some(&pair[1]))
    }

    /// All words in it.
    pub fn all_text(&self) -> String {
        let own = match self {
            Self::Int(number) => number.to_string(),
            other => String::from_utf8_lossy(other.bytes().or(other.error()).unwrap_or_default())
                .into_owned(),
        };
        let items = self.items().iter().map(Value::all_text);
        [own].into_iter().chain(items).collect::<Vec<_>>().join(" ")
    }

    /// Whether it may be said in this version of the protocol.
    pub fn fits(&self, resp3: bool) -> bool {
        let here = match self {
            Self::NullBulk | Self::NullArray => !resp3,
            Self::Null | Self::Other(..) | Self::Map(_) | Self::Set(_) | Self::Push(_) => resp3,
            _ => true,
        };
        here && self.items().iter().all(|item| item.fits(resp3))
    }
}

/// As a person reads it.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let many = |f: &mut fmt::Formatter<'_>, ends: [&str; 2], items: &[Value]| {
            let items: Vec<String> = items.iter().take(40).map(ToString::to_string).collect();
            write!(f, "{}{}{}", ends[0], items.join(", "), ends[1])
        };
        match self {
            Self::Simple(text) => write!(f, "+{}", text.escape_ascii()),
            Self::Error(text) => write!(f, "-{}", text.escape_ascii()),
            Self::Int(number) => write!(f, "{number}"),
            Self::Bulk(text) if text.len() > 300 => write!(f, "{} bytes", text.len()),
            Self::Bulk(text) => write!(f, "\"{}\"", text.escape_ascii()),
            Self::NullBulk => f.write_str("$-1"),
            Self::NullArray => f.write_str("*-1"),
            Self::Null => f.write_str("_"),
            Self::Other(kind, text) => write!(f, "{}{}", char::from(*kind), text.escape_ascii()),
            Self::Array(items) => many(f, ["[", "]"], items),
            Self::Map(items) => many(f, ["{", "}"], items),
            Self::Set(items) => many(f, ["~[", "]"], items),
            Self::Push(items) => many(f, [">[", "]"], items),
        }
    }
}

pub fn encode<A: AsRef<[u8]>>(args: &[A], into: &mut Vec<u8>) {
    into.extend(format!("*{}\r\n", args.len()).bytes());
    for arg in args {
        into.extend(format!("${}\r\n", arg.as_ref().len()).bytes());
        into.extend(arg.as_ref());
        into.extend(b"\r\n");
    }
}

/// The first value, and how many bytes it takes; none while it is cut short.
pub fn parse(bytes: &[u8]) -> Result<Option<(Value, usize)>, String> {
    let mut reader = Reader { bytes, at: 0 };
    Ok(reader.value(0)?.map(|value| (value, reader.at)))
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn value(&mut self, depth: usize) -> Result<Option<Value>, String> {
        let Some((kind, line)) = self.line()? else {
            return Ok(None);
        };
        if depth > DEEPEST {
            return Err("arrays in each other, too deep".to_owned());
        }
        let value = match kind {
            b'+' => Value::Simple(line.to_vec()),
            b'-' => Value::Error(line.to_vec()),
            b':' => Value::Int(number(line)?),
            b'_' if line.is_empty() => Value::Null,
            b'#' | b',' | b'(' => Value::Other(kind, line.to_vec()),
            b'$' if line == b"-1" => Value::NullBulk,
            b'*' if line == b"-1" => Value::NullArray,
            b'$' | b'=' => return self.bulk(kind, length(line)?),
            b'*' => return self.many(length(line)?, depth, Value::Array),
            b'%' => return self.many(2 * length(line)?, depth, Value::Map),
            b'~' => return self.many(length(line)?, depth, Value::Set),
            b'>' => return self.many(length(line)?, depth, Value::Push),
            _ => return Err(format!("no RESP: {:?}", char::from(kind))),
        };
        Ok(Some(value))
    }

    /// The kind of what comes, and the rest of its line.
    fn line(&mut self) -> Result<Option<(u8, &'a [u8])>, String> {
        let rest = &self.bytes[self.at..];
        let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
            return Ok(None);
        };
        let Some(line) = rest[..end].strip_suffix(b"\r") else {
            return Err("a line that ends without CR".to_owned());
        };
        self.at += end + 1;
        match line.split_first() {
            Some((kind, line)) if !line.contains(&b'\r') => Ok(Some((*kind, line))),
            _ => Err("an empty line, or one with a CR in it".to_owned()),
        }
    }

    fn bulk(&mut self, kind: u8, length: usize) -> Result<Option<Value>, String> {
        let Some(text) = self.bytes.get(self.at..self.at + length + 2) else {
            return Ok(None);
        };
        self.at += length + 2;
        let text = text.strip_suffix(b"\r\n");
        let text = text.ok_or("a string that is longer than it says")?.to_vec();
        Ok(Some(match kind {
            b'=' => Value::Other(kind, text),
            _ => Value::Bulk(text),
        }))
    }

    fn many(
        &mut self,
        count: usize,
        depth: usize,
        make: fn(Vec<Value>) -> Value,
    ) -> Result<Option<Value>, String> {
        let mut values = Vec::new();
        for _ in 0..count {
            match self.value(depth + 1)? {
                Some(value) => values.push(value),
                None => return Ok(None),
            }
        }
        Ok(Some(make(values)))
    }
}

fn number(line: &[u8]) -> Result<i64, String> {
    let text = String::from_utf8_lossy(line);
    let number = text.parse::<i64>().ok();
    let number = number.filter(|number| number.to_string() == text);
    number.ok_or_else(|| format!("no number: {text:?}"))
}

fn length(line: &[u8]) -> Result<usize, String> {
    let length = usize::try_from(number(line)?).ok();
    let length = length.filter(|length| *length <= 1 << 30);
    length.ok_or_else(|| "no length".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_short_is_waited_for_and_what_is_wrong_is_an_error() {
        let whole = b"%1\r\n$1\r\na\r\n*2\r\n:1\r\n_\r\n+next\r\n";
        let (value, taken) = parse(whole).unwrap().unwrap();
        assert_eq!(value.get("a").unwrap().items()[0], Value::Int(1));
        assert_eq!(&whole[taken..], b"+next\r\n");
        assert!(!value.fits(false) && value.fits(true));
        for cut in 0..taken {
            assert_eq!(parse(&whole[..cut]), Ok(None), "{cut}");
        }
        for bad in [
            "+a\n",
            ":01\r\n",
            ":x\r\n",
            "$1\r\nabc\r\n",
            "$-2\r\n",
            "\r\n",
            "?\r\n",
        ] {
            assert!(parse(bad.as_bytes()).is_err(), "{bad:?}");
        }
    }
}

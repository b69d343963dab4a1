//! RESP: requests as bytes, and replies, of either version, from bytes.

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Int(i64),
    Null,
    Simple(String),
    Text(String),
    Error(String),
    /// Maps and sets too: a map is its keys and values in turn.
    Array(Vec<Value>),
    Push(Vec<Value>),
}

impl Value {
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Simple(text) | Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn array(&self) -> &[Value] {
        match self {
            Self::Array(values) | Self::Push(values) => values,
            _ => &[],
        }
    }

    /// The value of a key in a map.
    pub fn get(&self, key: &str) -> Option<&Value> {
        let mut pairs = self.array().chunks_exact(2);
        pairs.find_map(|pair| (pair[0].text() == Some(key)).then_some(&pair[1]))
    }
}

pub fn encode<A: AsRef<str>>(args: &[A], into: &mut Vec<u8>) {
    into.extend(format!("*{}\r\n", args.len()).bytes());
    for arg in args {
        let arg = arg.as_ref();
        into.extend(format!("${}\r\n{arg}\r\n", arg.len()).bytes());
    }
}

/// The first value, and how many bytes it takes; none while it is cut short. Bytes
/// that are no RESP are an error.
pub fn parse(bytes: &[u8]) -> Result<Option<(Value, usize)>, String> {
    let Some(line) = bytes.windows(2).position(|pair| pair == b"\r\n") else {
        return Ok(None);
    };
    let text = String::from_utf8_lossy(&bytes[1..line]).into_owned();
    let end = line + 2;
    let number = || {
        text.parse::<i64>()
            .map_err(|_| format!("no number: {text:?}"))
    };
    let value = match bytes[0] {
        b'+' => Value::Simple(text),
        b'-' => Value::Error(text),
        b':' => Value::Int(number()?),
        b'_' => Value::Null,
        b'#' | b',' | b'(' => Value::Text(text),
        b'$' | b'!' | b'=' => return bulk(bytes, end, number()?),
        b'*' if number()? < 0 => Value::Null,
        b'*' | b'~' => return array(bytes, end, number()?, Value::Array),
        b'%' => return array(bytes, end, 2 * number()?, Value::Array),
        b'>' => return array(bytes, end, number()?, Value::Push),
        other => return Err(format!("not RESP: {:?}", char::from(other))),
    };
    Ok(Some((value, end)))
}

fn bulk(bytes: &[u8], start: usize, length: i64) -> Result<Option<(Value, usize)>, String> {
    let Ok(length) = usize::try_from(length) else {
        return Ok(Some((Value::Null, start)));
    };
    let end = start + length + 2;
    if bytes.len() < end {
        return Ok(None);
    }
    let mut text = String::from_utf8_lossy(&bytes[start..end - 2]).into_owned();
    if bytes[0] == b'=' {
        text = text.split_off(4.min(text.len()));
    }
    let value = match bytes[0] {
        b'!' => Value::Error(text),
        _ => Value::Text(text),
    };
    Ok(Some((value, end)))
}

fn array(
    bytes: &[u8],
    start: usize,
    count: i64,
    make: fn(Vec<Value>) -> Value,
) -> Result<Option<(Value, usize)>, String> {
    let mut values = Vec::new();
    let mut at = start;
    for _ in 0..count {
        if at >= bytes.len() {
            return Ok(None);
        }
        let Some((value, taken)) = parse(&bytes[at..])? else {
            return Ok(None);
        };
        values.push(value);
        at += taken;
    }
    Ok(Some((make(values), at)))
}

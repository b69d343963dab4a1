//! RESP, as far as a client needs it: requests, and where a reply ends.

/// One request as the bytes on the wire.
pub fn encode<A: AsRef<[u8]>>(args: &[A]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args.iter().map(AsRef::as_ref) {
        bytes.extend(format!("${}\r\n", arg.len()).bytes());
        bytes.extend(arg);
        bytes.extend(b"\r\n");
    }
    bytes
}

/// How many bytes the first value in `bytes` takes; none while it is cut short.
pub fn first_value(bytes: &[u8]) -> Option<usize> {
    let line = bytes.windows(2).position(|pair| pair == b"\r\n")? + 2;
    let count = || {
        let text = std::str::from_utf8(&bytes[1..line - 2]).expect("a count");
        text.parse::<i64>().expect("a count")
    };
    match bytes[0] {
        b'+' | b'-' | b':' | b'_' | b'#' | b',' | b'(' => Some(line),
        b'$' | b'!' | b'=' => {
            let end = usize::try_from(count()).map_or(line, |length| line + length + 2);
            (end <= bytes.len()).then_some(end)
        }
        b'*' | b'~' | b'>' => values(bytes, line, count()),
        b'%' => values(bytes, line, 2 * count()),
        b'|' => values(bytes, line, 2 * count() + 1),
        other => panic!("not RESP: {:?}", char::from(other)),
    }
}

fn values(bytes: &[u8], start: usize, count: i64) -> Option<usize> {
    (0..count).try_fold(start, |at, _| Some(at + first_value(&bytes[at..])?))
}

//! The cursor of RLOCK.LIST as text: which order it is a place in, and the name and the
//! owner that were looked at last, each in hex, for they may be any bytes.

use crate::error::{shown, Error};
use crate::lock::Cursor;

/// What a listing begins with, and ends with.
const END: &[u8] = b"0";

/// `0`, or `order-name`, or `order-name-owner`.
pub fn text(cursor: Option<&Cursor>) -> Vec<u8> {
    let Some(Cursor { order, name, owner }) = cursor else {
        return END.to_vec();
    };
    let mut text = format!("{order:016x}-{}", hex(name));
    if let Some(owner) = owner {
        text.push('-');
        text.push_str(&hex(owner));
    }
    text.into_bytes()
}

/// `None`: the listing begins.
pub fn read(given: &[u8]) -> Result<Option<Cursor>, Error> {
    if given == END {
        return Ok(None);
    }
    let cursor = parse(given).ok_or_else(|| {
        Error::new(format!(
            "the cursor must be one that RLOCK.LIST has replied, or 0 to begin, got {}",
            shown(given)
        ))
    })?;
    Ok(Some(cursor))
}

/// The cursor is of another table.
pub fn out_of_date() -> Error {
    Error::new(
        "the cursor is of another server, of another database, or from before a restart or a \
         SWAPDB: begin again with CURSOR 0",
    )
}

fn parse(given: &[u8]) -> Option<Cursor> {
    let mut parts = given.split(|byte| *byte == b'-');
    let order = unhex(parts.next()?)?;
    let cursor = Cursor {
        order: u64::from_be_bytes(order.try_into().ok()?),
        name: unhex(parts.next()?)?,
        owner: match parts.next() {
            Some(owner) => Some(unhex(owner)?),
            None => None,
        },
    };
    parts.next().is_none().then_some(cursor)
}

fn hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from_digit(half.into(), 16).unwrap_or('0');
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(digit).collect()
}

fn unhex(text: &[u8]) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_chunks::<2>();
    let half = |digit: u8| u8::try_from(char::from(digit).to_digit(16)?).ok();
    let byte = |[high, low]: &[u8; 2]| Some((half(*high)? << 4) | half(*low)?);
    let bytes = pairs.iter().map(byte).collect();
    if rest.is_empty() {
        bytes
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let names: [&[u8]; 5] = [b"", b"-", b"0", b"\x00\xff\r\n", b"name"];
        for name in names {
            for owner in names.map(Some).into_iter().chain([None]) {
                let cursor = Cursor {
                    order: 0x12,
                    name: name.to_vec(),
                    owner: owner.map(<[u8]>::to_vec),
                };
                let text = text(Some(&cursor));
                assert!(text.is_ascii());
                assert_eq!(read(&text).ok(), Some(Some(cursor)), "{text:?}");
            }
        }
        assert_eq!(text(None), b"0");
        assert_eq!(read(b"0").ok(), Some(None));
    }

    #[test]
    fn nothing_else_is_a_cursor() {
        for bad in [
            "",
            "00",
            "1",
            "-",
            "0000000000000012",
            "000000000000001-61",
            "00000000000000120-61",
            "0000000000000012-6",
            "0000000000000012-6g",
            "0000000000000012-61-6",
            "0000000000000012-61-61-61",
            "0000000000000012-61 ",
        ] {
            assert!(read(bad.as_bytes()).is_err(), "{bad:?}");
        }
    }
}

//! A hash as RESTORE takes it, so that what is in it and when it ends is one command.

use crc::{Crc, CRC_64_REDIS};

/// The sum that the server takes.
static SUM: Crc<u64> = Crc::<u64>::new(&CRC_64_REDIS);

/// The type of a hash whose fields follow one by one: each server since 2.0 reads it.
const HASH: u8 = 4;

/// The version of the format that the payload is said to have, Redis 5's: older than each server
/// that rlock runs on, for none takes a newer one than its own.
const VERSION: u16 = 9;

/// The payload of a hash with one field. The format is that of the server's `rdb.h`.
pub fn hash_of_one(field: &[u8], value: &[u8]) -> Vec<u8> {
    // Type, number of fields, two lengths of at most five bytes, version and sum.
    let room = field.len().saturating_add(value.len()).saturating_add(22);
    let mut payload = Vec::with_capacity(room);
    payload.extend([HASH, 1]);
    for text in [field, value] {
        put_length(&mut payload, text.len());
        payload.extend_from_slice(text);
    }
    payload.extend(VERSION.to_le_bytes());
    let sum = SUM.checksum(&payload);
    payload.extend(sum.to_le_bytes());
    payload
}

/// In 6, 14 or 32 bits; the first bits say in how many.
fn put_length(payload: &mut Vec<u8>, length: usize) {
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    let [a, b, c, d] = length.to_be_bytes();
    match length {
        0..0x40 => payload.push(d),
        0x40..0x4000 => payload.extend([0x40 | c, d]),
        _ => payload.extend([0x80, a, b, c, d]),
    }
}

#[cfg(test)]
mod tests {
    use super::{hash_of_one, put_length};

    #[test]
    fn lengths_take_as_few_bytes_as_they_can() {
        for (length, expected) in [
            (0, vec![0]),
            (63, vec![63]),
            (64, vec![0x40, 64]),
            (16_383, vec![0x7f, 0xff]),
            (16_384, vec![0x80, 0, 0, 0x40, 0]),
        ] {
            let mut bytes = Vec::new();
            put_length(&mut bytes, length);
            assert_eq!(bytes, expected, "{length}");
        }
    }

    #[test]
    fn a_hash_has_its_field_and_value_in_plain() {
        let payload = hash_of_one(b"owner", b"1");
        assert_eq!(&payload[..11], b"\x04\x01\x05owner\x011\x09");
        assert_eq!(payload.len(), 20);
    }
}

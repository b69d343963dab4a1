//! Slots of a cluster.

/// So many there are.
pub(crate) const SLOTS: u16 = 16384;

/// Of the hash tag, or of the key if it has none.
pub(crate) fn slot(key: &str) -> u16 {
    let key = key.as_bytes();
    let place = |byte, from: &[u8]| from.iter().position(|&b| b == byte);
    let tag = place(b'{', key).and_then(|open| {
        let rest = &key[open + 1..];
        place(b'}', rest).map(|end| &rest[..end])
    });
    crc16(tag.filter(|tag| !tag.is_empty()).unwrap_or(key)) % SLOTS
}

/// A hash tag of a slot that is one of these; none if there are none.
pub(crate) fn tag_in(is_one: impl Fn(u16) -> bool) -> Option<String> {
    (0..SLOTS)
        .any(&is_one)
        .then(|| (0_u32..).map(|n| n.to_string()))?
        .find(|tag| is_one(slot(tag)))
}

/// XMODEM.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, &byte| {
        (0..8).fold(crc ^ (u16::from(byte) << 8), |crc, _| {
            (crc << 1) ^ if crc & 0x8000 == 0 { 0 } else { 0x1021 }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::{slot, tag_in};

    #[test]
    fn as_the_server_counts() {
        assert_eq!(slot("123456789"), 0x31C3);
        assert_eq!(slot("foo"), 12182);
        assert_eq!(slot("{user1000}.following"), slot("user1000"));
        assert_ne!(slot("a{}{b}"), slot("b"));
        assert_eq!(slot("a{{b}}c"), slot("{b"));
    }

    #[test]
    fn a_tag_for_a_slot() {
        let tag = tag_in(|slot| slot == 7).unwrap();
        assert_eq!(slot(&tag), 7);
        assert_eq!(tag_in(|_| false), None);
    }
}

//! The slot of a key in a cluster, as its specification has it: CRC16, the one of XMODEM, of
//! what counts of the name, modulo 16,384.

use crate::redisson::slot_part;

const SLOTS: u16 = 16_384;
const POLYNOMIAL: u16 = 0x1021;
const HIGHEST: u16 = 0x8000;

pub fn hash_slot(name: &[u8]) -> u16 {
    let with = |crc: u16, byte: &u8| {
        let crc = crc ^ (u16::from(*byte) << 8);
        (0..8).fold(crc, |crc, _| match crc & HIGHEST {
            0 => crc << 1,
            _ => crc << 1 ^ POLYNOMIAL,
        })
    };
    slot_part(name).iter().fold(0, with) % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_one_of_the_specification() {
        assert_eq!(hash_slot(b"123456789"), 0x31C3);
        assert_eq!(hash_slot(b"foo"), 12_182);
        assert_eq!(hash_slot(b"{foo}:1"), 12_182);
        assert_eq!(hash_slot(b""), 0);
    }
}

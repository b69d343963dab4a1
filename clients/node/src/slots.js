// Which slot of a cluster a key lies in.

const SLOTS = 16_384;

/** CRC-16 as XMODEM has it. @param {Buffer} bytes */
function crc16(bytes) {
  let crc = 0;
  for (const byte of bytes) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
  }
  return crc & 0xffff;
}

/** What its slot goes by: of a key with {braces} what stands between the first ones. @param {string} key */
export function tagged(key) {
  const open = key.indexOf('{');
  const close = open < 0 ? -1 : key.indexOf('}', open + 1);
  return close > open + 1 ? key.slice(open + 1, close) : key;
}

/** @param {string} key */
export const slotOf = (key) => crc16(Buffer.from(tagged(key))) % SLOTS;

/** A hash tag for one of the slots, of which there is one. @param {(slot: number) => boolean} fits */
export function tagFor(fits) {
  for (let n = 0; ; n++) if (fits(slotOf(String(n)))) return String(n);
}

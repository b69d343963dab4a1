// Names that nobody else has. They come from the system when they are needed: whatever has numbers ready in
// the memory of the process, as OpenSSL's generator, gives the same ones to all copies of a snapshot.
import { randomUUID } from 'node:crypto';
import { openSync, readSync } from 'node:fs';

const bytes = Buffer.alloc(16);
/** @type {{pid: number, fd: number} | undefined} open in this process, and not in one that it is a copy of */
let source;

function fill() {
  if (source?.pid !== process.pid) source = { pid: process.pid, fd: openSync('/dev/urandom', 'r') };
  return readSync(source.fd, bytes, 0, 16, null) === 16;
}

/** A random UUID. */
export function uuid() {
  try {
    if (process.platform !== 'win32' && fill()) {
      bytes[6] = (bytes[6] & 0x0f) | 0x40;
      bytes[8] = (bytes[8] & 0x3f) | 0x80;
      const hex = bytes.toString('hex');
      return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
    }
  } catch {
    // There is no such file, or it may not be opened.
  }
  return randomUUID({ disableEntropyCache: true });
}

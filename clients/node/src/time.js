// The monotonic clock, in ms, and a timer for a moment on it.
import { uptime } from 'node:os';

export const now = () => performance.now();

// On Linux that clock stands still while the machine is suspended. Another one goes on, in steps of
// 10 ms, and costs a file to read: it is asked when the time of day has gone ahead.
const STEP = 10;
const ahead = () => uptime() * 1000 - now();
const began = ahead();
let day = Date.now() - now();
let slept = 0;

/** For how long the machine was suspended until now, in ms. */
export function suspended() {
  const today = Date.now() - now();
  if (Math.abs(today - day) > STEP && process.platform === 'linux') {
    day = today;
    const more = ahead() - began;
    if (more > slept + 2 * STEP) slept = more;
  }
  return slept;
}

// What setTimeout takes: with more it would ring at once.
export const FARTHEST = 2 ** 31 - 1;

// So late is only who was paused: a program that blocked its event loop, or a process that was stopped.
const LATE = 100;
// What the server has for its answer then.
export const ANSWER = 500;

/** Rings at a moment, once. It keeps no process alive: what it guards does. */
export class Alarm {
  /**
   * @param {number} at @param {() => void} ring
   * @param {number} [stood]  so much later if this process itself was paused: the answer that is
   *   waited for may lie there unread, or the question was never sent
   */
  constructor(at, ring, stood = 0) {
    this.at = at;
    this.ring = ring;
    this.stood = stood;
    this.#wind();
  }

  #wind() {
    const left = Math.ceil(this.at - now());
    this.timer = setTimeout(Alarm.#due, Math.min(Math.max(left, 0), FARTHEST), this);
    this.timer.unref();
  }

  /** @param {Alarm} alarm */
  static #due(alarm) {
    const late = now() - alarm.at;
    if (late > LATE && alarm.stood) {
      alarm.at = now() + alarm.stood;
      alarm.stood = 0;
      alarm.#wind();
    } else if (late < 0) alarm.#wind();
    else alarm.ring();
  }

  clear() {
    clearTimeout(this.timer);
  }
}

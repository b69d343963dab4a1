// Signals of the program's that end a call.

/** @param {unknown} signal */
export function checkSignal(signal) {
  // Not by instanceof: a test runner may have an AbortSignal of its own.
  const given = /** @type {any} */ (signal);
  const fits = ['throwIfAborted', 'addEventListener', 'removeEventListener'].every((name) => typeof given?.[name] === 'function');
  if (signal !== undefined && !fits) throw new TypeError('signal must be an AbortSignal');
}

/**
 * Has `end` called with the reason when the signal is aborted. Throws it if that is so already, or what the signal throws.
 * @param {AbortSignal} signal @param {(reason: unknown) => void} end @returns {() => void} which has it not be called
 */
export function heed(signal, end) {
  signal.throwIfAborted();
  const abort = () => end(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  // The signal is the program's: what it does then is in nobody's way, and may throw.
  return () => queueMicrotask(() => signal.removeEventListener('abort', abort));
}

// The commands, word by word. A claim says what is asked for: keys, owner, mode.

/** @import { Claim } from './options.js' */

/** The name of the mode, as RENEW and CANCEL take it. @param {Claim} claim @returns {string[]} */
const mode = ({ mode }) => (mode === 'plain' ? [] : [mode.toUpperCase()]);

const MODE_TO_ACQUIRE = {
  plain: () => [],
  read: () => ['READ'],
  write: () => ['WRITE'],
  permits: (/** @type {Claim} */ claim) => ['LIMIT', claim.limit, 'PERMITS', claim.permits],
};

/** @param {Claim} claim @param {(string | number)[]} rest */
export function acquire(claim, rest) {
  const { keys, owner, lease } = claim;
  if (keys.length > 1) return ['RLOCK.MACQUIRE', keys.length, ...keys, owner, lease, ...rest];
  return ['RLOCK.ACQUIRE', keys[0], owner, lease, ...MODE_TO_ACQUIRE[claim.mode](claim), ...rest];
}

/** Ends this hold and no other. @param {Claim} claim @param {number} token */
export function release(claim, token) {
  const { keys, owner } = claim;
  if (keys.length > 1) return ['RLOCK.MRELEASE', keys.length, ...keys, owner];
  const permits = claim.mode === 'permits' ? [claim.permits] : [];
  return ['RLOCK.RELEASE', keys[0], owner, ...mode(claim), ...permits, 'IFTOKEN', token];
}

/** Ends whatever the owner has of it, if anything. @param {Claim} claim */
export function disown(claim) {
  const { keys, owner } = claim;
  if (keys.length > 1) return ['RLOCK.MRELEASE', keys.length, ...keys, owner];
  return ['RLOCK.RELEASE', keys[0], owner, ...mode(claim), 'ALL', 'IFHELD'];
}

/** The same key by key: where one was overwritten, MRELEASE would release none. @param {Claim} claim */
export const disownEach = (claim) => claim.keys.map((key) => disown({ ...claim, keys: [key] }));

/** Of a wait for several keys one is enough: it ends whole. @param {Claim} claim */
export const cancel = (claim) => ['RLOCK.CANCEL', claim.keys[0], claim.owner, ...mode(claim)];

/** @param {Claim} claim @param {number} lease */
export function renew(claim, lease) {
  const { keys, owner } = claim;
  if (keys.length > 1) return ['RLOCK.MRENEW', keys.length, ...keys, owner, lease];
  return ['RLOCK.RENEW', keys[0], owner, lease, ...mode(claim)];
}

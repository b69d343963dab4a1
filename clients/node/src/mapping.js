/** @import { Library } from './libraries.js' */

/**
 * A program's map from "host:port" to where a node is reached: an object or a function.
 * @param {any} map @returns {Library['mapped']}
 */
export const mapping = (map) => ({ host, port }) => {
  const node = `${host}:${port}`;
  return typeof map === 'function' ? map(node) : map?.[node];
};

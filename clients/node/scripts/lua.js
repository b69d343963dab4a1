// Makes src/rlock-lua.js of src/rlock.lua: the library as a module of this package, so that a
// bundler takes it along, which would not know of a file that is read.
import { readFileSync, writeFileSync } from 'node:fs';

const source = (/** @type {string} */ name) => new URL(`../src/${name}`, import.meta.url);

/** The text of src/rlock-lua.js. */
export function made() {
  const text = readFileSync(source('rlock.lua'), 'utf8');
  return `// Made from rlock.lua by \`npm run lua\`: do not change it here.\nexport default ${JSON.stringify(text)};\n`;
}

if (process.argv[1] === import.meta.filename) writeFileSync(source('rlock-lua.js'), made());

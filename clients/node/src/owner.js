// Who holds a lock, as the server names it.
import { hostname } from 'node:os';
import { uuid } from './random.js';

const HOST = hostname();

export const freshOwner = () => `${HOST}:${process.pid}:${uuid()}`;

import rlock = require('rlock-client');
export const locks = (client: object) => new rlock.Locks(client);

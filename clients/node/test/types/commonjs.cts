import rlock = require('rlock');
export const locks = (client: object) => new rlock.Locks(client);

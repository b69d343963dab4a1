// An idempotent command: it is retried on each connection anew, until it has a reply.
import { fromServer } from './errors.js';
import { Closed } from './refusal.js';
import { ANSWER, Alarm } from './time.js';

/** @import { Claim } from './options.js' */
/** @import { Session } from './session.js' */

/**
 * @param {Session} session @param {Claim} claim what it is about
 * @param {(string | number)[]} line @param {number} until
 * @param {() => Error | null | undefined} over why it has no sense any more
 * @returns {Promise<unknown>}
 */
export function insist(session, claim, line, until, over) {
  return new Promise((resolve, reject) => {
    const end = () => (session.remove(work), alarm.clear());
    const giveUp = (/** @type {Error} */ error) => (end(), reject(error));
    const work = {
      claim,
      giveUp,
      ask() {
        session.link?.call(line).then(
          (reply) => (end(), resolve(reply)),
          (error) => error instanceof Closed || session.redirect(error, work) || giveUp(fromServer(error.message)),
        );
      },
      cut() {
        const error = over();
        if (error) giveUp(error);
      },
      moveTo(/** @type {Session} */ to) {
        session.remove(work);
        session = to;
        session.add(work);
      },
    };
    const alarm = new Alarm(until, () => giveUp(session.unreachable()), ANSWER);
    session.add(work);
  });
}

// What is declared is what is there.
import type * as declared from '../../index.d.ts';
import { Hold } from '../../src/hold.js';
import * as real from '../../src/index.js';
import { Job } from '../../src/locks.js';
import { Sticky, Use } from '../../src/sticky.js';

export const names: Record<keyof typeof declared, unknown> = real;
export const namesToo: Record<keyof typeof real, unknown> = {} as typeof declared;

export const locks = (it: real.Locks): Pick<declared.Locks, keyof declared.Locks> => it;
export const job = (it: Job): declared.Job => it;
export const sticky = (it: Sticky): declared.Sticky => it;
export const use = (it: Use): declared.Use => it;
export const hold = (it: Hold): declared.Hold => it;

export const lost = (it: real.LostError): declared.LostError => it;
export const notAcquired = (it: real.NotAcquiredError): declared.NotAcquiredError => it;
export const heldByJob = (it: real.HeldByJobError): declared.HeldByJobError => it;
export const refused = (it: real.RefusedError): declared.RefusedError => it;

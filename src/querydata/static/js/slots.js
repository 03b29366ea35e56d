// Which tab may hold a stream: one per conversation, and not more than leave the browser room for questions.

import { pause } from "./api.js";

const SLOTS = 4; // A browser has six connections per server.
const LOOK_EVERY = 2500;

/**
 * Do `work` while no other tab does the work of this `name`, and in one of the slots; wait for both while it is `wanted`.
 * A browser without Web Locks (a page that did not come over https) lets every tab work for itself.
 */
export async function inTurn(name, work, { signal, wanted }) {
  if (!navigator.locks) await work();
  else await navigator.locks.request(name, { signal }, () => inSlot(work, { signal, wanted }));
}

async function inSlot(work, { signal, wanted }) {
  while (!signal.aborted && wanted()) {
    for (let slot = 0; slot < SLOTS; slot++) {
      const served = await navigator.locks.request(`querydata:slot:${slot}`, { ifAvailable: true }, async (lock) => {
        if (lock !== null) await work();
        return lock !== null;
      });
      if (served) return;
    }
    // Every slot is some other conversation's: until one is free, the history is read now and then.
    await pause(LOOK_EVERY, signal);
  }
}

// One conversation, kept up to date: its history, and one stream that all tabs of this browser share.

import { backoff, call, pause, Problem } from "./api.js";
import { inTurn } from "./slots.js";
import { readEvents } from "./stream.js";
import { Turns } from "./turns.js";

const PAGE = 50;
const NEWEST = 10; // more than a conversation's queue and what runs
const POLL_OPEN = 2500;
const POLL_IDLE = 15000;
const LEADER_SPEAKS = 5000;
const LEADER_SILENT = 30000; // The server's line is never quiet for so long, so neither is the tab that reads it.

/** Follows `conversation` until closed. `onChange(feed)` is called whenever something is new. */
export class Feed {
  turns = new Turns();
  loaded = false;
  missing = false;
  earlier = false; // whether there is more history than was read
  disconnected = false;
  #path;
  #closed = new AbortController();
  #channel;
  #competing = false;
  #leading = false;
  #watched = false;
  #heard = -Infinity;
  #spoke = -Infinity;
  #refreshing = null;

  /** `fresh`: the server has yet to hear of this conversation, so that there is nothing to read. */
  constructor(conversation, { onChange, fresh = false }) {
    this.conversation = conversation;
    this.onChange = onChange;
    this.#path = `/api/conversations/${encodeURIComponent(conversation)}`;
    this.#channel = new BroadcastChannel(`querydata:${conversation}`);
    this.#channel.onmessage = ({ data }) => this.#hear(data);
    document.addEventListener("visibilitychange", () => !document.hidden && this.refresh(), { signal: this.#closed.signal });
    this.loaded = fresh;
    if (!fresh) this.#watch();
  }

  /** Something was asked here: look, follow, and let the other tabs do the same. */
  async asked() {
    this.#channel.postMessage({ type: "asked" });
    // A look that began before the question was taken would miss it.
    await this.#refreshing;
    await this.#look();
  }

  /** Read the history again. */
  refresh() {
    this.#refreshing ??= this.#load().finally(() => (this.#refreshing = null));
    return this.#refreshing;
  }

  /** Read the page of history before what is known. */
  async loadEarlier() {
    const before = this.turns.known()[0].sequence;
    const { turns } = await call("GET", `${this.#path}/turns?limit=${PAGE}&before=${before}`, { signal: this.#closed.signal });
    this.turns.learn(turns);
    this.earlier = turns.length === PAGE;
    this.onChange(this);
  }

  close() {
    this.#closed.abort();
    this.#channel.close();
  }

  #open = () => this.turns.unfinished().length > 0;

  async #load() {
    const { signal } = this.#closed;
    try {
      const turns = await this.#newest();
      if (signal.aborted) return;
      this.turns.learn(turns);
      if (!this.loaded) this.earlier = turns.length === PAGE;
      this.loaded = true;
      this.missing = false;
      this.#say(false);
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Problem && error.status === 404) this.missing = true;
      else this.#say(true);
    }
    this.onChange(this);
    this.#follow();
  }

  // All that can have changed are the newest turns, unless so many are new that there may be more of them.
  async #newest() {
    const read = async (limit) => (await call("GET", `${this.#path}/turns?limit=${limit}`, { signal: this.#closed.signal })).turns;
    if (this.turns.known().length === 0) return read(PAGE);
    const few = await read(NEWEST);
    return few.length < NEWEST || this.turns.get(few[0].turn) ? few : read(PAGE);
  }

  #look() {
    this.#watch();
    return this.refresh();
  }

  #watch() {
    if (!this.#watched) this.#keepUp();
    this.#watched = true;
  }

  // Looks now and then: often while something is open that nobody tells us about, seldom otherwise.
  async #keepUp() {
    const { signal } = this.#closed;
    await this.refresh();
    let failures = 0;
    while (!signal.aborted) {
      const open = this.#open();
      failures = this.loaded || this.missing ? 0 : failures + 1;
      await pause(failures ? backoff(failures) : open ? POLL_OPEN : POLL_IDLE, signal, { orOnline: failures > 0 });
      const told = this.#leading || performance.now() - this.#heard < LEADER_SILENT;
      if (signal.aborted || (document.hidden && !open) || (open && told)) continue;
      await this.refresh();
    }
  }

  // -- the tabs --------------------------------------------------------------------------------------------------

  #hear(message) {
    if (message.type === "asked") this.#look();
    else if (message.type === "catch-up") this.#leading && this.#tell(this.turns.frames());
    else this.#heard = performance.now();
    if (message.type === "frames") this.#take(message.frames);
    else if (message.type === "line") {
      this.disconnected = message.disconnected;
      this.onChange(this);
    }
  }

  #tell(frames) {
    this.#spoke = performance.now();
    this.#channel.postMessage({ type: "frames", frames });
  }

  // Between events: the other tabs need not look for themselves.
  #speak() {
    if (performance.now() - this.#spoke > LEADER_SPEAKS) this.#tell([]);
  }

  #take(frames) {
    const fates = frames.map((frame) => this.turns.apply(frame));
    // A frame that does not fit is dropped: the leader is asked for all that came before it.
    if (fates.includes("gap")) this.#channel.postMessage({ type: "catch-up" });
    if (frames.some(({ turn }) => this.turns.get(turn).question === null)) this.refresh();
    if (fates.includes("applied")) this.onChange(this);
  }

  // -- the stream ------------------------------------------------------------------------------------------------

  async #follow() {
    const { signal } = this.#closed;
    if (this.#competing || signal.aborted || !this.#open()) return;
    this.#competing = true;
    if (!this.#leading) this.#channel.postMessage({ type: "catch-up" });
    try {
      await inTurn(`querydata:stream:${this.conversation}`, () => this.#lead(), { signal, wanted: () => this.#open() });
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      this.#competing = false;
    }
    // Something may have been asked between the last look and the end of the stream.
    if (this.#open()) await pause(1000, signal);
    this.#follow();
  }

  async #lead() {
    const { signal } = this.#closed;
    let failures = 0;
    this.#leading = true;
    try {
      while (!signal.aborted && this.#open()) {
        let end;
        try {
          end = await readEvents(`${this.#path}/events`, {
            after: this.turns.cursor(),
            signal,
            onOpen: () => {
              failures = 0;
              this.#say(false);
            },
            onAlive: () => this.#speak(),
            onEvent: (event) => this.#receive(event),
          });
        } catch (error) {
          if (signal.aborted) return;
          if (error instanceof Problem && [401, 404].includes(error.status)) return;
          failures += 1;
          if (failures > 1 || !(error instanceof Problem)) this.#say(true);
          await pause(Math.max((error.retryAfter ?? 0) * 1000, backoff(failures)), signal, { orOnline: true });
        }
        if (end === "enough") continue;
        await this.refresh();
        // Nothing to resume, and yet something is open: it may be about to start. No tight loop.
        if (end === "idle" || end === "ended") await pause(1000, signal);
      }
    } finally {
      this.#leading = false;
    }
  }

  #receive({ id, kind, data }) {
    if (kind === "reconnect") return this.#say(true), true;
    if (data.turn === undefined) return true;
    const frame = { id, kind, turn: data.turn, data: data.data ?? {} };
    this.turns.expect(frame);
    this.#tell([frame]);
    this.#take([frame]);
    return this.#open();
  }

  #say(disconnected) {
    if (this.disconnected === disconnected) return;
    this.disconnected = disconnected;
    if (this.#leading) this.#channel.postMessage({ type: "line", disconnected });
    this.onChange(this);
  }
}

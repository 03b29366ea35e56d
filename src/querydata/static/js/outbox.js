// Questions that the server is not yet known to have taken. Each keeps its key, so that sending it again asks it once.

import { backoff, call, pause, Problem, request, Unreachable } from "./api.js";

const BUSY = new Set(["request-in-progress", "store-unavailable", "draining"]);

/**
 * The outbox of one account in this browser; every tab sees the same entries ({key, conversation, title, text, at,
 * refused}). Each entry is an item of its own: two tabs that write at the same instant cannot undo each other.
 */
export class Outbox {
  #prefix;
  #unstored = new Map(); // key → entry, where the browser would not keep it
  #status = new Map(); // key → "network" | "server": why it is not sent yet, as this tab saw it
  #stopped = new AbortController();
  #sending = new Set(); // conversations

  constructor(account, { onChange, onAccepted }) {
    this.#prefix = `querydata:outbox:${account}:`;
    this.onChange = onChange;
    this.onAccepted = onAccepted;
    addEventListener("storage", (event) => this.#heed(event), { signal: this.#stopped.signal });
  }

  /** Oldest first. */
  entries() {
    return [...stored(this.#prefix), ...this.#unstored.values()].sort((a, b) => a.at - b.at);
  }

  status = (key) => this.#status.get(key) ?? "sending";

  /** Keep a question, then send it. It is written down before anything leaves the browser. */
  add(entry) {
    const newest = this.entries().at(-1)?.at ?? 0;
    this.#write({ ...entry, at: Math.max(Date.now(), newest + 1) });
    this.onChange();
    this.#deliver(entry.conversation);
  }

  /** Send what an earlier page did not see taken. */
  restore() {
    for (const conversation of new Set(this.entries().map((entry) => entry.conversation))) this.#deliver(conversation);
  }

  remove(key) {
    this.#unstored.delete(key);
    forget(this.#prefix + key);
    this.#status.delete(key);
    this.onChange();
  }

  close() {
    this.#stopped.abort();
  }

  #write(entry) {
    try {
      localStorage.setItem(this.#prefix + entry.key, JSON.stringify(entry));
    } catch {
      this.#unstored.set(entry.key, entry);
    }
  }

  #heed({ key, oldValue, newValue }) {
    if (!key?.startsWith(this.#prefix)) return;
    this.onChange();
    if (newValue !== null) this.restore();
    // What another tab took out of the box was taken by the server: its place is in the history now.
    else if (oldValue !== null) this.onAccepted(JSON.parse(oldValue));
  }

  async #deliver(conversation) {
    if (this.#sending.has(conversation)) return;
    this.#sending.add(conversation);
    const { signal } = this.#stopped;
    try {
      // One tab sends; the next one in line finds nothing left, or goes on if that tab was closed.
      const work = () => this.#send(conversation);
      await (navigator.locks ? navigator.locks.request(`${this.#prefix}${conversation}`, { signal }, work) : work());
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      this.#sending.delete(conversation);
    }
  }

  // In the order in which they were asked: a question is not sent before the one ahead of it was taken or refused.
  async #send(conversation) {
    const { signal } = this.#stopped;
    let failures = 0;
    for (;;) {
      const entry = this.entries().find((each) => each.conversation === conversation && !each.refused);
      if (!entry || signal.aborted) return;
      try {
        await this.#make(entry);
        await this.#ask(entry);
        failures = 0;
        this.remove(entry.key);
        this.onAccepted(entry);
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof Problem && error.status === 401) return; // the entry waits for the next sign-in
        const wait = waitAfter(error, ++failures);
        if (wait === null) {
          this.#refuse(entry, error);
          continue;
        }
        this.#status.set(entry.key, error instanceof Unreachable ? "network" : "server");
        this.onChange();
        await pause(wait, signal, { orOnline: true });
      }
    }
  }

  #make(entry) {
    return call("POST", "/api/conversations", { body: { id: entry.conversation, title: entry.title }, timeout: 15000 });
  }

  async #ask(entry) {
    const path = `/api/conversations/${encodeURIComponent(entry.conversation)}/turns`;
    const headers = { "Idempotency-Key": entry.key, Prefer: "wait=0" };
    try {
      await request("POST", path, { body: { text: entry.text }, headers, timeout: 15000 });
    } catch (error) {
      // The turn's own end (failed, stopped, abandoned) is a refusal of nothing: the question was taken.
      if (!(error instanceof Problem && ENDS.has(error.type))) throw error;
    }
  }

  #refuse(entry, error) {
    this.#status.delete(entry.key);
    this.#write({ ...entry, refused: { type: error.type ?? "error", detail: error.detail ?? String(error) } });
    this.onChange();
  }
}

function stored(prefix) {
  try {
    const names = Object.keys(localStorage).filter((name) => name.startsWith(prefix));
    // Another tab may take one out between the two looks.
    return names.map((name) => JSON.parse(localStorage.getItem(name))).filter((entry) => entry !== null);
  } catch {
    return [];
  }
}

function forget(name) {
  try {
    localStorage.removeItem(name);
  } catch {
    // It was not kept there.
  }
}

const ENDS = new Set(["turn-failed", "turn-stopped", "result-unavailable", "result-expired"]);

/** Milliseconds to wait before the same key is sent again; null: the server has decided. */
function waitAfter(error, failures) {
  if (error instanceof Unreachable) return backoff(failures);
  if (error instanceof Problem && (BUSY.has(error.type) || [502, 503, 504].includes(error.status))) {
    return Math.max(error.retryAfter * 1000, backoff(failures));
  }
  return null;
}

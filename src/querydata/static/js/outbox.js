// Questions that the server is not yet known to have taken. Each keeps its key, so that sending it again asks it once.

import { backoff, call, pause, Problem, request, Unreachable } from "./api.js";

const BUSY = new Set(["request-in-progress", "store-unavailable", "draining"]);

/** The outbox of one account in this browser; every tab sees the same entries. */
export class Outbox {
  #name;
  #memory = [];
  #status = new Map(); // key → "sending" | "network" | "server", of this tab
  #stopped = new AbortController();
  #sending = new Set();

  constructor(account, { onChange, onAccepted }) {
    this.#name = `querydata:outbox:${account}`;
    this.onChange = onChange;
    this.onAccepted = onAccepted;
    addEventListener("storage", (event) => {
      if (event.key !== this.#name) return;
      this.#deliverAll();
      this.onChange();
      // What another tab took out of the box was taken by the server: its place is in the history now.
      const left = new Set(listOf(event.newValue).map(({ key }) => key));
      for (const entry of listOf(event.oldValue)) if (!left.has(entry.key)) this.onAccepted(entry);
    }, { signal: this.#stopped.signal });
  }

  /** Entries: {key, conversation, title, text, refused}. */
  entries() {
    try {
      return listOf(localStorage.getItem(this.#name));
    } catch {
      return this.#memory;
    }
  }

  status = (key) => this.#status.get(key) ?? "sending";

  /** Keep a question, then send it. It is written down before anything leaves the browser. */
  add(entry) {
    this.#write([...this.entries(), entry]);
    this.onChange();
    this.#deliver(entry.key);
  }

  /** Send what an earlier page did not see taken. */
  restore() {
    this.#deliverAll();
  }

  remove(key) {
    this.#write(this.entries().filter((entry) => entry.key !== key));
    this.#status.delete(key);
    this.onChange();
  }

  close() {
    this.#stopped.abort();
  }

  #write(entries) {
    this.#memory = entries;
    try {
      if (entries.length > 0) localStorage.setItem(this.#name, JSON.stringify(entries));
      else localStorage.removeItem(this.#name);
    } catch {
      // Storage may be refused or full: the entry lives as long as this page.
    }
  }

  #find = (key) => this.entries().find((entry) => entry.key === key);

  #deliverAll() {
    for (const entry of this.entries()) if (!entry.refused) this.#deliver(entry.key);
  }

  async #deliver(key) {
    if (this.#sending.has(key)) return;
    this.#sending.add(key);
    try {
      // One tab sends; the next one in line finds the entry gone, or goes on if that tab was closed.
      const work = () => this.#send(key);
      await (navigator.locks
        ? navigator.locks.request(`querydata:send:${key}`, { signal: this.#stopped.signal }, work)
        : work());
    } catch (error) {
      if (!this.#stopped.signal.aborted) throw error;
    } finally {
      this.#sending.delete(key);
    }
  }

  async #send(key) {
    const { signal } = this.#stopped;
    let failures = 0;
    let made = false;
    for (;;) {
      const entry = this.#find(key);
      if (!entry || entry.refused || signal.aborted) return;
      try {
        if (!made) await this.#make(entry);
        made = true;
        await this.#ask(entry);
        this.remove(key);
        this.onAccepted(entry);
        return;
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof Problem && error.status === 401) return; // the entry waits for the next sign-in
        const wait = waitAfter(error, ++failures);
        if (wait === null) {
          this.#refuse(key, error);
          return;
        }
        this.#status.set(key, error instanceof Unreachable ? "network" : "server");
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

  #refuse(key, error) {
    this.#status.delete(key);
    const refused = { type: error.type ?? "error", detail: error.detail ?? String(error) };
    this.#write(this.entries().map((entry) => (entry.key === key ? { ...entry, refused } : entry)));
    this.onChange();
  }
}

const listOf = (json) => JSON.parse(json) ?? [];

const ENDS = new Set(["turn-failed", "turn-stopped", "result-unavailable", "result-expired"]);

/** Milliseconds to wait before the same key is sent again; null: the server has decided. */
function waitAfter(error, failures) {
  if (error instanceof Unreachable) return backoff(failures);
  if (error instanceof Problem && (BUSY.has(error.type) || [502, 503, 504].includes(error.status))) {
    return Math.max(error.retryAfter * 1000, backoff(failures));
  }
  return null;
}

// Server-sent events over fetch: unlike EventSource it tells a 204 from a lost line, and may begin at any event.

import { request, Unreachable } from "./api.js";

const SILENCE = 40000; // The server sends a comment at the latest every 15 s: a line this quiet is dead.

/**
 * Read `path` after event `after`. Calls `onEvent({id, kind, data})`, until it answers false.
 * `onAlive` is called whenever anything comes, comments too.
 * Answers "idle" (204: nothing to resume), "ended" (the server closed) or "enough" (the caller did).
 */
export async function readEvents(path, { after, signal, onOpen = () => {}, onAlive = () => {}, onEvent }) {
  const line = new AbortController();
  const hangUp = () => line.abort();
  signal?.addEventListener("abort", hangUp, { once: true });
  if (signal?.aborted) hangUp();
  let watchdog;
  const alive = () => {
    clearTimeout(watchdog);
    watchdog = setTimeout(hangUp, SILENCE);
  };
  try {
    const headers = { Accept: "text/event-stream", "Last-Event-ID": String(after) };
    const response = await request("GET", path, { headers, signal: line.signal });
    if (response.status === 204) return "idle";
    onOpen();
    const reader = response.body.getReader();
    const decoder = new TextDecoder();
    const parser = new Parser();
    alive();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return "ended";
      alive();
      onAlive();
      for (const event of parser.feed(decoder.decode(value, { stream: true }))) {
        if (onEvent(event) === false) return "enough";
      }
    }
  } catch (error) {
    if (error instanceof TypeError || error?.name === "AbortError") throw new Unreachable(String(error));
    throw error;
  } finally {
    clearTimeout(watchdog);
    signal?.removeEventListener("abort", hangUp);
    line.abort();
  }
}

/** Turns pieces of text into events; a piece may end anywhere. */
export class Parser {
  #rest = "";
  #event = { id: null, kind: "message", data: [] };

  feed(piece) {
    const events = [];
    const lines = (this.#rest + piece).split("\n");
    this.#rest = lines.pop();
    for (const raw of lines) {
      const line = raw.endsWith("\r") ? raw.slice(0, -1) : raw;
      if (line === "") {
        const { id, kind, data } = this.#event;
        if (data.length > 0) events.push({ id, kind, data: JSON.parse(data.join("\n")) });
        this.#event = { id: null, kind: "message", data: [] };
      } else if (!line.startsWith(":")) {
        const colon = line.indexOf(":");
        const field = colon < 0 ? line : line.slice(0, colon);
        const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
        if (field === "id") this.#event.id = value;
        else if (field === "event") this.#event.kind = value;
        else if (field === "data") this.#event.data.push(value);
      }
    }
    return events;
  }
}

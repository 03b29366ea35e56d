// The list of conversations, and which of them this browser knows to be working.

import { call } from "./api.js";
import { byId, h } from "./dom.js";
import { t } from "./i18n.js";

const LOOK_EVERY = 5000;

export class Sidebar {
  #name;
  #list = [];
  #open = null;
  #closed = new AbortController();

  constructor(account) {
    this.#name = `querydata:working:${account}`;
    addEventListener("storage", (event) => event.key === this.#name && this.draw(), { signal: this.#closed.signal });
    this.#timer = setInterval(() => this.#look(), LOOK_EVERY);
  }

  #timer;

  async load() {
    const { conversations } = await call("GET", "/api/conversations");
    this.#list = conversations;
    this.draw();
  }

  /** A conversation that was just begun; the server will list it too. */
  begin(id, title) {
    if (this.has(id)) return;
    this.#list.unshift({ id, title });
    this.draw();
  }

  open(id) {
    this.#open = id;
    this.draw();
  }

  has = (id) => this.#list.some((known) => known.id === id);

  title = (id) => this.#list.find((known) => known.id === id)?.title ?? "";

  /** Whether a conversation has turns that are not over. */
  mark(id, working) {
    const marks = this.#marks();
    if (marks.has(id) === working) return;
    if (working) marks.add(id);
    else marks.delete(id);
    try {
      localStorage.setItem(this.#name, JSON.stringify([...marks]));
    } catch {
      return; // without storage there are no marks
    }
    this.draw();
  }

  close() {
    clearInterval(this.#timer);
    this.#closed.abort();
  }

  draw() {
    const marks = this.#marks();
    const items = this.#list.map(({ id, title }) =>
      h("a", { href: `#/c/${id}`, class: "conversation", "aria-current": id === this.#open ? "page" : null, "data-conversation": id },
        h("span", { class: "conversation-title" }, title || t("untitled")),
        marks.has(id) && h("span", { class: "mark", title: t("runningMark"), "aria-label": t("runningMark") })));
    byId("conversations").replaceChildren(...(items.length > 0 ? items : [h("p", { class: "hint" }, t("nothingYet"))]));
    byId("top-title").textContent = this.title(this.#open) || "QueryData";
  }

  // Conversations that are not open tell nobody when they are done: ask, while there are any and somebody looks.
  async #look() {
    if (document.hidden) return;
    for (const id of this.#marks()) {
      if (id === this.#open) continue;
      try {
        const { turns } = await call("GET", `/api/conversations/${encodeURIComponent(id)}/turns`);
        this.mark(id, turns.some(({ status }) => status === "queued" || status === "running"));
      } catch (error) {
        if (error.status === 404) this.mark(id, false);
      }
    }
  }

  #marks() {
    try {
      return new Set(JSON.parse(localStorage.getItem(this.#name)) ?? []);
    } catch {
      return new Set();
    }
  }
}

// The open conversation on the screen: its turns, the questions still on their way, the welcome, the notice.

import { byId, h } from "./dom.js";
import { EXAMPLES, language, t } from "./i18n.js";
import { TurnView } from "./turn_view.js";

const NEAR = 120; // pixels from the end within which the page follows what is new
const ABOVE = 20; // pixels over the newest question

export class Screen {
  #views = new Map(); // idempotency key → TurnView: a question keeps its place when it becomes a turn
  #conversation = null;
  #scrolled = 0; // where the page scrolled itself

  constructor(actions) {
    this.actions = actions;
  }

  /** Draw `feed` (null: a new conversation) and the outbox's `pending` entries ([{entry, status}]). */
  draw(conversation, feed, pending) {
    if (conversation !== this.#conversation) {
      this.#conversation = conversation;
      this.#views.clear();
      byId("turns").replaceChildren();
    }
    const follows = this.#follows();
    const turns = feed?.turns.known() ?? [];
    const keys = new Set(turns.map((turn) => turn.key));
    const waiting = pending.filter(({ entry }) => !keys.has(entry.key));
    const fresh = waiting.some(({ entry }) => !this.#views.has(entry.key));
    for (const turn of turns) this.#view(turn.key).show(turn, { ahead: feed.turns.ahead(turn) });
    for (const { entry, status } of waiting) this.#view(entry.key).showPending(entry, status);
    this.#place([...keys, ...waiting.map(({ entry }) => entry.key)]);
    this.#welcome(turns.length === 0 && waiting.length === 0 && (feed === null || feed.loaded) && !feed?.missing);
    byId("earlier").hidden = !feed?.earlier;
    this.#notice(feed);
    if (follows || fresh) this.#scroll();
  }

  // Whoever has scrolled away is reading: the page stays where it is.
  #follows() {
    const { scrollHeight, scrollTop, clientHeight } = byId("scroll");
    return scrollHeight - scrollTop - clientHeight < NEAR || Math.abs(scrollTop - this.#scrolled) < NEAR;
  }

  // To the end, but never so far that the newest question is out of sight.
  #scroll() {
    const scroll = byId("scroll");
    const newest = byId("turns").lastElementChild;
    if (newest === null) return;
    const top = newest.getBoundingClientRect().top - scroll.getBoundingClientRect().top + scroll.scrollTop - ABOVE;
    scroll.scrollTop = Math.min(scroll.scrollHeight - scroll.clientHeight, top);
    this.#scrolled = scroll.scrollTop;
  }

  #view(key) {
    let view = this.#views.get(key);
    if (!view) this.#views.set(key, (view = new TurnView(this.actions)));
    return view;
  }

  #place(keys) {
    const holder = byId("turns");
    for (const [key, view] of this.#views) {
      if (keys.includes(key)) continue;
      view.element.remove();
      this.#views.delete(key);
    }
    keys.forEach((key, index) => {
      const { element } = this.#views.get(key);
      if (holder.children[index] !== element) holder.insertBefore(element, holder.children[index] ?? null);
    });
  }

  #welcome(wanted) {
    const welcome = byId("welcome");
    if (wanted && (welcome.hidden || welcome.dataset.language !== language())) {
      welcome.dataset.language = language();
      byId("examples").replaceChildren(...EXAMPLES[language()].map((text) =>
        h("button", { type: "button", class: "example", onclick: () => this.actions.ask(text) }, text)));
    }
    welcome.hidden = !wanted;
  }

  #notice(feed) {
    const notice = byId("notice");
    const text = feed?.missing ? t("gone") : feed?.disconnected ? t(feed.loaded ? "reconnecting" : "loadFailed") : "";
    if (notice.textContent !== text) notice.textContent = text;
    notice.hidden = text === "";
  }
}

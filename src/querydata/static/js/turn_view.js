// One question and its answer on the screen. Only what changed is built anew: open folds stay open.

import { chartOf, partsOf, reading, sql, tableOf, wording } from "./answer.js";
import { h } from "./dom.js";
import { language, t } from "./i18n.js";

export class TurnView {
  #built = new Map(); // part → [signature, element]
  #parts = h("div", { class: "answer" });
  #question = h("div", { class: "question" });

  constructor(actions) {
    this.actions = actions;
    this.element = h("article", { class: "turn" }, this.#question, this.#parts);
  }

  /** Show a turn; `ahead` is its place in the queue. */
  show(turn, { ahead }) {
    Object.assign(this.element.dataset, { turn: turn.id, key: turn.key, status: turn.status });
    this.#question.textContent = turn.question || t("noLongerKept");
    const known = partsOf(turn);
    const steps = [...turn.steps.values()];
    this.#arrange([
      this.#part("steps", [JSON.stringify(steps), turn.status], () => this.#steps(turn, steps)),
      this.#part("reading", [known.reading], () => known.reading && reading(known.reading)),
      this.#part("wording", [known.text, known.refused], () => known.text && wording(known.text, known.refused)),
      this.#part("chart", [known.chart, known.rows], () => chartOf(known)),
      this.#part("table", [known.columns, known.rows, known.truncated], () => tableOf(known)),
      this.#part("sql", [known.sql], () => known.sql && sql(known.sql)),
      this.#part("foot", [turn.status, turn.reason, turn.error?.code, ahead, turn.seconds], () => this.#foot(turn, ahead)),
    ]);
  }

  /** Show a question that is still on its way. */
  showPending(entry, status) {
    Object.assign(this.element.dataset, { key: entry.key, status: entry.refused ? "refused" : "sending" });
    this.#question.textContent = entry.text;
    this.#arrange([this.#part("foot", [status, entry.refused], () => this.#pending(entry, status))]);
  }

  #part(name, signature, build) {
    const [before, element] = this.#built.get(name) ?? [];
    const now = [language(), ...signature];
    if (before && before.length === now.length && before.every((value, index) => Object.is(value, now[index]))) return element;
    const folds = element?.querySelectorAll?.("details[open]").length ?? 0;
    const wasOpen = element?.tagName === "DETAILS" ? element.open : folds > 0;
    const made = build() || null;
    if (made?.tagName === "DETAILS" && wasOpen) made.open = true;
    this.#built.set(name, [now, made]);
    return made;
  }

  #arrange(parts) {
    const wanted = parts.filter(Boolean);
    // Nodes that are already in place are not touched: moving one would lose its scroll position and focus.
    const current = [...this.#parts.children];
    if (wanted.length === current.length && wanted.every((node, index) => node === current[index])) return;
    for (const node of current) if (!wanted.includes(node)) node.remove();
    wanted.forEach((node, index) => {
      if (this.#parts.children[index] !== node) this.#parts.insertBefore(node, this.#parts.children[index] ?? null);
    });
  }

  #steps(turn, steps) {
    const items = steps.map((step) => {
      // A turn that is over has no running step, whatever it was told last.
      const shown = step.state === "running" && turn.final ? "cut" : step.state;
      return h("li", { class: "step", "data-step": step.name, "data-state": shown, title: step.sql },
        h("span", { class: "step-name" }, nameOf(step)),
        h("span", { class: "step-detail" }, detailOf(step)));
    });
    const list = h("ol", { class: "steps" }, items);
    if (!turn.final) return items.length > 0 ? list : null;
    // How far it got is most of what there is to know about a turn without a result.
    const open = turn.status !== "succeeded";
    if (items.length > 0) return h("details", { class: "fold", open }, h("summary", {}, t("steps", { count: items.length })), list);
    const load = (event) => event.target.open && this.actions.loadSteps(turn);
    return h("details", { class: "fold", ontoggle: load }, h("summary", {}, t("stepsLoad")));
  }

  #foot(turn, ahead) {
    const button = (name, act) => h("button", { type: "button", class: `small ${name}`, "data-action": name, onclick: act }, t(name));
    const again = () => button("retry", () => this.actions.retry(turn));
    const line = (text, ...more) => h("div", { class: "foot", "data-status": turn.status }, h("span", { class: "state" }, text), more);
    switch (turn.status) {
      case "queued":
        return line(ahead > 0 ? t("queued", { count: ahead }) : t("queuedNext"), button("stop", () => this.actions.stop(turn)));
      case "running":
        return line(t("running"), button("stop", () => this.actions.stop(turn)));
      case "failed":
        return line(turn.error?.message || t("failed"), again());
      case "stopped":
        return line(t(`stopped.${turn.reason}`, {}, t("stopped")), again());
      case "abandoned":
        return line(t("abandoned"), h("span", { class: "more" }, t("abandonedMore")), again());
      default:
        if (turn.seconds === null) return null;
        return line(turn.seconds < 0.1 ? t("instant") : t("seconds", { seconds: turn.seconds.toFixed(1) }));
    }
  }

  #pending(entry, status) {
    const button = (name, act) => h("button", { type: "button", class: `small ${name}`, "data-action": name, onclick: act }, t(name));
    if (!entry.refused) {
      const words = { sending: t("sending"), network: t("waitingNetwork"), server: t("waitingServer") };
      return h("div", { class: "foot", "data-status": "sending" }, h("span", { class: "state" }, words[status]),
        status !== "sending" && button("discard", () => this.actions.discard(entry)));
    }
    const why = t(`problem.${entry.refused.type}`, {}, entry.refused.detail || t("refusedSend"));
    return h("div", { class: "foot", "data-status": "refused" }, h("span", { class: "state" }, why),
      button("retry", () => this.actions.resend(entry)), button("discard", () => this.actions.discard(entry)));
  }
}

function nameOf({ name, attempt = 1 }) {
  const known = t(`step.${name}`, {}, name);
  return attempt > 1 ? `${known} · ${t("attempt", { count: attempt })}` : known;
}

function detailOf({ detail, reason }) {
  if (reason) return reason;
  if (typeof detail !== "object" || detail === null) return detail ?? "";
  if (typeof detail.rows === "number") return t(detail.truncated ? "detail.truncated" : "detail.rows", { count: detail.rows });
  return [...(detail.tables ?? []), ...(detail.terms ?? [])].join(" · ");
}

// An answer's table, and how its values read.

import { h } from "./dom.js";
import { t } from "./i18n.js";

const FIRST_ROWS = 20;

/** A value in words: floats without noise, nothing for NULL. */
export function formatted(value) {
  if (value === null || value === undefined) return "–";
  if (typeof value === "number" && !Number.isInteger(value)) return String(Number(value.toFixed(2)));
  if (typeof value === "boolean") return value ? "✓" : "✗";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** The table of `columns` (names) and `rows` (lists of values); long ones open on demand. */
export function table(columns, rows, { truncated }) {
  if (rows.length === 0) return h("p", { class: "empty" }, t("emptyTable"));
  const numeric = columns.map((_, index) => rows.every((row) => row[index] === null || typeof row[index] === "number"));
  const cell = (tag, value, index, scope) => h(tag, { class: numeric[index] ? "number" : null, scope }, value);
  const line = (row) => h("tr", {}, row.map((value, index) => cell("td", formatted(value), index)));
  const body = h("tbody", {}, rows.slice(0, FIRST_ROWS).map(line));
  const foot = h("div", { class: "table-foot" }, h("span", {}, t(truncated ? "firstRows" : rows.length === 1 ? "row" : "rows", { count: rows.length })));
  if (rows.length > FIRST_ROWS) {
    const more = h("button", { type: "button", class: "link", onclick: () => {
      body.append(...rows.slice(FIRST_ROWS).map(line));
      more.remove();
    } }, t("showAll", { count: rows.length }));
    foot.append(more);
  }
  const head = h("thead", {}, h("tr", {}, columns.map((name, index) => cell("th", name, index, "col"))));
  return h("div", { class: "table" }, h("div", { class: "table-scroll", tabindex: "0" }, h("table", {}, head, body)), foot);
}

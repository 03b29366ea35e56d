// The parts of an answer: what is known of it while it is being made, and how each part looks.

import { chart } from "./chart.js";
import { h } from "./dom.js";
import { t } from "./i18n.js";
import { table } from "./table.js";

const NONE = [];

/** What can be shown of a turn now: the result once there is one, the events' parts until then. */
export function partsOf(turn) {
  const { result, data } = turn;
  if (result && typeof result === "object") return result;
  const rows = data.table ?? {};
  return {
    text: typeof result === "string" ? result : turn.text,
    reading: data.reading ?? "",
    sql: data.sql ?? "",
    columns: rows.columns ?? NONE,
    rows: rows.rows ?? NONE,
    chart: data.chart ?? null,
    truncated: rows.truncated ?? false,
    refused: false,
  };
}

export const reading = (text) => h("p", { class: "reading" }, h("span", { class: "label" }, t("reading")), text);

export const wording = (text, refused) =>
  h("div", { class: refused ? "wording refused" : "wording" },
    refused && h("span", { class: "tag" }, t("refusedTag")), h("p", {}, text));

export const sql = (text) => h("details", { class: "sql" }, h("summary", {}, t("showSql")), h("pre", {}, h("code", {}, text)));

export function tableOf({ columns, rows, truncated }) {
  return columns.length > 0 ? table(columns, rows, { truncated }) : null;
}

export function chartOf({ chart: wanted, columns, rows }) {
  const [x, y] = [columns.indexOf(wanted?.x), columns.indexOf(wanted?.y)];
  if (x < 0 || y < 0) return null;
  const points = rows.map((row) => ({ label: String(row[x] ?? "–"), value: row[y] }));
  const picture = chart(wanted.kind, points, wanted.y);
  return picture && h("figure", { class: "chart" }, h("figcaption", {}, wanted.y), picture);
}
